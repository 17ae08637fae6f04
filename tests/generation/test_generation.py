import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from bubblerank.coins import Coins
from bubblerank.errors import UsageError
from bubblerank.generation.draws import Purpose, uniforms, words
from bubblerank.generation.settings import LogSettings
from bubblerank.generation.users import generate
from bubblerank.generation.world import make_world
from bubblerank.generation.write import problems_path, write_log
from bubblerank.problems import read_problems
from bubblerank.sessions.readers import format_of, read_part, split_file
from bubblerank.sessions.validate import validate

SMALL = LogSettings(sessions=3000, queries=20, seed=9)
ENDINGS = {"parquet": "parquet", "avro": "avro", "jsonl": "jsonl", "yandex": "tsv"}


def read_back(path):
    """(accepted sessions as dictionaries, reasons of rejects) of a log file."""
    sessions, reasons = [], []
    with open(path, "rb") as file:
        for part in split_file(file, format_of(str(path))):
            for chunk in read_part(file, str(path), format_of(str(path)), {}, part):
                good, bad = validate(chunk.rows, str(path), chunk.positions)
                sessions += good.to_pylist()
                reasons += bad.column("reason").to_pylist()
                reasons += chunk.rejects.column("reason").to_pylist()
    return sessions, reasons


def written(folder, log_format, settings):
    path = folder / f"log.{ENDINGS[log_format]}"
    return path, write_log(path, settings)


def whole(settings, chunk_sessions=1 << 16):
    chunks = list(generate(make_world(settings), chunk_sessions))
    return [np.concatenate(columns) for columns in zip(*chunks, strict=True)]


@pytest.mark.parametrize("index", [0, 1, 2, 17])
def test_draws_are_those_of_the_coins(index):
    steps = np.arange(1, 50)
    expected = [Coins(12345, step).word(Purpose.CLICK, index) for step in steps.tolist()]
    assert words(12345, Purpose.CLICK, steps, index).tolist() == expected
    shares = uniforms(12345, Purpose.CLICK, steps, index)
    assert shares.tolist() == [(word >> 11) / 2**53 for word in expected]


@pytest.mark.parametrize("randomised", [False, True])
def test_how_sessions_are_cut_into_chunks_changes_none_of_them(randomised):
    settings = LogSettings(
        sessions=500, queries=7, randomised=randomised, late_rate=0.1, broken_rate=0.1, seed=2
    )
    for one, other in zip(whole(settings), whole(settings, 37), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("log_format", ENDINGS)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(log_format, tmp_path):
    contents = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / name).mkdir()
        settings = LogSettings(sessions=400, queries=5, seed=seed, broken_rate=0.05)
        path, _ = written(tmp_path / name, log_format, settings)
        contents.append((path.read_bytes(), problems_path(path).read_bytes()))
    assert contents[0] == contents[1]
    assert contents[0][0] != contents[2][0]
    assert contents[0][1] != contents[2][1]


def test_all_formats_read_back_equal(tmp_path):
    logs = {name: read_back(written(tmp_path, name, SMALL)[0]) for name in ENDINGS}
    assert all(reasons == [] for _, reasons in logs.values())
    sessions = logs["parquet"][0]
    assert len(sessions) == SMALL.sessions
    assert logs["avro"][0] == sessions
    assert logs["jsonl"][0] == sessions
    shared = ("query", "items", "clicks")
    assert [[row[name] for name in shared] for row in logs["yandex"][0]] == [
        [row[name] for name in shared] for row in sessions
    ]


@pytest.mark.parametrize("log_format", ENDINGS)
def test_broken_records_are_rejected_and_no_others(log_format, tmp_path):
    settings = LogSettings(sessions=2000, queries=10, broken_rate=0.05, seed=4)
    path, counts = written(tmp_path, log_format, settings)
    sessions, reasons = read_back(path)
    assert 50 < counts.broken < 150
    assert len(reasons) == counts.broken
    assert len(sessions) == settings.sessions - counts.broken
    kinds = {"missing_query", "clicks_length", "repeated_item"}
    expected = {"yandex": {"not_parsable"}, "jsonl": kinds | {"not_parsable"}}
    assert set(reasons) == expected.get(log_format, kinds)


def test_duplicates_follow_their_sessions_with_the_same_id(tmp_path):
    settings = LogSettings(sessions=2000, queries=10, duplicate_rate=0.1, seed=4)
    path, counts = written(tmp_path, "parquet", settings)
    sessions, _ = read_back(path)
    assert 130 < counts.duplicates < 270
    assert counts.records == len(sessions) == settings.sessions + counts.duplicates
    groups = [list(group) for _, group in itertools.groupby(sessions, lambda s: s["session_id"])]
    assert sum(len(group) == 2 for group in groups) == counts.duplicates
    same = [{**row, "position": 0} for group in groups for row in group[:1] for _ in group]
    assert same == [{**row, "position": 0} for row in sessions]


