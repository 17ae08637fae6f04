"""`bubblerank replay` end to end, on logs whose right answer is known."""

import json
import random
from collections import Counter
from functools import cache

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import schemas
from bubblerank.compare import compare_runs
from bubblerank.config import RankerConfig
from bubblerank.problems import Problem
from bubblerank.run_folder import RunFolder
from commands.main import main
from pipelines.base_lists import read_base_lists
from tests import naive
from tests.reference_logs import (
    FLAGS,
    PROBLEMS,
    SECOND,
    START,
    books,
    read_statistics,
    sessions,
    shuffled,
    statistic,
    trajectory,
    write_log,
)

SHOES = PROBLEMS[0]


def same_rows(run, other, *parts):
    found = {part.part: part.same for part in compare_runs(RunFolder(run), RunFolder(other))}
    return all(found[part] for part in parts or found)


def without_steps(rows):
    return [{**row, "step": None} for row in rows]


def off_policy(row, kind):
    """A session that the ranker cannot have displayed, between this one and the next."""
    items = list(row["items"])
    lists = {
        "reversed": items[::-1],
        "unseen": ["nobody-knows", *items[1:]],
        "short": items[:-1],
        "long": [*items, "one-more"],
    }
    return {
        **row,
        "session_id": f"{row['session_id']}-{kind}",
        "event_time": row["event_time"] + SECOND / 2,
        "items": lists[kind],
        "clicks": [True] + [False] * (len(lists[kind]) - 1),
    }


@pytest.mark.parametrize(
    ("suffix", "with_step"),
    [(".parquet", True), (".parquet", False), (".avro", True), (".jsonl", False)],
)
def test_a_log_of_the_reference_ranker_ends_in_exactly_its_statistics(
    replay, tmp_path, known_sessions, known_statistics, suffix, with_step
):
    rows = known_sessions if with_step else without_steps(known_sessions)
    run = replay(write_log(tmp_path / f"log{suffix}", rows))
    assert read_statistics(run) == known_statistics
    assert books(run) == (len(rows), 0, 0, 0, 0)


def test_a_shuffled_doubled_log_with_garbage_and_foreign_lists_ends_the_same(
    replay, tmp_path, known_sessions, known_statistics
):
    foreign = [
        off_policy(row, ("reversed", "unseen", "short", "long")[place % 4])
        for place, row in enumerate(known_sessions[::7])
    ]
    for with_step in (True, False):
        rows = known_sessions + foreign
        rows = shuffled(rows + rows if with_step else without_steps(rows + rows))
        third = len(rows) // 3
        write_log(tmp_path / "1.parquet", rows[:third])
        write_log(tmp_path / "2.avro", rows[third : 2 * third])
        write_log(tmp_path / "3.jsonl", rows[2 * third :])
        lines = (tmp_path / "3.jsonl").read_bytes().splitlines(keepends=True)
        garbage = [b"{not json\n", b"[1, 2]\n", b"\xff\xfe\n", b'{"query": 7}\n']
        (tmp_path / "3.jsonl").write_bytes(b"".join(garbage + lines + garbage))
        run = replay(*(tmp_path / name for name in ("3.jsonl", "1.parquet", "2.avro")))
        assert read_statistics(run) == known_statistics
        assert books(run) == (len(known_sessions), 8, len(rows) // 2, len(foreign), 0)


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory, known_sessions, problems_file):
    """The known sessions, shuffled, from one file, with snapshots; and that file."""
    folder = tmp_path_factory.mktemp("plain")
    log = write_log(folder / "log.parquet", shuffled(known_sessions))
    words = ["replay", "--log", log, "--base-lists", str(problems_file), *FLAGS, *SNAPSHOTS]
    assert main([*words, "--out", str(folder / "run")]) == 0
    return folder / "run", log


SNAPSHOTS = ("--snapshot-every", "5m")


