"""A ranker against a click model, step by step: readable or compiled, with the same answer."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bubblerank.click_models import ClickModel
from bubblerank.coins import Coins, stream_key
from bubblerank.config import RankerConfig
from bubblerank.metrics import (
    Checkpoint,
    Scorecard,
    checkpoint,
    inversions,
    make_yardstick,
)
from bubblerank.rankers import module_name, policy
from bubblerank.rankers.policy import State


@dataclass(frozen=True)
class Experiment:
    """Everything that determines a trajectory: who ranks what, for which users and coins."""

    ranker: str
    query: str
    model: ClickModel
    config: RankerConfig
    run: int = 0
    seed: int = 0
    top: int = 5

    @property
    def items(self) -> int:
        """L."""
        return len(self.model.attraction)

    @property
    def shown(self) -> int:
        """K."""
        return self.config.shown(self.items)


@dataclass(frozen=True)
class Progress:
    """Where a trajectory stands: the ranker's state and the metrics so far."""

    state: State
    card: Scorecard = field(default_factory=Scorecard)


class Displays(NamedTuple):
    """The displays of consecutive steps, as item indexes and 0/1 clicks, a row a step."""

    displayed: npt.NDArray[np.int16]
    clicked: npt.NDArray[np.uint8]
    base: npt.NDArray[np.int16]


class Advance(NamedTuple):
    """What some steps gave: the new progress, rows of metrics, and displays if asked for."""

    progress: Progress
    checkpoints: list[Checkpoint]
    displays: Displays | None


def begin(experiment: Experiment) -> Progress:
    """Before the first step."""
    check_positions(experiment)
    return Progress(policy(experiment.ranker).start(experiment.items, experiment.config))


def check_positions(experiment: Experiment) -> None:
    """Refuse to show more positions than the click model has parameters for."""
    known, shown = experiment.model.positions, experiment.shown
    if known is not None and known < shown:
        raise ValueError(
            f"query {experiment.query!r}: the {experiment.model.name} has parameters for {known} "
            f"positions, got {shown} positions to show: give --positions {known} or fewer"
        )


def advance_reference(
    experiment: Experiment,
    progress: Progress,
    steps: int,
    checkpoints: Sequence[int] = (),
    displays: bool = False,
) -> Advance:
    """Take ``steps`` steps by the readable functions."""
    ranker, model, config = policy(experiment.ranker), experiment.model, experiment.config
    yardstick = make_yardstick(model, experiment.shown, experiment.top)
    key = stream_key(experiment.seed, experiment.query, experiment.run)
    state = progress.state
    old = progress.card
    card = Scorecard(old.regret, old.reward, old.ndcg, old.clicks, old.violations)
    due = set(checkpoints)
    rows = []
    shown_lists, clicked_lists, base_lists = [], [], []
    for _ in range(steps):
        coins = Coins(key, state.step + 1)
        state = ranker.prepare(state, config)
        choice = ranker.decide(state, config, coins)
        clicks = model.clicks(choice.displayed, coins)
        if displays:
            shown_lists.append(choice.displayed)
            clicked_lists.append(clicks)
            base_lists.append(ranker.base_list(state))
        card.add(yardstick, choice.displayed, sum(clicks))
        state = ranker.observe(state, config, choice, clicks, coins)
        if state.step in due:
            inverted = inversions(model.attraction, choice.displayed)
            rows.append(checkpoint(card, state.step, yardstick.ndcg(choice.displayed), inverted))
    recorded = Displays(
        np.array(shown_lists, dtype=np.int16).reshape(-1, experiment.shown),
        np.array(clicked_lists, dtype=np.uint8).reshape(-1, experiment.shown),
        np.array(base_lists, dtype=np.int16).reshape(-1, experiment.items),
    )
    return Advance(Progress(state, card), rows, recorded if displays else None)


def advance_compiled(
    experiment: Experiment,
    progress: Progress,
    steps: int,
    checkpoints: Sequence[int] = (),
    displays: bool = False,
) -> Advance:
    """Take ``steps`` steps by the compiled kernels."""
    from bubblerank.kernels.ledger import (
        make_ledger,
        make_recorder,
        read_checkpoints,
        read_scorecard,
    )
    from bubblerank.kernels.world import make_world

    shown = experiment.shown
    first, last = progress.state.step + 1, progress.state.step + steps
    kernel = importlib.import_module(f"bubblerank.kernels.{module_name(experiment.ranker)}")
    yardstick = make_yardstick(experiment.model, shown, experiment.top)
    key = stream_key(experiment.seed, experiment.query, experiment.run)
    due = sorted({step for step in checkpoints if first <= step <= last})
    ledger = make_ledger(progress.card, shown, due)
    recorder = make_recorder(steps if displays else 0, shown, experiment.items)
    state = kernel.advance_state(
        progress.state, experiment.config, make_world(yardstick, key), ledger, recorder, steps
    )
    card = read_scorecard(ledger.totals, ledger.counts)
    kept = Displays(*recorder) if displays else None
    return Advance(Progress(state, card), read_checkpoints(ledger), kept)