def test_late_sessions_have_earlier_event_times_than_their_place_says():
    punctual = LogSettings(sessions=5000, queries=10, seed=4)
    arrivals = whole(punctual)[2]
    columns = whole(replace(punctual, late_rate=0.05))
    times, late = columns[2], columns[6]
    assert (np.diff(arrivals) >= 0).all()
    assert 150 < late.sum() < 350
    assert np.array_equal(times[~late], arrivals[~late])
    assert (times[late] <= arrivals[late] - 1_000_000).all()


def test_arrivals_cover_the_days_and_follow_the_hours():
    settings = LogSettings(sessions=50_000, queries=3, days=5.0, seed=6)
    times = whole(settings)[2]
    days = (times - times[0]) / 86_400_000_000
    assert days[-1] == pytest.approx(5.0, rel=0.05)
    hours = np.bincount((times // 3_600_000_000 % 24).astype(int), minlength=24)
    assert hours[19] > 5 * hours[3]


def test_queries_follow_zipf():
    settings = LogSettings(sessions=100_000, queries=50, seed=6)
    asked = np.bincount(whole(settings)[1], minlength=50)
    expected = np.arange(1, 51) ** -1.0
    expected *= settings.sessions / expected.sum()
    # Five standard deviations: 50 such checks fail by chance once in 30,000 runs.
    assert (np.abs(asked - expected) < 5 * np.sqrt(expected)).all()


def test_the_production_list_is_the_most_frequent_and_variants_have_items_of_their_own():
    settings = LogSettings(sessions=20_000, queries=4, seed=6)
    _, query, _, items, *_ = whole(settings)
    for number in range(4):
        lists, counts = np.unique(items[query == number], axis=0, return_counts=True)
        assert 2 <= len(lists) <= 4
        assert lists[counts.argmax()].tolist() == list(range(10))
        assert items[query == number].max() >= 10


@pytest.mark.parametrize("name", ["CM", "DCM", "PBM"])
def test_users_click_as_the_truth_says(name):
    settings = LogSettings(
        sessions=60_000, queries=1, variants=1, click_model=name, positions=4, seed=8
    )
    world = make_world(settings)
    clicks = whole(settings)[4]
    alpha, by_position = world.attraction[0], world.by_position
    looks, expected = 1.0, []
    for place in range(4):
        expected.append(alpha[place] * (by_position[place] if name == "PBM" else looks))
        looks *= 1 - alpha[place] * by_position[place]
    deviations = np.sqrt(np.array(expected) / settings.sessions)
    assert (np.abs(clicks.mean(axis=0) - expected) < 5 * deviations).all()


def test_a_randomised_log_exchanges_neighbours_of_the_parity_of_its_steps_by_fair_coins():
    settings = LogSettings(sessions=20_000, queries=3, randomised=True, positions=5, seed=8)
    _, query, _, items, _, step, *_ = whole(settings)
    for number in range(3):
        assert step[query == number].tolist() == list(range(1, (query == number).sum() + 1))
    chances = exchanges = 0
    for upper in range(4):
        rows = items[step % 2 == upper % 2]
        kept = (rows[:, upper] == upper) & (rows[:, upper + 1] == upper + 1)
        exchanged = (rows[:, upper] == upper + 1) & (rows[:, upper + 1] == upper)
        assert (kept | exchanged).all()
        chances += len(rows)
        exchanges += int(exchanged.sum())
    assert abs(exchanges - chances / 2) < 5 * np.sqrt(chances) / 2


def test_the_truth_is_beside_the_log(tmp_path):
    path, _ = written(tmp_path, "parquet", SMALL)
    truth = read_problems(tmp_path / "log.problems.jsonl")
    assert problems_path(path) == tmp_path / "log.problems.jsonl"
    assert truth == list(make_world(SMALL).problems())
    first = json.loads((tmp_path / "log.problems.jsonl").read_text().splitlines()[0])
    assert first["query"] == "q1"
    assert len(first["items"]) == len(first["examination"]) == 10


def test_a_failure_leaves_no_file(tmp_path, monkeypatch):
    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("bubblerank.generation.write.to_records", fail)
    with pytest.raises(OSError, match="disk full"):
        written(tmp_path, "parquet", SMALL)
    assert list(tmp_path.iterdir()) == []


def test_a_yandex_log_has_neither_late_sessions_nor_duplicates(tmp_path):
    for fault in ({"late_rate": 0.1}, {"duplicate_rate": 0.1}):
        with pytest.raises(UsageError, match="leave out --late-rate and --duplicate-rate"):
            written(tmp_path, "yandex", LogSettings(sessions=10, queries=1, **fault))


def test_all_impossible_settings_are_told_at_once():
    with pytest.raises(UsageError) as caught:
        LogSettings(sessions=0, queries=1, positions=1, click_model="UBM", late_rate=2.0)
    told = str(caught.value)
    for name in ("sessions", "positions", "click_model", "late_rate"):
        assert f"{name} must" in told