def test_displays_are_the_logged_sessions_with_their_steps_and_base_lists(
    plain_run, trajectories, known_sessions
):
    run, _ = plain_run
    found = {row["session_id"]: row for row in pq.read_table(run / "displays").to_pylist()}
    assert len(found) == len(known_sessions)
    for problem, advance in trajectories.items():
        rows = sessions(problem, advance)
        for row, base in zip(rows, advance.displays.base, strict=True):
            assert found[row["session_id"]] == {
                "ranker": "bubblerank",
                "query": problem.query,
                "run": 0,
                "step": row["step"],
                "session_id": row["session_id"],
                "event_time": row["event_time"],
                "base": [problem.items[item] for item in base],
                "displayed": row["items"],
                "clicks": row["clicks"],
            }


def test_the_size_of_blocks_changes_no_row(replay, plain_run):
    expected, log = plain_run
    assert same_rows(expected, replay(log, flags=(*SNAPSHOTS, "--block-sessions", 7)))


def test_the_number_of_workers_changes_no_row(replay, plain_run):
    expected, log = plain_run
    assert same_rows(expected, replay(log, flags=(*SNAPSHOTS, "--", "--direct_num_workers=2")))


def test_the_order_of_sessions_in_a_file_changes_no_row(
    replay, plain_run, known_sessions, tmp_path
):
    expected, _ = plain_run
    log = write_log(tmp_path / "ordered.parquet", known_sessions)
    assert same_rows(expected, replay(log, flags=SNAPSHOTS))


def test_the_number_and_order_of_files_change_no_row(replay, plain_run, known_sessions, tmp_path):
    expected, _ = plain_run
    rows = shuffled(known_sessions, seed=2)
    logs = [write_log(tmp_path / f"part-{n}.parquet", rows[n::5]) for n in range(5)]
    files = (tmp_path / "part-[2-9]*", logs[1], logs[0], logs[4])
    assert same_rows(expected, replay(*files, flags=SNAPSHOTS))


class NotDrawnError(Exception):
    pass


class LoggedUser:
    """Clicks as logged, if the ranker draws the logged list."""

    def __init__(self, items, clicks):
        self.items, self.logged = items, clicks

    def clicks(self, shown, draw):
        if shown != self.items:
            raise NotDrawnError
        return dict(enumerate(map(int, self.logged), start=1))


def naive_rejection_replay(problem, rows, seed):
    """Li et al. (2011) around the naive BubbleRank: a session counts if its list is drawn."""
    ranker = naive.BubbleRank(len(problem.items), len(problem.items), delta=0.1)
    key, consumed = naive.key_of(seed, problem.query, 0), 0
    for row in sorted(rows, key=lambda row: (row["event_time"], row["session_id"].encode())):
        logged = [problem.items.index(item) + 1 for item in row["items"]]
        try:
            ranker.step(consumed + 1, key, LoggedUser(logged, row["clicks"]))
            consumed += 1
        except NotDrawnError:
            pass
    pairs = {
        (problem.items[i - 1], problem.items[j - 1]): (ranker.s[i, j], ranker.n[i, j])
        for i, j in ranker.n
        if i < j and ranker.n[i, j]
    }
    return consumed, list(problem.items), [problem.items[i - 1] for i in ranker.base], pairs


def uniform_log(problem, count):
    """Every list is as likely as every other; clicks go by the item alone."""
    rng = random.Random(problem.query)
    attraction = dict(zip(problem.items, problem.attraction, strict=True))
    rows = []
    for number in range(count):
        items = rng.sample(problem.items, len(problem.items))
        clicks = [rng.random() < attraction[item] for item in items]
        rows.append(session(problem.query, number, items, clicks))
    return rows


def test_matching_learns_what_a_naive_rejection_replay_learns(replay, tmp_path):
    problems = (
        Problem("three", tuple("abc"), "CM", (0.05, 0.4, 0.9)),
        Problem("four", tuple("wxyz"), "CM", (0.1, 0.4, 0.05, 0.9)),
    )
    lists = tmp_path / "lists.jsonl"
    write_lists(lists, {problem.query: problem.items for problem in problems})
    rows, expected = [], {}
    for problem in problems:
        logged = uniform_log(problem, 4000)
        rows += logged
        expected[problem.query] = naive_rejection_replay(problem, logged, seed=9)
    log = write_log(tmp_path / "log.parquet", shuffled(rows))
    run = replay(log, base_lists=lists, flags=("--feedback", "match", "--seed", 9))
    assert read_statistics(run) == expected
    consumed = sum(step for step, *_ in expected.values())
    assert books(run) == (consumed, 0, 0, len(rows) - consumed, 0)
    assert all(base != initial for _, initial, base, _ in expected.values())


