"""What the README shows is so."""

import re
import shlex
from pathlib import Path

from commands.main import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def test_the_python_in_the_readme_runs(capsys):
    simulation, service = blocks("python")
    exec(compile(simulation, "README.md", "exec"), {})
    assert "'step': 10000" in capsys.readouterr().out
    exec(compile(service, "README.md", "exec"), {})
    assert capsys.readouterr().out == "100 True\n"


def test_the_commands_in_the_readme_run_one_after_another(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (session,) = blocks("sh")
    for line in session.splitlines():
        program, *words = shlex.split(line)
        assert program == "bubblerank"
        assert main(words) == 0, line
        assert capsys.readouterr().out, line


def test_replay_warns_as_the_readme_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (session,) = blocks("sh")
    for line in session.splitlines():
        if " generate " in line or " replay " in line:
            main(shlex.split(line)[1:])
    assert "no fair coins" in capsys.readouterr().err


def test_the_schema_command_in_the_readme_runs(capsys):
    (line,) = re.findall(r"bubblerank (schema [^\n`]*)", README)
    assert main(shlex.split(line)) == 0
    assert "mean_ndcg" in capsys.readouterr().out


def test_the_make_targets_in_the_readme_exist():
    targets = re.findall(r"^make ([a-z-]+)", "".join(blocks("")), re.M)
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", MAKEFILE, re.M)


def test_the_pages_that_the_readme_links_exist():
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    for link in links:
        assert (ROOT / link).exists(), link
