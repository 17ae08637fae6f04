import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblerank.books import Books
from bubblerank.errors import RunFailed

COUNT = st.integers(0, 10**12)
FATES = ("ranked", "rejected", "duplicate", "off_policy", "no_base_list")


@given(st.fixed_dictionaries(dict.fromkeys(FATES, COUNT)), st.integers(-5, 5))
def test_books_balance_exactly_when_read_is_the_sum_of_the_fates(fates, error):
    read = sum(fates.values()) + error
    if read < 0:
        return
    books = Books(read=read, **fates)
    if error == 0:
        books.balance()
    else:
        with pytest.raises(RunFailed, match=f"{abs(error)} (unaccounted for|counted twice)"):
            books.balance()


def test_the_failure_shows_all_the_numbers():
    with pytest.raises(RunFailed) as caught:
        Books(read=10, ranked=1, rejected=2, duplicate=3, off_policy=1, no_base_list=1).balance()
    assert str(caught.value) == (
        "the books do not balance: read 10, but ranked 1 + rejected 2 + duplicate 3 + "
        "off_policy 1 + no_base_list 1 = 8: 2 unaccounted for; the run is void"
    )


def test_counters_that_nothing_touched_are_zero_and_others_are_ignored():
    assert Books.from_counters({"read": 3, "ranked": 3, "rows_display": 9}) == Books(3, 3)


def test_the_reject_rate_is_a_share_of_what_was_read():
    assert Books(read=8, ranked=6, rejected=2).reject_rate == 0.25
    assert Books().reject_rate == 0.0


def test_a_negative_count_is_refused():
    with pytest.raises(ValueError, match="'ranked': -1"):
        Books(ranked=-1)
