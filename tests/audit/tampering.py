"""Ways to tamper with one row of a run; each gives the step that a finding must name."""

from dataclasses import replace

from bubblerank.audit.replaying import ReadableReplay
from bubblerank.coins import stream_key
from bubblerank.rankers import bubble
from tests.audit.runs import SmallRun


def _some_row(run: SmallRun, chance):
    return chance.choice(run.rows)


def _exchange(items, one, other):
    items[one], items[other] = items[other], items[one]


def far_items(run, chance):
    row = _some_row(run, chance)
    shown = len(row["displayed"])
    if shown < 3:
        return None
    one = chance.randrange(shown - 2)
    _exchange(row["displayed"], one, chance.randrange(one + 2, shown))
    return row["step"]


def wrong_parity(run, chance):
    row = _some_row(run, chance)
    uppers = range(1 - row["step"] % 2, len(row["displayed"]) - 1, 2)
    if not uppers:
        return None
    upper = chance.choice(uppers)
    _exchange(row["displayed"], upper, upper + 1)
    return row["step"]


def decided_pairs(run):
    """(row, upper position) of every pair that was decided when its turn came."""
    items = run.problem.items
    shown = len(run.rows[0]["displayed"])
    config = run.config.with_positions(shown)
    state = bubble.start(len(items), config)
    key = stream_key(run.seed, run.problem.query, 0)
    replay = ReadableReplay(state, config, key)
    from bubblerank.audit.finding import Key
    from bubblerank.audit.history import History
    from tests.audit.runs import blocks_of

    history = History(
        Key(run.ranker, run.problem.query, 0), [data for _, data in blocks_of(run.rows)]
    )
    (chunk,) = history.chunks()
    found = []
    for number, row in enumerate(run.rows):
        now = bubble.prepare(replace(replay.state(), step=row["step"] - 1), config)
        for upper in bubble.upper_positions(row["step"], shown):
            if bubble.item_beats(now, config, now.base[upper], now.base[upper + 1]):
                found.append((row["step"], upper))
        replay.feed(chunk.rows, number, number + 1)
    return found


def decided_pair(run, chance):
    pairs = decided_pairs(run)
    if not pairs:
        return None
    step, upper = chance.choice(pairs)
    _exchange(run.rows[step - 1]["displayed"], upper, upper + 1)
    return step


def another_coin(run, chance):
    row = _some_row(run, chance)
    uppers = range(row["step"] % 2, len(row["displayed"]) - 1, 2)
    if not uppers:
        return None
    upper = chance.choice(uppers)
    _exchange(row["displayed"], upper, upper + 1)
    return row["step"]


def flipped_click(run, chance):
    row = _some_row(run, chance)
    place = chance.randrange(len(row["clicks"]))
    row["clicks"][place] = not row["clicks"][place]
    return row["step"]


def missing_step(run, chance):
    row = _some_row(run, chance)
    run.rows.remove(row)
    return row["step"]


def doubled_step(run, chance):
    row = _some_row(run, chance)
    run.rows.append(dict(row))
    return row["step"]


def second_history(run, chance):
    row = _some_row(run, chance)
    other = {**row, "clicks": [not click for click in row["clicks"]]}
    run.rows.insert(chance.randrange(len(run.rows)), other)
    return row["step"]


def changed_base(run, chance):
    row = _some_row(run, chance)
    one, other = chance.sample(range(len(row["base"])), 2)
    _exchange(row["base"], one, other)
    return row["step"]


def unknown_item(run, chance):
    row = _some_row(run, chance)
    row["displayed"][chance.randrange(len(row["displayed"]))] = "stranger"
    return row["step"]


def repeated_item(run, chance):
    row = _some_row(run, chance)
    row["displayed"][0] = row["displayed"][-1]
    return row["step"]


def shorter_list(run, chance):
    row = _some_row(run, chance)
    row["displayed"].pop()
    row["clicks"].pop()
    return row["step"]


def fewer_clicks(run, chance):
    row = _some_row(run, chance)
    row["clicks"].pop()
    return row["step"]


def renumbered_step(run, chance):
    row = _some_row(run, chance)
    was = row["step"]
    row["step"] = chance.choice([0, -3, was + 1_000_000, 1 << 50])
    return was


def changed_statistics(run, chance):
    (statistic,) = run.statistics
    kind = chance.choice(["wins", "trials", "base", "horizon", "gone"])
    if kind in ("wins", "trials", "gone"):
        if not statistic["pairs"]:
            return None
        pair = chance.choice(statistic["pairs"])
        if kind == "gone":
            statistic["pairs"].remove(pair)
        else:
            pair[kind] += chance.choice([-2, 2])
    elif kind == "base":
        _exchange(statistic["base"], *chance.sample(range(len(statistic["base"])), 2))
    else:
        statistic["horizon"] += 1
    return statistic["step"]


STRUCTURAL = {
    far_items,
    wrong_parity,
    decided_pair,
    changed_base,
    unknown_item,
    repeated_item,
    shorter_list,
    fewer_clicks,
}
DRAWN = {another_coin}
CLICKED = {flipped_click}
COUNTED = {missing_step, doubled_step, second_history, renumbered_step}
LEARNED = {changed_statistics}
EVERY = sorted(STRUCTURAL | DRAWN | CLICKED | COUNTED | LEARNED, key=lambda way: way.__name__)
