"""What the README shows is so."""

import re
import shlex
from pathlib import Path

import pytest

from commands.main import main

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
MAKEFILE = (Path(__file__).parent.parent / "Makefile").read_text("utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def test_the_python_in_the_readme_runs(capsys):
    (program,) = blocks("python")
    exec(compile(program, "README.md", "exec"), {})
    assert "'step': 10000" in capsys.readouterr().out


@pytest.mark.parametrize("line", re.findall(r"bubblerank (--help|schema [^\n`]*)", README))
def test_the_commands_in_the_readme_run(line, capsys):
    assert main(shlex.split(line)) == 0
    assert capsys.readouterr().out


def test_the_make_targets_in_the_readme_exist():
    for target in re.findall(r"^make ([a-z-]+)", "".join(blocks("")), re.M):
        assert re.search(rf"^{target}:", MAKEFILE, re.M)
