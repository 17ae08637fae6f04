"""Golden copies of what the terminal shows. Seconds are masked; the test's folder is left out.

After a wanted change, `REWRITE_GOLDEN=1 pytest tests/test_golden_output.py` writes them anew.
"""

import os
import re
from pathlib import Path

import pytest

from bubblerank.problems import write_problems
from commands.main import main
from tests.reference_logs import PROBLEMS, sessions, trajectory, write_log

GOLDEN = Path(__file__).parent / "golden"
DELTA = ("--delta", "0.1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Problems, a log with one session of every fate, and runs of both commands."""
    folder = tmp_path_factory.mktemp("golden")
    write_problems(folder / "problems.jsonl", PROBLEMS)
    rows = [row for problem in PROBLEMS for row in sessions(problem, trajectory(problem, 300))]
    foreign = {**rows[0], "session_id": "x", "items": ["nobody"], "clicks": [True]}
    unknown = {**rows[0], "session_id": "y", "query": "unknown"}
    write_log(folder / "log.jsonl", [*rows, *rows[:5], foreign, unknown])
    with (folder / "log.jsonl").open("a") as file:
        file.write("garbage\n")
    fixed = [{**rows[0], "session_id": f"{n:03}", "step": None} for n in range(100)]
    write_log(folder / "fixed.jsonl", fixed)
    return folder


@pytest.fixture
def shown(capsys, folder, monkeypatch):
    """What a command shows, at a fixed width and without colour."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(folder)

    def call(*words):
        capsys.readouterr()
        code = main([str(word) for word in words])
        found = capsys.readouterr()
        text = f"exit code {code}\n--- stdout\n{found.out}--- stderr\n{found.err}"
        return "".join(line.rstrip() + "\n" for line in masked(text).splitlines())

    return call


def masked(text):
    """Without seconds, and without lines that only slow machines show."""
    text = re.sub(r"(?m)^(compiling kernels|.* sessions (read|ranked), \d+ s$).*\n", "", text)
    return re.sub(r"\d+\.\d s\b", "0.0 s", text)


COMMANDS = {
    "simulate": (
        *("simulate", "--problems", "problems.jsonl", "--steps", "2000", "--runs", "2"),
        *("--seed", "1", *DELTA, "--ranker", "bubblerank,baseline", "--out", "simulated"),
    ),
    "simulate-json": (
        *("simulate", "--problems", "problems.jsonl", "--steps", "50", "--horizon", "auto"),
        *("--format", "json", "--quiet", "--out", "simulated-json"),
    ),
    "inspect": ("inspect", "simulated", "--query", "帽子", "--run", "0"),
    "replay": (
        *("replay", "--log", "log.jsonl", "--base-lists", "problems.jsonl", *DELTA),
        *("--out", "replayed"),
    ),
    "replay-unfair": ("replay", "--log", "fixed.jsonl", "--out", "unfair"),
    "replay-nothing": ("replay", "--log", "fixed.jsonl", "--positions", "4", "--out", "nothing"),
    "replay-match": (
        *("replay", "--log", "log.jsonl", "--base-lists", "problems.jsonl", *DELTA),
        *("--feedback", "match", "--max-reject-rate", "0", "--format", "json", "--out", "matched"),
    ),
    "compare": ("compare", "replayed", "replayed", "--part", "statistics"),
    "refused": ("replay", "--log", "gone.avro", "none*", "--out", "refused"),
    "mistyped": ("simulate", "--problem", "p.jsonl", "--steps", "0", "--rankr", "x", "--out", "x"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_terminal_shows_the_golden_copy(shown, name):
    """In this order: later commands look at the runs of earlier ones."""
    path = GOLDEN / f"{name}.txt"
    text = shown(*COMMANDS[name])
    if os.environ.get("REWRITE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def test_no_golden_copy_is_left_over():
    assert {path.stem for path in GOLDEN.iterdir()} == COMMANDS.keys()
