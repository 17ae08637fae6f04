import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from bubblerank.fitting.list_counts import (
    SCHEMA,
    CountLists,
    count_block,
    count_table,
    merge_counts,
)
from bubblerank.sessions.block import decode
from bubblerank.sessions.encode import encode_blocks
from tests.fitting.logs import counts, good_table, random_sessions

SESSIONS = random_sessions(300)


def naive_counts(sessions):
    found = {}
    for query, items, clicks in sessions:
        row = found.setdefault(
            (query, tuple(items)), [0, *(np.zeros(len(items), int) for _ in range(3))]
        )
        places = np.flatnonzero(clicks)
        row[0] += 1
        row[1][places] += 1
        row[2][places[:1]] += 1
        row[3][places[-1:]] += 1
    return {key: [row[0], *(part.tolist() for part in row[1:])] for key, row in found.items()}


def as_dict(table):
    return {
        (row["query"], tuple(row["items"])): [
            row["sessions"],
            row["clicks"],
            row["first"],
            row["last"],
        ]
        for row in table.to_pylist()
    }


def test_counts_equal_a_session_by_session_count():
    assert as_dict(counts(SESSIONS)) == naive_counts(SESSIONS)


def test_blocks_and_tables_give_the_same_counts():
    for block_sessions in (1, 7, 1000):
        blocks = encode_blocks(good_table(SESSIONS), "test", block_sessions)
        tables = [count_block(decode(encoded.data)) for encoded in blocks]
        assert merge_counts(tables).equals(counts(SESSIONS))


@pytest.mark.parametrize("pieces", [1, 2, 17, 300])
def test_however_the_log_is_cut_and_merged_the_table_is_the_same(pieces):
    aggregate = CountLists()
    order = np.random.default_rng(pieces).permutation(len(SESSIONS))
    parts = [[SESSIONS[row] for row in rows] for rows in np.array_split(order, pieces)]
    accumulators = [
        aggregate.add(aggregate.create(), count_table(good_table(part))) for part in parts
    ]
    half = pieces // 2
    merged = aggregate.merge(
        [aggregate.merge(accumulators[half:]), aggregate.create(), *accumulators[:half]]
    )
    assert aggregate.extract(merged).equals(counts(SESSIONS))


def test_rows_are_sorted_by_query_then_frequency_then_items():
    rows = counts(SESSIONS).to_pylist()
    keys = [(row["query"].encode(), -row["sessions"], row["items"]) for row in rows]
    assert keys == sorted(keys)


def test_pending_tables_are_made_compact(monkeypatch):
    monkeypatch.setattr("bubblerank.fitting.list_counts._PENDING_ROWS", 10)
    aggregate = CountLists()
    counted = aggregate.create()
    for _ in range(50):
        counted = aggregate.add(counted, counts(SESSIONS[:20]))
        assert sum(table.num_rows for table in counted) <= 3 * counts(SESSIONS[:20]).num_rows
    total = Counter({key: 50 * row[0] for key, row in naive_counts(SESSIONS[:20]).items()})
    extracted = as_dict(aggregate.extract(counted))
    assert {key: row[0] for key, row in extracted.items()} == dict(total)


def test_logs_with_very_long_lists_are_sorted_the_same(monkeypatch):
    expected = counts(SESSIONS)
    monkeypatch.setattr("bubblerank.fitting.list_counts._PADDED_CELLS", 10)
    assert counts(SESSIONS).equals(expected)


def test_nothing_counted_is_an_empty_table():
    assert merge_counts([]).equals(SCHEMA.empty_table())
    assert merge_counts([counts([]), counts([])]).equals(SCHEMA.empty_table())


def test_texts_outside_ascii_sort_by_their_bytes():
    texts = ["z", "é", "語", "a", "🙂", "ß"]
    sessions = [(q, [i], [True]) for q, i in itertools.product(texts, texts)]
    rows = counts(sessions).to_pylist()
    found = [(row["query"].encode(), row["items"][0].encode()) for row in rows]
    assert found == sorted(found)


def test_the_schema_survives_an_arrow_stream():
    table = counts(SESSIONS)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    back = pa.ipc.open_stream(sink.getvalue()).read_all()
    assert merge_counts([back]).equals(table)
