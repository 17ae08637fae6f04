import gzip
import io
import json

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from bubblerank.errors import UsageError
from bubblerank.sessions import avro, avro_container, jsonl, parquet, text_lines
from bubblerank.sessions.block import decode
from bubblerank.sessions.gather import gather_blocks
from bubblerank.sessions.parts import WHOLE_FILE
from bubblerank.sessions.readers import (
    FileFormat,
    LogFormat,
    check_column_map,
    format_of,
    read_part,
    split_file,
)
from bubblerank.sessions.rejects import Reason
from tests.sessions.strategies import sessions

AVRO_SCHEMA = schemas.load("session")


def read(data, log_format, column_map=None, compressed=False, parts=None):
    """Everything that a file gives: (position, session) pairs, rejects, and the books."""
    file, kind = io.BytesIO(data), FileFormat(LogFormat(log_format), compressed)
    found, rejects, read_count, outside = [], [], 0, 0
    for part in parts or split_file(file, kind):
        chunks = read_part(file, "log", kind, column_map, part)
        for gathered in gather_blocks(chunks, "log", rows_at_once=50):
            good = 0
            for _, _, block_data in gathered.blocks:
                block = decode(block_data)
                good += len(block)
                for i in range(len(block)):
                    found.append((int(block.position[i]), json.loads(block.to_payload(i))))
            rejects += [row for batch in gathered.rejects for row in batch.to_pylist()]
            assert gathered.read == good + gathered.rejected
            read_count += gathered.read
            outside += gathered.clicks_outside
    assert read_count == len(found) + len(rejects)
    return sorted(found, key=lambda pair: pair[0]), rejects, outside


def reasons(rejects):
    return [(row["position"], row["reason"]) for row in rejects]


