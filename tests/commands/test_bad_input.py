"""What a user meets with a log that is not as it should be: clear errors, or rejects."""

import json

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import schemas
from tests.reference_logs import (
    PROBLEMS,
    SECOND,
    START,
    books,
    read_statistics,
    reasons,
    sessions,
    trajectory,
    write_log,
)

GOOD = {
    "query": "shoes",
    "session_id": "s",
    "event_time": START,
    "items": ["a", "b", "c"],
    "clicks": [False, False, False],
    "step": None,
}


def good(number, **fields):
    time = START + number * SECOND
    return {**GOOD, "session_id": f"s{number:07}", "event_time": time, **fields}


@pytest.fixture
def log(tmp_path):
    def write(rows, name="log.jsonl"):
        return write_log(tmp_path / name, rows)

    return write


@pytest.fixture
def first(replay):
    """Replay with each query's first list as its base list."""

    def call(*logs, **options):
        return replay(*logs, base_lists="first", **options)

    return call


def test_an_empty_log_is_a_run_of_nothing_that_says_so(bubblerank, log, tmp_path):
    run = tmp_path / "run"
    logs = [log([], name) for name in ("log.parquet", "log.avro", "log.jsonl")]
    ended = bubblerank("replay", "--log", *logs, "--out", run)
    assert ended.code == 0
    assert "the log holds no sessions: nothing was learned" in ended.err
    assert "Traceback" not in ended.err
    assert books(run) == (0, 0, 0, 0, 0)


def test_files_that_are_not_there_are_all_named_at_once(bubblerank, tmp_path):
    run = tmp_path / "run"
    missing = [tmp_path / "gone.parquet", tmp_path / "none-*.avro", tmp_path]
    ended = bubblerank("replay", "--log", *missing, "--out", run)
    assert ended.code == 2
    lines = ended.err.splitlines()
    assert lines[0].endswith("gone.parquet matches no file: check the path, and quote the glob")
    assert lines[1].endswith("none-*.avro matches no file: check the path, and quote the glob")
    assert "is a folder: name its files, as in" in lines[2]
    assert len(lines) == 3
    assert not run.exists()


def test_a_file_of_no_known_format_is_refused(bubblerank, tmp_path):
    (tmp_path / "log.csv").write_text("query,items\n")
    ended = bubblerank("replay", "--log", tmp_path / "log.csv", "--out", tmp_path / "run")
    assert ended.code == 2
    assert "log.csv" in ended.err and "--log-format" in ended.err


@pytest.mark.parametrize("name", ["log.parquet", "log.avro"])
def test_a_truncated_file_gives_what_is_readable_and_one_reject(first, tmp_path, name):
    rows = [good(n) for n in range(4000)]
    path = tmp_path / name
    if name == "log.avro":
        with path.open("wb") as file:
            fastavro.writer(file, schemas.load("session"), rows, sync_interval=4000)
    else:
        write_log(path, rows)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    run = first(path)
    ranked, rejected, *others = books(run)
    assert reasons(run) == ["truncated_file"] * rejected
    assert rejected == 1 and others == [0, 0, 0]
    assert (ranked == 0) if name == "log.parquet" else (2000 < ranked < 3000)


def test_a_file_that_is_something_else_is_one_reject_beside_the_good_ones(first, log, tmp_path):
    contents = [b"", b"PAR1", b"no parquet at all", b"Obj\x01", b"\x00" * 5000]
    paths = []
    for number, content in enumerate(contents):
        for suffix in ("avro", "parquet"):
            paths.append(tmp_path / f"{number}.{suffix}")
            paths[-1].write_bytes(content)
    run = first(log([good(n) for n in range(5)]), tmp_path / "?.*")
    assert books(run) == (5, len(paths), 0, 0, 0)
    sources = sorted(row["source"] for row in pq.read_table(run / "rejects").to_pylist())
    assert sources == sorted(map(str, paths))
    assert set(reasons(run)) == {"truncated_file", "not_parsable"}


def test_an_out_folder_that_cannot_be_made_is_refused(bubblerank, log):
    ended = bubblerank("replay", "--log", log([good(1)]), "--out", "/proc/nowhere/run", "--quiet")
    assert ended.code == 2
    assert ended.err.startswith("bubblerank: --out /proc/nowhere/run cannot be made: ")