def two_days(rows):
    """The first 400 seconds and the rest, in which the last problem's query is not seen."""
    noon, gone = START + 400 * SECOND, PROBLEMS[2].query
    late = [row for row in rows if row["event_time"] >= noon and row["query"] != gone]
    return [row for row in rows if row["event_time"] < noon], late


def test_day_one_then_day_two_resumed_equals_both_days_at_once(replay, tmp_path, known_sessions):
    days = two_days(without_steps(known_sessions))
    logs = [write_log(tmp_path / f"{n}.avro", shuffled(day)) for n, day in enumerate(days)]
    day_1 = replay(logs[0], out="day-1")
    day_2 = replay(logs[1], out="day-2", flags=("--resume", day_1 / "statistics"))
    assert same_rows(day_2, replay(*logs, out="both"), "statistics")
    gone = PROBLEMS[2].query
    assert read_statistics(day_2)[gone] == read_statistics(day_1)[gone]
    assert books(day_2) == (len(days[1]), 0, 0, 0, 0)


def test_snapshots_of_resumed_days_are_those_of_both_days(replay, tmp_path, known_sessions):
    days = two_days(known_sessions)
    logs = [write_log(tmp_path / f"{n}.parquet", shuffled(day)) for n, day in enumerate(days)]
    snapshots = ("--snapshot-every", "100s")
    both = replay(*logs, out="both", flags=snapshots)
    day_1 = replay(logs[0], out="day-1", flags=snapshots)
    blocks = ("--block-sessions", 50)
    day_2 = replay(logs[1], out="day-2", flags=(*snapshots, *blocks, "--resume", day_1))
    assert read_statistics(day_2) == read_statistics(both)
    assert snapshots_of(both) == snapshots_of(day_1) | snapshots_of(day_2)


def snapshots_of(run):
    rows = pq.read_table(run / "statistics").to_pylist()
    return {json.dumps(row, sort_keys=True) for row in rows}


@pytest.mark.parametrize("cut", [9_000, 10_300])
def test_resuming_with_an_unknown_horizon_doubles_it_at_the_same_session(replay, tmp_path, cut):
    config = RankerConfig()
    advance = doubled_trajectory()
    rows = sessions(SHOES, advance, with_step=False)
    logs = [
        write_log(tmp_path / "1.parquet", rows[:cut]),
        write_log(tmp_path / "2.parquet", rows[cut:]),
    ]
    day_1 = replay(logs[0], out="day-1", config=())
    day_2 = replay(logs[1], out="day-2", config=(), flags=("--resume", day_1))
    assert config.doubling and advance.progress.state.horizon == 20_000
    assert read_statistics(day_2) == {SHOES.query: statistic(SHOES, advance.progress.state)}
    assert books(day_2) == (len(rows) - cut, 0, 0, 0, 0)
    assert pq.read_table(day_2 / "statistics").column("horizon").to_pylist() == [20_000]


@cache
def doubled_trajectory():
    return trajectory(SHOES, 10_600, RankerConfig())


def test_resuming_from_no_statistics_is_refused(bubblerank, tmp_path, known_sessions):
    log = write_log(tmp_path / "log.jsonl", known_sessions[:3])
    out = tmp_path / "run"
    ended = bubblerank("replay", "--log", log, "--out", out, "--resume", tmp_path / "nowhere")
    assert ended.code == 2
    assert "names no statistics: give a run" in ended.err
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"ranker": ["bubblerank"], "step": [1]}), other)
    ended = bubblerank("replay", "--log", log, "--out", out, "--resume", other)
    assert ended.code == 2, ended.err
    assert f"{other} holds no statistics: it has no column query, run, horizon" in ended.err
    other.write_bytes(b"PAR1 and no more")
    ended = bubblerank("replay", "--log", log, "--out", out, "--resume", other)
    assert ended.code == 2, ended.err
    assert f"{other} cannot be read" in ended.err
    assert not out.exists()


