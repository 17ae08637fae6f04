"""The command line as a user types it: help, mistakes, exit codes, pipes."""

import importlib
import os
import subprocess
import sys
import time
import types

import pytest

from bubblerank.errors import RunFailed, UsageError
from commands import main as entry
from commands.main import COMMANDS, Command, main

HEAVY = ("numpy", "numba", "pyarrow", "fastavro", "apache_beam", "rich")
RUN = [sys.executable, "-m", "commands.main"]


@pytest.fixture
def toy(monkeypatch):
    """A command `toy` whose run does what the test wants; it keeps the arguments it was given."""
    module = types.ModuleType("toy_command")
    module.EXAMPLES = "examples:\n  bubblerank toy --steps 3\n"

    def add_arguments(parser):
        parser.add_argument("--steps", type=int, required=True)
        parser.add_argument("--format", choices=("table", "json"), default="table")
        parser.add_argument("--queries", type=int)

    def run(args):
        module.args = args
        return module.ends(args)

    module.add_arguments, module.run, module.ends = add_arguments, run, lambda args: 0
    monkeypatch.setitem(sys.modules, "toy_command", module)
    monkeypatch.setitem(entry.COMMANDS, "toy", Command("toy_command", "play", beam=True))
    monkeypatch.delenv("BUBBLERANK_DEBUG", raising=False)
    return module


def raising(error):
    def ends(args):
        raise error

    return ends


def test_help_loads_nothing_heavy():
    program = (
        "import sys; from commands.main import main; code = main(['--help'])\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), code)"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert output.stdout.splitlines()[-1] == "[] 0", output.stderr


def test_help_answers_in_under_half_a_second():
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([*RUN, "--help"], check=True, capture_output=True)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5


def test_help_names_every_command(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert f"  {name} " in shown
        assert command.summary in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples_that_name_it(name, capsys):
    module = importlib.import_module(COMMANDS[name].module)
    assert f"bubblerank {name} " in module.EXAMPLES
    assert main([name, "--help"]) == 0
    assert module.EXAMPLES.strip() in capsys.readouterr().out


def test_version_is_printed(capsys):
    import bubblerank

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"bubblerank {bubblerank.__version__}\n"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ([], "name a command"),
        (["simulat"], "unknown command 'simulat': did you mean 'simulate'?"),
        (["xyz"], "unknown command 'xyz': Known: simulate, replay,"),
        (["--versio"], "unknown flag '--versio': did you mean '--version'?"),
        (["toy"], "the following arguments are required: --steps"),
        (["toy", "--steps", "3", "stray"], "unexpected: stray"),
        (["toy", "--step", "3"], "unknown flag '--step': did you mean '--steps'?"),
        (["schema", "list", "--", "--runner=X"], "runs no pipeline: remove -- --runner=X"),
    ],
)
def test_a_mistake_is_answered_on_stderr_with_exit_code_2(toy, capsys, words, answer):
    assert main(words) == 2
    output = capsys.readouterr()
    assert answer in output.err
    assert output.out == ""


def test_all_mistakes_are_told_at_once(toy, capsys):
    assert main(["toy", "--format", "xml", "--queris", "7", "--queries", "many"]) == 2
    told = capsys.readouterr().err
    assert "unknown flag '--queris': did you mean '--queries'?" in told
    assert "--format: invalid choice: 'xml'" in told
    assert "--queries: invalid int value: 'many'" in told
    assert "required: --steps" in told


def test_flags_after_two_dashes_are_kept_for_beam(toy):
    assert main(["toy", "--steps=3", "--", "--runner=FlinkRunner", "--steps=4", "--"]) == 0
    assert toy.args.steps == 3
    assert toy.args.beam_flags == ["--runner=FlinkRunner", "--steps=4", "--"]
    assert main(["toy", "--steps=3"]) == 0
    assert toy.args.beam_flags == []


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (UsageError("no such thing"), 2, "bubblerank: no such thing\n"),
        (RunFailed("books do not balance"), 1, "bubblerank: books do not balance\n"),
        (KeyboardInterrupt(), 130, "bubblerank: interrupted\n"),
        (OSError("disk full"), 1, "bubblerank: OSError: disk full (BUBBLERANK_DEBUG=1 shows"),
    ],
)
def test_how_a_command_ends_becomes_an_exit_code_without_a_stack_trace(
    toy, capsys, error, code, told
):
    toy.ends = raising(error)
    assert main(["toy", "--steps", "3"]) == code
    shown = capsys.readouterr().err
    assert shown.startswith(told)
    assert "Traceback" not in shown


def test_a_commands_own_exit_code_is_kept(toy):
    toy.ends = lambda args: 3
    assert main(["toy", "--steps", "3"]) == 3


def test_debugging_shows_the_stack_trace(toy, monkeypatch):
    monkeypatch.setenv("BUBBLERANK_DEBUG", "1")
    toy.ends = raising(OSError("disk full"))
    with pytest.raises(OSError, match="disk full"):
        main(["toy", "--steps", "3"])


@pytest.mark.parametrize("words", [["--help"], ["schema", "show", "session"], ["schema", "list"]])
def test_a_reader_that_leaves_early_causes_no_noise(words):
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run([*RUN, *words], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert ended.returncode == 1
    assert ended.stderr == ""