def test_another_schema_is_rejected_with_its_reason(first, log, tmp_path):
    pq.write_table(pa.table({"who": ["x", "y"], "what": [1, 2]}), tmp_path / "other.parquet")
    fields = [{"name": "who", "type": "string"}]
    with (tmp_path / "other.avro").open("wb") as file:
        schema = {"type": "record", "name": "other", "fields": fields}
        fastavro.writer(file, schema, [{"who": "x"}])
    typed = pa.table({**{name: ["1"] for name in ("query", "session_id")}, "items": [3]})
    pq.write_table(typed, tmp_path / "typed.parquet")
    others = [tmp_path / name for name in ("other.parquet", "other.avro", "typed.parquet")]
    run = first(log([good(n) for n in range(5)]), *others)
    ranked, rejected, *_ = books(run)
    assert ranked == 5
    assert rejected == 4
    assert set(reasons(run)) <= {"wrong_schema", "wrong_type"}


def test_every_bad_row_is_rejected_for_its_own_reason_and_no_good_one_is_lost(first, tmp_path):
    bad = {
        "missing_query": [good(1, query=None), good(2, query="")],
        "missing_session_id": [good(3, session_id=None), good(4, session_id="")],
        "bad_event_time": [good(5, event_time=None), good(6, event_time="yesterday")],
        "no_items": [good(7, items=None, clicks=None), good(8, items=[], clicks=[])],
        "too_many_items": [good(9, items=[str(n) for n in range(1001)], clicks=[True] * 1001)],
        "empty_item": [good(10, items=["a", "", "c"]), good(11, items=["a", None, "c"])],
        "repeated_item": [good(12, items=["a", "b", "a"])],
        "clicks_length": [
            good(13, clicks=[True]),
            good(14, clicks=[]),
            good(15, clicks=[True] * 4),
        ],
        "null_click": [good(16, clicks=[True, None, False])],
        "wrong_type": [good(17, query=7), good(18, items="abc"), good(19, clicks=[3, 0, 0])],
        "bad_step": [good(20, step=-1)],
    }
    rows = [row for rows in bad.values() for row in rows]
    run = first(
        write_log(tmp_path / "bad.jsonl", rows),
        write_log(tmp_path / "good.jsonl", [good(n) for n in range(100, 140)]),
    )
    expected = sorted(reason for reason, rows in bad.items() for _ in rows)
    assert reasons(run) == expected
    assert books(run) == (40, len(rows), 0, 0, 0)
    rejects = pq.read_table(run / "rejects").to_pylist()
    assert sorted(row["position"] for row in rejects) == list(range(1, len(rows) + 1))
    assert all(row["detail"] and row["payload"] for row in rejects)


def test_nulls_and_wrong_lengths_in_parquet_are_rejected_row_by_row(first, tmp_path):
    rows = [good(1), good(2, query=None), good(3, items=None), good(4, clicks=[True]), good(5)]
    nullable = pa.schema([field.with_nullable(True) for field in schemas.arrow_schema("session")])
    pq.write_table(pa.Table.from_pylist(rows, schema=nullable), tmp_path / "log.parquet")
    run = first(tmp_path / "log.parquet")
    assert books(run) == (2, 3, 0, 0, 0)
    assert reasons(run) == ["clicks_length", "missing_query", "no_items"]