def write_jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def write_parquet(rows, **options):
    table = pa.table(
        {
            "query": [row["query"] for row in rows],
            "session_id": [row["session_id"] for row in rows],
            "event_time": pa.array([r["event_time"] for r in rows], pa.timestamp("us", "UTC")),
            "items": pa.array([row["items"] for row in rows], pa.list_(pa.string())),
            "clicks": pa.array([row["clicks"] for row in rows], pa.list_(pa.bool_())),
            "step": pa.array([row["step"] for row in rows], pa.int64()),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def write_avro(rows, schema=AVRO_SCHEMA, **options):
    sink = io.BytesIO()
    fastavro.writer(sink, schema, rows, **options)
    return sink.getvalue()


WRITERS = {"jsonl": write_jsonl, "parquet": write_parquet, "avro": write_avro}


def row(number=0, **changes):
    return {
        "query": f"q{number % 3}",
        "session_id": f"s{number}",
        "event_time": 1_600_000_000_000_000 + number,
        "items": ["a", "b", f"c{number}"],
        "clicks": [True, False, True],
        "step": None,
        **changes,
    }


@pytest.mark.parametrize("log_format", WRITERS)
@given(rows=st.lists(sessions(), max_size=20))
@settings(max_examples=40)
def test_what_was_written_is_read_with_its_positions(log_format, rows):
    found, rejects, _ = read(WRITERS[log_format](rows), log_format)
    assert found == list(enumerate(rows, start=1))
    assert rejects == []


@pytest.mark.parametrize("log_format", WRITERS)
@given(garbage=st.binary(max_size=300))
def test_random_bytes_never_raise_and_the_books_balance(log_format, garbage):
    read(garbage, log_format)


@given(garbage=st.binary(max_size=300) | st.text("0123\tQC\n", max_size=100).map(str.encode))
def test_random_yandex_lines_never_raise_and_the_books_balance(garbage):
    read(garbage, "yandex")


@pytest.mark.parametrize("log_format", ["jsonl", "yandex"])
@given(garbage=st.binary(max_size=300))
def test_random_gzip_bytes_never_raise(log_format, garbage):
    read(garbage, log_format, compressed=True)
    read(gzip.compress(b"")[:10] + garbage, log_format, compressed=True)


SIXTY = [row(n) for n in range(60)]


@pytest.mark.parametrize("log_format", ["parquet", "avro"])
@given(data=st.data())
@settings(max_examples=150)
def test_a_damaged_file_never_raises_and_its_readable_rows_count(log_format, data):
    options = {"avro": {"sync_interval": 100}, "parquet": {"row_group_size": 20}}[log_format]
    whole = bytearray(WRITERS[log_format](SIXTY, **options))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    read(bytes(whole), log_format)


@pytest.mark.parametrize("codec", ["null", "deflate"])
@given(data=st.data())
@settings(max_examples=60)
def test_a_cut_off_avro_file_gives_its_whole_blocks_and_one_reject(codec, data):
    whole = write_avro(SIXTY, codec=codec, sync_interval=300)
    header = avro_container.read_header(io.BytesIO(whole))
    blocks, _ = avro_container.find_blocks(io.BytesIO(whole), header.sync, header.blocks_at, -1)
    length = data.draw(st.integers(1, len(whole) - 1))
    found, rejects, _ = read(whole[:length], "avro")
    rows = sum(block.rows for block in blocks if block.stop <= length)
    assert found == list(enumerate(SIXTY[:rows], start=1))
    if length in {header.blocks_at, *(block.stop for block in blocks)}:
        assert rejects == []
    elif length < 4:
        assert reasons(rejects) == [(None, Reason.NOT_PARSABLE)]
    else:
        assert reasons(rejects) == [(None, Reason.TRUNCATED_FILE)]


@given(st.data())
@settings(max_examples=40)
def test_a_cut_off_parquet_file_is_one_reject(data):
    whole = write_parquet(SIXTY)
    found, rejects, _ = read(whole[: data.draw(st.integers(4, len(whole) - 1))], "parquet")
    assert found == []
    assert reasons(rejects) == [(None, Reason.TRUNCATED_FILE)]


@given(st.data())
@settings(max_examples=40)
def test_a_cut_off_gzip_file_gives_its_whole_lines_and_one_reject(data):
    lines = write_jsonl(SIXTY)
    whole = gzip.compress(lines)
    found, rejects, _ = read(
        whole[: data.draw(st.integers(1, len(whole) - 1))], "jsonl", None, True
    )
    assert found == list(enumerate(SIXTY[: len(found)], start=1))
    assert reasons(rejects) == [(None, Reason.TRUNCATED_FILE)]


def test_gzip_members_one_after_the_other_are_one_file():
    data = gzip.compress(write_jsonl(SIXTY[:30])) + gzip.compress(write_jsonl(SIXTY[30:]))
    found, rejects, _ = read(data, "jsonl", compressed=True)
    assert found == list(enumerate(SIXTY, start=1))
    assert rejects == []


@pytest.mark.parametrize("log_format", WRITERS)
def test_an_empty_log_has_no_sessions_and_no_rejects(log_format):
    assert read(WRITERS[log_format]([]), log_format) == ([], [], 0)


@pytest.mark.parametrize("log_format", ["parquet", "avro"])
def test_a_file_without_a_byte_is_rejected(log_format):
    _, rejects, _ = read(b"", log_format)
    assert reasons(rejects) == [(None, Reason.NOT_PARSABLE)]


def test_parts_of_a_parquet_file_give_the_whole_file(monkeypatch):
    monkeypatch.setattr(parquet, "PART_ROWS", 15)
    data = write_parquet(SIXTY, row_group_size=7)
    parts = parquet.split_parquet(io.BytesIO(data))
    assert [part.first_position for part in parts] == [1, 15, 29, 43, 57]
    assert read(data, "parquet", parts=parts)[0] == list(enumerate(SIXTY, start=1))


def test_parts_of_an_avro_file_give_the_whole_file_and_its_cut_off_end_once(monkeypatch):
    monkeypatch.setattr(avro, "PART_BYTES", 500)
    data = write_avro(SIXTY, sync_interval=100)
    parts = avro.split_avro(io.BytesIO(data))
    assert len(parts) > 3
    assert read(data, "avro", parts=parts)[0] == list(enumerate(SIXTY, start=1))
    cut = data[:-5]
    found, rejects, _ = read(cut, "avro", parts=avro.split_avro(io.BytesIO(cut)))
    assert found == list(enumerate(SIXTY[: len(found)], start=1))
    assert reasons(rejects) == [(None, Reason.TRUNCATED_FILE)]


def test_chunks_are_bounded(monkeypatch):
    monkeypatch.setattr(jsonl, "CHUNK_ROWS", 7)
    kind = FileFormat(LogFormat.JSONL, False)
    chunks = list(read_part(io.BytesIO(write_jsonl(SIXTY)), "log", kind))
    assert [chunk.rows.num_rows for chunk in chunks] == [7] * 8 + [4]


def test_a_line_without_end_is_not_held_in_memory(monkeypatch):
    monkeypatch.setattr(text_lines, "MAX_LINE_BYTES", 10_000)
    monkeypatch.setattr(text_lines, "_READ_BYTES", 4_096)
    data = write_jsonl([row(0)]) + b'"' + b"x" * 100_000 + b"\n" + write_jsonl([row(1)])
    found, rejects, _ = read(data, "jsonl")
    assert found == [(1, row(0)), (3, row(1))]
    assert reasons(rejects) == [(2, Reason.NOT_PARSABLE)]


BROKEN_LINES = {
    "{": Reason.NOT_PARSABLE,
    "[1, 2]": Reason.NOT_PARSABLE,
    "null": Reason.NOT_PARSABLE,
    "[" * 100_000: Reason.NOT_PARSABLE,
    "{}": Reason.MISSING_QUERY,
    json.dumps(row(query=5)): Reason.WRONG_TYPE,
    json.dumps(row(query="\ud800")): Reason.WRONG_TYPE,
    json.dumps(row(items="abc")): Reason.WRONG_TYPE,
    json.dumps(row(items=["a", "b", 3])): Reason.WRONG_TYPE,
    json.dumps(row(items={"a": 1})): Reason.WRONG_TYPE,
    json.dumps(row(clicks=[1, 0, 2])): Reason.WRONG_TYPE,
    json.dumps(row(clicks="yes")): Reason.WRONG_TYPE,
    json.dumps(row(event_time=1.5)): Reason.WRONG_TYPE,
    json.dumps(row(event_time=True)): Reason.WRONG_TYPE,
    json.dumps(row(event_time=10**30)): Reason.BAD_EVENT_TIME,
    json.dumps(row(event_time="soon")): Reason.BAD_EVENT_TIME,
    json.dumps(row(step=1.5)): Reason.WRONG_TYPE,
    json.dumps(row(step=True)): Reason.WRONG_TYPE,
    json.dumps(row(step=2**70)): Reason.WRONG_TYPE,
    json.dumps(row(clicks=[True])): Reason.CLICKS_LENGTH,
    json.dumps(row(clicks=[True, None, False])): Reason.NULL_CLICK,
    json.dumps(row(items=["a", "a", "b"])): Reason.REPEATED_ITEM,
}


@pytest.mark.parametrize("line", BROKEN_LINES, ids=lambda line: line[:70])
def test_a_broken_line_is_rejected_with_its_number_and_spoils_no_other(line):
    data = write_jsonl([row(0)]) + b"\n" + line.encode() + b"\r\n" + write_jsonl([row(1)])
    found, rejects, _ = read(data, "jsonl")
    assert found == [(1, row(0)), (4, row(1))]
    assert reasons(rejects) == [(3, BROKEN_LINES[line])]
    assert rejects[0]["payload"]


def test_json_lines_take_iso_times_numeric_clicks_and_a_byte_order_mark():
    line = json.dumps(row(event_time="2020-09-13T12:26:40Z", clicks=[1, 0, 1]))
    found, rejects, _ = read(b"\xef\xbb\xbf" + line.encode(), "jsonl")
    assert found == [(1, row())]
    assert rejects == []


RENAMED = {"query": "q", "items": "urls", "event_time": "ts"}


@pytest.mark.parametrize("log_format", WRITERS)
def test_columns_of_other_names_are_mapped(log_format):
    if log_format == "jsonl":
        data = write_jsonl([{RENAMED.get(k, k): v for k, v in row(0).items()}])
    elif log_format == "avro":
        fields = [{**f, "name": RENAMED.get(f["name"], f["name"])} for f in AVRO_SCHEMA["fields"]]
        records = [{RENAMED.get(k, k): v for k, v in row(0).items()}]
        data = write_avro(records, {**AVRO_SCHEMA, "fields": fields})
    else:
        table = pq.read_table(io.BytesIO(write_parquet([row(0)])))
        sink = io.BytesIO()
        pq.write_table(table.rename_columns([RENAMED.get(n, n) for n in table.column_names]), sink)
        data = sink.getvalue()
    assert read(data, log_format, RENAMED)[0] == [(1, row(0))]
    unmapped = {r["reason"] for r in read(data, log_format)[1]}
    assert unmapped == {Reason.MISSING_QUERY if log_format == "jsonl" else Reason.WRONG_SCHEMA}


def test_a_map_that_exchanges_two_columns_is_followed():
    found, _, _ = read(
        write_parquet([row(0)]), "parquet", {"query": "session_id", "session_id": "query"}
    )
    assert found == [(1, row(0, query="s0", session_id="q0"))]


def test_avro_of_another_schema_rejects_every_row_and_says_what_it_found():
    schema = {"type": "record", "name": "R", "fields": [{"name": "query", "type": "string"}]}
    found, rejects, _ = read(write_avro([{"query": "a"}, {"query": "b"}], schema), "avro")
    assert found == []
    assert reasons(rejects) == [(1, Reason.WRONG_SCHEMA), (2, Reason.WRONG_SCHEMA)]
    assert (
        "no field session_id, event_time, items, clicks; the fields are query"
        in (rejects[0]["detail"])
    )
    assert rejects[1]["payload"] == '{"query": "b"}'


def test_avro_that_holds_no_records_rejects_every_row():
    _, rejects, _ = read(write_avro(["a", "b"], "string"), "avro")
    assert reasons(rejects) == [(1, Reason.WRONG_SCHEMA), (2, Reason.WRONG_SCHEMA)]


@pytest.mark.parametrize(
    ("logical", "scale"),
    [("timestamp-millis", 1000), ("timestamp-nanos", 0.001), ("timestamp-micros", 1)],
)
def test_avro_times_are_scaled_by_their_logical_type(logical, scale):
    kind = ["null", {"type": "long", "logicalType": logical}]
    fields = [
        {**f, "type": kind if f["name"] == "event_time" else f["type"]}
        for f in AVRO_SCHEMA["fields"]
    ]
    data = write_avro([row(0, event_time=5_000)], {**AVRO_SCHEMA, "fields": fields})
    assert read(data, "avro")[0] == [(1, row(0, event_time=5_000 * scale))]


def test_an_avro_time_that_no_calendar_shows_spoils_no_other_row():
    plain = json.loads(json.dumps(AVRO_SCHEMA))
    rows = [row(0), row(1, event_time=2**62), row(2)]
    found, rejects, _ = read(write_avro(rows, plain), "avro")
    assert [position for position, _ in found] == [1, 3]
    assert reasons(rejects) == [(2, Reason.BAD_EVENT_TIME)]


def test_an_unknown_avro_codec_is_a_reject():
    data = write_avro([row(0)]).replace(b"\x08null", b"\x08nine", 1)
    _, rejects, _ = read(data, "avro")
    assert [r["reason"] for r in rejects] == [Reason.NOT_PARSABLE]
    assert "rows 1 to 1" in rejects[0]["detail"]


def test_parquet_with_a_damaged_row_group_gives_the_others():
    rows = [row(n, session_id=f"s{n}" * 50) for n in range(60)]
    data = bytearray(write_parquet(rows, row_group_size=20, compression="gzip"))
    metadata = pq.read_metadata(io.BytesIO(bytes(data)))
    column = metadata.row_group(1).column(1)
    start = column.dictionary_page_offset + 40
    data[start : start + 40] = b"\xff" * 40
    found, rejects, _ = read(bytes(data), "parquet")
    assert [p for p, _ in found] == [*range(1, 21), *range(41, 61)]
    assert reasons(rejects) == [(None, Reason.TRUNCATED_FILE)]
    assert "rows 21 to 40 cannot be read" in rejects[0]["detail"]


@pytest.mark.parametrize("dictionary", [True, False, ["items.list.element"]])
def test_parquet_with_and_without_dictionaries_reads_the_same(dictionary):
    rows = [row(n % 5, session_id=f"s{n}") for n in range(3000)]
    data = write_parquet(rows, row_group_size=700, use_dictionary=dictionary)
    assert read(data, "parquet")[0] == list(enumerate(rows, start=1))


URLS = [str(100 + n) for n in range(10)]
YANDEX = f"""\
7\t0\tQ\t55\t1\t{chr(9).join(URLS)}
7\t3\tC\t102
7\t4\tC\t999
7\t9\tQ\t56\t1\t{chr(9).join(URLS)}
7\t9\tC\t100
7\t9\tC\t109
8\t1\tC\t100
8\t1\tQ\t55\t1\t{chr(9).join(URLS[:3])}
broken
8\t1\tC\t101
8\t1\tQ\t55
8\t1\tC\t100
9\tx\tQ\t55\t1\t100
9\t1\tX\t55
10\t0\tQ\t57\t1\t100\t100
11\t0\tQ\t\t1\t100
12\t0\tQ\t58\t1\t100
"""


@pytest.mark.parametrize("compressed", [False, True])
def test_a_yandex_log_reads_as_the_contract_says(compressed):
    data = gzip.compress(YANDEX.encode()) if compressed else YANDEX.encode()
    found, rejects, outside = read(data, "yandex", compressed=compressed)
    clicked = [(p, r["query"], [i for i, c in enumerate(r["clicks"]) if c]) for p, r in found]
    assert clicked == [(1, "55", [2]), (4, "56", [0, 9]), (8, "55", [1]), (17, "58", [])]
    assert [r["session_id"] for _, r in found] == ["7:1", "7:4", "8:8", "12:17"]
    assert [r["event_time"] for _, r in found] == [1_000, 4_000, 8_000, 17_000]
    assert found[0][1]["items"] == URLS
    assert outside == 1
    assert sorted(reasons(rejects)) == [
        (7, Reason.CLICK_WITHOUT_QUERY),
        (9, Reason.NOT_PARSABLE),
        (11, Reason.NOT_PARSABLE),
        (12, Reason.CLICK_WITHOUT_QUERY),
        (13, Reason.NOT_PARSABLE),
        (14, Reason.NOT_PARSABLE),
        (15, Reason.REPEATED_ITEM),
        (16, Reason.MISSING_QUERY),
    ]


def test_the_format_shows_in_the_name_or_is_named():
    assert format_of("a/b.avro") == (LogFormat.AVRO, False)
    assert format_of("b.parquet") == (LogFormat.PARQUET, False)
    assert format_of("b.jsonl.gz") == (LogFormat.JSONL, True)
    assert format_of("b.tsv") == (LogFormat.YANDEX, False)
    assert format_of("train.txt.gz", "yandex") == (LogFormat.YANDEX, True)
    with pytest.raises(UsageError, match="name it with --log-format"):
        format_of("clicks.log")
    with pytest.raises(UsageError, match="did you mean 'parquet'"):
        format_of("clicks.log", "parket")
    with pytest.raises(UsageError, match=r"\.gz is read for text formats"):
        format_of("clicks.avro.gz")


def test_all_wrong_names_of_a_column_map_are_told_at_once():
    with pytest.raises(UsageError) as error:
        check_column_map({"qery": "q", "clics": "c"})
    assert "did you mean 'query'" in str(error.value)
    assert "did you mean 'clicks'" in str(error.value)
    with pytest.raises(UsageError, match="two columns"):
        check_column_map({"query": "session_id"})


def test_a_file_is_read_in_one_part_when_it_is_small():
    assert parquet.split_parquet(io.BytesIO(write_parquet(SIXTY))) == [(0, 1, 1)]
    assert split_file(io.BytesIO(b""), FileFormat(LogFormat.JSONL, False)) == [WHOLE_FILE]


def test_blocks_of_a_query_grow_across_chunks(monkeypatch):
    monkeypatch.setattr(jsonl, "CHUNK_ROWS", 7)
    kind = FileFormat(LogFormat.JSONL, False)
    chunks = read_part(io.BytesIO(write_jsonl(SIXTY)), "log", kind)
    (gathered,) = gather_blocks(chunks, "log")
    sizes = [len(decode(block.data)) for block in gathered.blocks]
    assert sizes == [20, 20, 20]
    assert np.sum(sizes) == gathered.read
