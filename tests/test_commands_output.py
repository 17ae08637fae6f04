"""What the terminal shows: tables, JSON, colours, width, progress."""

import contextlib
import io
import json

import pytest

from commands import output
from commands.progress import Progress

ROWS = [
    {"query": "shoes", "step": 1_000_000, "regret": 0.0111751234, "base": ["a", "b"], "none": None},
    {"query": "[red]\x1b[2J\nx", "step": 7, "regret": 12345.678, "base": [], "none": None},
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def on_terminal(monkeypatch):
    """Call something with stdout and stderr on a terminal; gives what the terminal got."""
    for name in ("NO_COLOR", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def call(function, *args, **kwargs):
        screen = Terminal()
        with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
            function(*args, **kwargs)
        return screen.getvalue()

    return call


def test_a_table_is_shown_as_in_this_golden_copy(capsys):
    output.show_rows(ROWS, form="table", title="Two rows")
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "Two rows",
        "query                  step      regret   base   none",
        "─────────────────────────────────────────────────────",
        "shoes             1,000,000   0.0111751   a b    -",
        "[red]\\x1b[2J\\nx           7    12,345.7          -",
    ]


def test_json_holds_the_values_as_they_are(capsys):
    output.show_rows(ROWS, form="json")
    assert json.loads(capsys.readouterr().out) == ROWS
    output.show_record(ROWS[0], form="json")
    assert json.loads(capsys.readouterr().out) == ROWS[0]


def test_a_record_is_shown_a_line_per_field(capsys):
    output.show_record({"query": "shoes", "step": 1200}, form="table")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["query", "shoes"], ["step", "1,200"]]


def test_nothing_to_show_is_no_error(capsys):
    output.show_rows([], form="json")
    assert json.loads(capsys.readouterr().out) == []
    output.show_rows([], form="table")


def test_long_values_are_not_cut_when_no_terminal_limits_them(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    output.show_rows([{"query": "x" * 500}], form="table")
    assert "x" * 500 in capsys.readouterr().out


def test_a_narrow_terminal_folds_and_loses_nothing(on_terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("NO_COLOR", "1")
    shown = on_terminal(output.show_rows, [{"query": "x" * 100, "step": 1}], form="table")
    assert max(map(len, shown.splitlines())) <= 30
    assert shown.count("x") == 100


def test_no_color_means_no_escape_sequences(on_terminal, monkeypatch):
    assert "\x1b[" in on_terminal(output.show_rows, ROWS, form="table", title="T")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in on_terminal(output.show_rows, ROWS, form="table", title="T")


def test_remarks_go_to_stderr_unless_quiet(capsys):
    output.remark("note \x07")
    output.remark("hush", quiet=True)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "note \\x07\n")


def tick(seconds, quiet=False):
    """Work of ten steps per second by a clock that the test winds."""
    now = [0.0]
    with Progress("steps", 200, quiet=quiet, clock=lambda: now[0]) as progress:
        for second in range(seconds + 1):
            now[0] = float(second)
            progress.update(second * 10)


def test_short_work_shows_no_progress(on_terminal, capsys):
    assert on_terminal(tick, seconds=1) == ""
    tick(seconds=1)
    assert capsys.readouterr().err == ""


def test_long_work_shows_a_line_now_and_then_without_a_terminal(capsys):
    tick(seconds=20)
    assert capsys.readouterr().err.splitlines() == [
        "20 of 200 (10%) steps, 2 s",
        "120 of 200 (60%) steps, 12 s",
    ]


def test_long_work_shows_a_bar_on_a_terminal(on_terminal):
    assert "50/200" in on_terminal(tick, seconds=5)


def test_quiet_work_shows_nothing(on_terminal, capsys):
    assert on_terminal(tick, seconds=20, quiet=True) == ""
    tick(seconds=20, quiet=True)
    assert capsys.readouterr().err == ""