def test_many_sessions_of_one_query_are_all_ranked(replay, tmp_path):
    """Time stands still for every thousand of them."""
    count = 100_000
    numbers = pa.array(range(count))
    table = pa.table(
        {
            "query": ["shoes"] * count,
            "session_id": numbers.cast(pa.string()),
            "event_time": pa.array([n // 1000 for n in range(count)], pa.timestamp("us", "UTC")),
            "items": [["a", "b"]] * count,
            "clicks": [[True, False]] * count,
            "step": pa.nulls(count, pa.int64()),
        }
    )
    pq.write_table(table, tmp_path / "log.parquet")
    run = replay(tmp_path / "log.parquet", base_lists="most-frequent", config=())
    assert books(run) == (count, 0, 0, 0, 0)
    assert read_statistics(run)["shoes"][0] == count


def test_many_queries_of_one_session_each_get_their_statistics(replay, tmp_path):
    count = 5_000
    table = pa.table(
        {
            "query": [f"query {n}" for n in range(count)],
            "session_id": ["the same for all"] * count,
            "event_time": pa.array(range(count), pa.timestamp("us", "UTC")),
            "items": [["a", "b"]] * count,
            "clicks": [[True, False]] * count,
            "step": pa.nulls(count, pa.int64()),
        }
    )
    pq.write_table(table, tmp_path / "log.parquet")
    run = replay(tmp_path / "log.parquet", base_lists="most-frequent")
    assert books(run) == (count, 0, 0, 0, 0)
    assert len(read_statistics(run)) == count


def test_queries_and_items_of_any_text_come_through_unchanged(first, tmp_path):
    """Unicode, 10 KB, control characters, and text that looks like something else."""
    texts = [
        "größe ☂ 日本語 \U0001f600 \u202e\u0301",
        "長" * 3400,
        "x" * 10_240,
        "line\nbreak\ttab\r\x1b[2J\x07\x7f\x00nul",
        " ",
        "null",
        "../../etc/passwd",
        '{"query": "json"}',
        "\ufeffbom",
    ]
    rows = [
        good(n, query=text, items=[text, f"{text}'", "c"], session_id=f"{text}{n}")
        for n, text in enumerate(texts)
    ]
    run = first(*(write_log(tmp_path / f"log.{kind}", rows) for kind in ("jsonl", "avro")))
    assert books(run) == (len(rows), 0, len(rows), 0, 0)
    statistics = read_statistics(run)
    assert statistics.keys() == set(texts)
    for text in texts:
        assert statistics[text][1] == [text, f"{text}'", "c"]
    shown = pq.read_table(run / "displays").to_pylist()
    assert sorted(row["session_id"] for row in shown) == sorted(r["session_id"] for r in rows)


def test_control_characters_never_reach_the_terminal(bubblerank, first, tmp_path):
    rows = [good(n, query="\x1b[2J\x07", items=["\x1b]0;x\x07", "b", "c"]) for n in range(3)]
    run = first(write_log(tmp_path / "log.parquet", rows))
    ended = bubblerank("inspect", run, "--query", "\x1b[2J\x07")
    assert ended.code == 0
    assert "\\x1b[2J\\x07" in ended.out
    assert not set(ended.out + ended.err) & {"\x1b", "\x07"}
    ended = bubblerank("inspect", run, "--query", "\x1b[3J")
    assert ended.code == 2
    assert "\x1b" not in ended.err


def test_items_of_no_base_list_are_off_policy(replay, log):
    rows = [good(n, items=["a", "b", "new"]) for n in range(5)]
    run = replay(log(rows))
    assert books(run) == (0, 0, 0, 5, 0)
    step, initial, base, pairs = read_statistics(run)["shoes"]
    assert (step, pairs) == (0, {})
    assert base == initial == list(PROBLEMS[0].items)


def test_clocks_that_run_backwards_are_put_in_order(replay, tmp_path, known_statistics):
    shoes = PROBLEMS[0]
    rows = sessions(shoes, trajectory(shoes, 900), with_step=False)
    run = replay(write_log(tmp_path / "log.jsonl", rows[::-1]))
    assert read_statistics(run) == {shoes.query: known_statistics[shoes.query]}


def test_any_year_of_an_event_time_is_ranked_and_no_other(first, tmp_path):
    times = ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "9999-12-31T23:59:59Z"]
    rows = [good(n, event_time=time, query=f"q{n}") for n, time in enumerate(times)]
    rows += [good(9, event_time="10000-01-01T00:00:00Z"), good(10, event_time=2**62)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))
    run = first(path, flags=("--snapshot-every", "1d"))
    assert books(run) == (3, 2, 0, 0, 0)
    assert reasons(run) == ["bad_event_time"] * 2


def test_a_log_of_rejects_alone_says_why_in_the_table(bubblerank, tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("garbage\n" * 3 + json.dumps({"query": "q"}) + "\n")
    ended = bubblerank("replay", "--log", path, "--out", tmp_path / "run")
    assert ended.code == 0
    assert "not_parsable 3, missing_session_id 1" in ended.out