def test_statistics_that_contradict_themselves_are_refused(
    bubblerank, tmp_path, known_sessions, replay
):
    log = write_log(tmp_path / "log.jsonl", known_sessions[:3])
    row = pq.read_table(replay(log) / "statistics").to_pylist()[0]
    forged = tmp_path / "forged.parquet"
    table = pa.Table.from_pylist([{**row, "base": ["a"]}], schema=schemas.arrow_schema("statistic"))
    pq.write_table(table, forged)
    ended = bubblerank("replay", "--log", log, "--out", tmp_path / "out", "--resume", forged)
    assert ended.code == 2
    assert "base must be a permutation of initial" in ended.err


def test_queries_without_a_base_list_are_counted_and_nothing_else(
    replay, tmp_path, known_sessions, known_statistics
):
    """The last problem's query is in none of the files of lists, which say the same."""
    lists = {problem.query: problem.items for problem in PROBLEMS[:2]}
    paths = [tmp_path / f"lists{suffix}" for suffix in (".jsonl", ".avro", ".parquet")]
    for path in paths:
        write_lists(path, lists)
        assert read_base_lists(str(path)) == lists
    run = replay(write_log(tmp_path / "log.parquet", known_sessions), base_lists=paths[1])
    assert read_statistics(run) == {p.query: known_statistics[p.query] for p in PROBLEMS[:2]}
    missing = sum(row["query"] == PROBLEMS[2].query for row in known_sessions)
    assert books(run) == (len(known_sessions) - missing, 0, 0, 0, missing)


def write_lists(path, lists):
    records = [{"query": query, "items": list(items)} for query, items in lists.items()]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    else:
        strings = {"type": "array", "items": "string"}
        fields = [{"name": "query", "type": "string"}, {"name": "items", "type": strings}]
        with path.open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "base", "fields": fields}, records)


def session(query, number, items, clicks=None, seconds=None):
    return {
        "query": query,
        "session_id": f"{query}-{number:06}",
        "event_time": START + (number if seconds is None else seconds) * SECOND,
        "items": list(items),
        "clicks": [False] * len(items) if clicks is None else clicks,
        "step": None,
    }


def test_the_most_frequent_list_is_the_one_that_a_counter_finds(replay, tmp_path):
    """Ties go to the list whose items come first in the order of their bytes."""
    rng = random.Random(3)
    choices = [("b", "a"), ("a", "b"), ("aa", "b"), ("é", "z"), ("z",), ("b",)]
    rows = [session(f"q{n % 11}", n, rng.choice(choices[: 2 + n % 5])) for n in range(11 * 12)] + [
        session("tie", n, ("b",) if n % 2 else ("aa",)) for n in range(10)
    ]
    log = write_log(tmp_path / "log.parquet", shuffled(rows))
    run = replay(log, base_lists="most-frequent", flags=("--block-sessions", 3))
    counts = {}
    for row in rows:
        counts.setdefault(row["query"], Counter())[tuple(row["items"])] += 1
    expected = {
        query: min(lists, key=lambda one: (-lists[one], [item.encode() for item in one]))
        for query, lists in counts.items()
    }
    assert expected["tie"] == ("aa",)
    found = {query: tuple(initial) for query, (_, initial, *_) in read_statistics(run).items()}
    assert found == expected


def test_the_first_list_is_the_first_by_event_time_then_session_id(replay, tmp_path):
    rows = [
        session("late", 1, "ba", seconds=9),
        session("late", 2, "ab", seconds=8),
        session("tie", 4, "cd", seconds=7),
        session("tie", 3, "dc", seconds=7),
    ]
    run = replay(write_log(tmp_path / "log.jsonl", rows), base_lists="first")
    found = {query: initial for query, (_, initial, *_) in read_statistics(run).items()}
    assert found == {"late": ["a", "b"], "tie": ["d", "c"]}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"query": "q"}', "lists.jsonl, line 1: a base list is a record with the fields"),
        ('{"query": "", "items": ["a"]}', "lists.jsonl, line 1: query"),
        ('{"query": "q", "items": ["a", "a"]}', "lists.jsonl, line 1: items"),
        ('{"query": "q", "items": ["a"]}\n{"query": "q", "items": ["b"]}', "line 2: query 'q' has"),
        ("[]", "lists.jsonl, line 1: a base list is a record"),
        ("nonsense", "lists.jsonl, line 1: not JSON"),
        (None, "does not exist"),
    ],
)
def test_a_bad_file_of_base_lists_is_refused(bubblerank, tmp_path, content, complaint):
    log = write_log(tmp_path / "log.jsonl", [session("q", 1, "ab")])
    lists = tmp_path / "lists.jsonl"
    if content is not None:
        lists.write_text(content)
    out = tmp_path / "run"
    ended = bubblerank("replay", "--log", log, "--base-lists", lists, "--out", out)
    assert ended.code == 2
    assert complaint in ended.err
    assert not out.exists()


