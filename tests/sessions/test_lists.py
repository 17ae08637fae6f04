import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblerank.sessions import lists
from bubblerank.sessions.order import argsort, session_order

ragged = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4), min_size=1, max_size=30)


def flat(rows):
    codes = np.array([code for row in rows for code in row], dtype=np.int32)
    return codes, np.array([len(row) for row in rows], dtype=np.int64)


def naive_numbers(rows, groups):
    known = {}
    keys = zip(groups, map(tuple, rows), strict=True)
    return [known.setdefault(key, len(known)) for key in keys]


@pytest.mark.parametrize("colliding", [False, True])
@given(rows=ragged, data=st.data())
def test_distinct_lists_are_numbered_as_a_dictionary_would_even_when_hashes_collide(
    colliding, rows, data
):
    size = len(rows)
    groups = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    with pytest.MonkeyPatch.context() as patch:
        if colliding:
            patch.setattr(lists, "_MULTIPLIERS", np.zeros(1024, dtype=np.uint64))
        found = lists.distinct_lists(*flat(rows), np.array(groups, dtype=np.int64))
    expected = naive_numbers(rows, groups)
    assert found.list_of_row.tolist() == expected
    assert found.first_row.tolist() == [expected.index(n) for n in range(max(expected) + 1)]


@given(ragged)
def test_rows_with_repeats_are_those_whose_set_is_smaller(rows):
    found = lists.rows_with_repeats(*flat(rows)).tolist()
    assert found == [at for at, row in enumerate(rows) if len(set(row)) < len(row)]


@given(ragged, st.data())
def test_taking_rows_is_concatenating_them(rows, data):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=20))
    codes, lengths = flat(rows)
    taken = lists.take_rows(codes, lengths, np.array(chosen, dtype=np.int64))
    assert taken.tolist() == [code for at in chosen for code in rows[at]]


keys = st.integers(0, 3) | st.integers(-(2**63), 2**63 - 1)


@given(st.lists(keys, max_size=30), st.sampled_from([1, 40]))
def test_argsort_is_stable_and_right_for_every_span_and_size(values, times):
    values = values * times
    found = argsort(np.array(values, dtype=np.int64))
    assert found.tolist() == sorted(range(len(values)), key=values.__getitem__)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.text(max_size=3)), max_size=40))
def test_sessions_sort_by_group_time_and_id_as_python_sorts_tuples(rows):
    rows = [(g, t, "".join(c for c in s if not 0xD800 <= ord(c) < 0xE000)) for g, t, s in rows]
    groups = np.array([g for g, _, _ in rows], dtype=np.int64)
    times = np.array([t for _, t, _ in rows], dtype=np.int64)
    order = session_order(groups, times, pa.array([s for _, _, s in rows], pa.string()))
    assert order.tolist() == sorted(range(len(rows)), key=rows.__getitem__)
