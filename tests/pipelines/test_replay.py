import pyarrow.parquet as pq

from bubblerank.stream.replay import Replay
from pipelines.engine import choose_engine, run_pipeline
from pipelines.replay import ReplaySettings, build
from tests.reference_logs import (
    CONFIG,
    PROBLEMS,
    read_statistics,
    sessions,
    shuffled,
    statistic,
    trajectory,
    write_log,
)


def run(tmp_path, rows, **changes):
    log = write_log(tmp_path / "log.parquet", rows)
    lists = {problem.query: problem.items for problem in PROBLEMS}
    given = {"replay": Replay(CONFIG), "logs": (log,), "out": str(tmp_path), "base_lists": lists}
    settings = ReplaySettings(**{**given, **changes})
    options, _ = choose_engine()
    return run_pipeline(lambda pipeline: build(pipeline, settings), options)


def test_a_replay_built_without_the_command_line_learns_what_the_reference_learned(tmp_path):
    problem = PROBLEMS[1]
    advance = trajectory(problem, 500)
    rows = sessions(problem, advance)
    counters = run(tmp_path, shuffled(rows + rows[:50]), block_sessions=20)
    assert read_statistics(tmp_path) == {problem.query: statistic(problem, advance.progress.state)}
    assert (counters["read"], counters["ranked"], counters["duplicate"]) == (550, 500, 50)
    assert counters["queries"] == 1
    assert 0 < counters["exchanges"] < counters["exchange_chances"]


def test_a_query_without_a_base_list_leaves_no_row(tmp_path):
    problem = PROBLEMS[0]
    counters = run(tmp_path, sessions(problem, trajectory(problem, 30)), base_lists={})
    assert counters["no_base_list"] == counters["read"] == 30
    assert "queries" not in counters
    assert not (tmp_path / "displays").exists() or not list((tmp_path / "displays").iterdir())


def test_a_base_list_without_sessions_leaves_no_row(tmp_path):
    problem = PROBLEMS[0]
    run(tmp_path, sessions(problem, trajectory(problem, 30)))
    assert set(read_statistics(tmp_path)) == {problem.query}
    assert pq.read_table(tmp_path / "statistics").num_rows == 1