def test_fewer_positions_than_items_learn_what_the_reference_learned(replay, tmp_path):
    config = RankerConfig(positions=3, delta=0.1)
    advance = trajectory(SHOES, 1500, config, seed=4)
    state = advance.progress.state
    assert set(state.base[:3]) != {0, 1, 2}
    log = write_log(tmp_path / "log.parquet", shuffled(sessions(SHOES, advance)))
    run = replay(log, flags=("--positions", 3, "--seed", 4))
    assert read_statistics(run) == {SHOES.query: statistic(SHOES, state)}
    assert books(run) == (1500, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("config", "flags"),
    [
        (RankerConfig(horizon=30), ("--horizon", "30")),
        (RankerConfig(delta=0.1, freeze_decided=True), (*FLAGS, "--freeze-decided")),
    ],
    ids=["horizon", "freeze"],
)
def test_the_rankers_flags_hold_end_to_end(replay, tmp_path, config, flags):
    advance = trajectory(SHOES, 1500, config)
    log = write_log(tmp_path / "log.parquet", sessions(SHOES, advance))
    run = replay(log, config=flags)
    assert read_statistics(run) == {SHOES.query: statistic(SHOES, advance.progress.state)}
    row = pq.read_table(run / "statistics").to_pylist()[0]
    assert row["log_inverse_delta"] == config.log_inverse_delta(row["horizon"])


def test_a_log_that_never_randomises_is_warned_of_even_when_quiet(bubblerank, tmp_path):
    rows = [session("q", n, "abcd", [n % 2 == 0, False, False, False]) for n in range(200)]
    log = write_log(tmp_path / "log.parquet", rows)
    words = ["replay", "--log", log, "--out", tmp_path / "run", "--quiet"]
    ended = bubblerank(*words, "--format", "json")
    assert ended.code == 0
    assert "WARNING: the exchanges in this log are no fair coins: 0 of 300" in ended.err
    assert ended.json["fair_coins"] is False
    assert ended.json["exchanged"] == 0.0


def test_too_few_matches_are_refused_a_verdict(bubblerank, tmp_path):
    rows = [session("q", n, "abcd") for n in range(300)]
    log = write_log(tmp_path / "log.parquet", rows)
    words = ["replay", "--log", log, "--out", tmp_path / "run", "--feedback", "match", "--quiet"]
    ended = bubblerank(*words, "--format", "json")
    assert ended.code == 0
    assert "WARNING: no verdict: half of the queries matched" in ended.err
    assert ended.json["trusted"] is False
    assert ended.json["consumed"]["least"] == ended.json["ranked"] < 100


def test_a_randomised_log_is_not_warned_of(bubblerank, tmp_path, known_sessions, problems_file):
    log = write_log(tmp_path / "log.parquet", known_sessions)
    words = ["replay", "--log", log, "--out", tmp_path / "run", "--base-lists", problems_file]
    ended = bubblerank(*words, *FLAGS, "--format", "json")
    assert "WARNING" not in ended.err
    assert ended.json["fair_coins"] is True
    assert 0.45 < ended.json["exchanged"] < 0.55


def test_more_rejects_than_allowed_end_in_exit_code_4_with_the_run_kept(replay, tmp_path):
    rows = [session("q", n, "ab") for n in range(8)]
    log = tmp_path / "log.jsonl"
    write_log(log, rows)
    log.write_text(log.read_text() + "garbage\n" * 2)
    kept = replay(log, base_lists="first", flags=("--max-reject-rate", "0.2"))
    assert books(kept) == (8, 2, 0, 0, 0)
    run = replay(log, base_lists="first", flags=("--max-reject-rate", "0.19"), code=4)
    assert books(run) == (8, 2, 0, 0, 0)


