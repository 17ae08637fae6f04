"""`make demo` must hold what it promises, and notice when it does not hold."""

import importlib.util
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from commands.main import main

ROOT = Path(__file__).parent.parent


@pytest.fixture
def demo(monkeypatch):
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "STEPS", 2000)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return module


def in_this_process(*words):
    return main([*words, "--quiet"])


def test_the_demo_ends_with_0_and_shows_each_command(demo, tmp_path, capfd):
    assert demo.main(tmp_path / "demo") == 0
    out = capfd.readouterr().out
    for command in ("$ bubblerank simulate ", "$ bubblerank replay ", "$ bubblerank compare "):
        assert command in out
    assert "OK: the replayed log ends in exactly the statistics of the simulation." in out
    assert "What to look at next:" in out


def test_one_lost_session_makes_the_demo_fail(demo, tmp_path, monkeypatch, capsys):
    make_log = demo.make_log

    def lose_a_session(displays, folder):
        make_log(displays, folder)
        path = folder / "part-1.parquet"
        table = pq.read_table(path)
        clicked = [any(clicks) for clicks in table.column("clicks").to_pylist()].index(True)
        rows = [row for row in range(table.num_rows) if row != clicked]
        pq.write_table(table.take(rows), path)

    monkeypatch.setattr(demo, "make_log", lose_a_session)
    monkeypatch.setattr(demo, "bubblerank", in_this_process)
    assert demo.main(tmp_path / "demo") == 1
    assert "FAILED: the command above ended with exit code 1" in capsys.readouterr().out


def test_a_command_that_fails_stops_the_demo_with_its_exit_code(demo, tmp_path, monkeypatch):
    called = []

    def fail(*words):
        called.append(words[0])
        return 7

    monkeypatch.setattr(demo, "bubblerank", fail)
    assert demo.main(tmp_path / "demo") == 7
    assert called == ["simulate"]


def test_the_demos_production_lists_are_good_but_not_the_best(demo):
    for query, model in demo.QUERIES.items():
        problem = demo.make_problem(query, model)
        best = sorted(problem.attraction, reverse=True)
        assert list(problem.attraction) != best
        assert sum(problem.attraction[:5]) > 0.75 * sum(best[:5])
