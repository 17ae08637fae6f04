import pytest

from bubblerank.sessions.block import decode
from bubblerank.sessions.encode import encode_blocks
from bubblerank.usage import ENOUGH_SESSIONS, QueryUsage, Usage, block_tally
from tests.fitting.logs import good_table, random_sessions


def test_the_tally_of_a_block_is_what_decoding_it_gives():
    table = good_table(random_sessions(500, seed=7))
    for encoded in encode_blocks(table, "source ü", 33):
        block = decode(encoded.data)
        assert block_tally(encoded.data) == (len(block), int(block.clicks.sum()))


def usage(consumed):
    return Usage(
        tuple(QueryUsage(f"q{rank}", 1000, taken, 1.2, 1.0) for rank, taken in enumerate(consumed))
    )


def test_queries_with_too_small_a_sample_give_no_number():
    mixed = usage([ENOUGH_SESSIONS - 1] * 5 + [ENOUGH_SESSIONS] * 10)
    assert len(mixed.with_evidence) == 10
    gain = mixed.click_gain()
    assert gain.queries == 10
    assert gain.value == pytest.approx(0.2)
    record = mixed.to_record()
    assert record["queries_with_enough_evidence"] == 10
    assert record["by_query"][0]["clicks"] is None
    assert record["by_query"][5]["clicks"] == 1.2
    assert record["by_query"][5]["acceptance"] == 0.1
    assert not usage([ENOUGH_SESSIONS] * 9).click_gain().enough


def test_a_log_without_queries_has_an_empty_usage():
    record = Usage(()).to_record()
    assert record["effective_sample"] == {"least": 0, "median": 0, "most": 0}
    assert record["click_gain"]["value"] is None