def test_snapshots_hold_the_statistics_at_the_end_of_each_interval(replay, tmp_path, trajectories):
    advance = trajectories[SHOES]
    rows = sessions(SHOES, advance)
    log = write_log(tmp_path / "log.parquet", shuffled(rows))
    run = replay(log, flags=("--snapshot-every", "150s"))
    found = sorted(row["step"] for row in pq.read_table(run / "statistics").to_pylist())
    last = {}
    for row in rows:
        last[int(row["event_time"].timestamp()) // 150] = row["step"]
    assert found == sorted([*last.values(), len(rows)])
    early = trajectory(SHOES, found[2])
    table = pq.read_table(run / "statistics", filters=[("step", "=", found[2])])
    pairs = {(p["upper"], p["lower"]): p["wins"] for p in table.to_pylist()[0]["pairs"]}
    assert pairs == {k: wins for k, (wins, _) in statistic(SHOES, early.progress.state)[3].items()}


def test_the_logs_own_column_names_are_understood(replay, tmp_path, known_statistics):
    advance = trajectory(SHOES, 900)
    table = pa.Table.from_pylist(sessions(SHOES, advance), schema=schemas.arrow_schema("session"))
    names = {"query": "q", "items": "urls"}
    pq.write_table(
        table.rename_columns([names.get(name, name) for name in table.column_names]),
        tmp_path / "log.parquet",
    )
    run = replay(tmp_path / "log.parquet", flags=("--map", "query=q,items=urls"))
    assert read_statistics(run)[SHOES.query] == known_statistics[SHOES.query]


@pytest.mark.parametrize("text", ["query", "query=", "=q", "query=a,query=b", "who=q"])
def test_a_bad_map_is_refused(bubblerank, tmp_path, text):
    log = write_log(tmp_path / "log.jsonl", [session("q", 1, "ab")])
    ended = bubblerank("replay", "--log", log, "--out", tmp_path / "run", "--map", text)
    assert ended.code == 2
    assert not (tmp_path / "run").exists()


def test_the_manifest_tells_everything_about_a_run(plain_run):
    run, log = plain_run
    manifest = json.loads((run / "run.json").read_text())
    books = ("read", "ranked", "rejected", "duplicate", "off_policy", "no_base_list")
    assert set(books) <= manifest["counters"].keys()
    assert manifest["command"] == "replay"
    assert manifest["seed"] == 0
    assert (manifest["runner"], manifest["engine"]) == ("DirectRunner", "FnApiRunner")
    assert manifest["settings"]["logs"] == [log]
    assert manifest["settings"]["delta"] == 0.1
    assert manifest["settings"]["feedback"] == "logged"
    for kind, fingerprint in manifest["schemas"].items():
        assert fingerprint == schemas.fingerprint(kind)
    assert manifest["rows"]["displays"] == manifest["counters"]["ranked"]


def test_a_folder_with_something_in_it_is_left_alone(bubblerank, replay, tmp_path, known_sessions):
    log = write_log(tmp_path / "log.parquet", known_sessions[:50])
    run = replay(log)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    ended = bubblerank("replay", "--log", log, "--out", run)
    assert ended.code == 2
    assert "is not empty: name another folder or add --overwrite" in ended.err
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    assert books(replay(write_log(tmp_path / "less.parquet", known_sessions[:7])))[0] == 7


def test_a_failing_pipeline_ends_in_one_line_and_leaves_no_half_run(
    bubblerank, tmp_path, known_sessions, monkeypatch
):
    def fail(*_):
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr("bubblerank.stream.replay.admit", fail)
    log = write_log(tmp_path / "log.parquet", known_sessions[:50])
    ended = bubblerank("replay", "--log", log, "--out", tmp_path / "run", "--quiet")
    assert ended.code == 1
    assert ended.err == "bubblerank: the pipeline failed: RuntimeError: the disk is on fire\n"
    assert ended.out == ""
    assert list((tmp_path / "run").iterdir()) == []
