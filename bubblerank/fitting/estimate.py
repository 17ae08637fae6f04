"""Maximum likelihood with a prior: CM and DCM by counting, PBM by EM."""

from __future__ import annotations

import numpy as np

from bubblerank.errors import unknown_name
from bubblerank.fitting.model import FittedModel, FloatArray
from bubblerank.fitting.observations import IntArray, Observations
from bubblerank.fitting.position_based import DEFAULT_ITERATIONS, DEFAULT_TOLERANCE, Counts, run_em
from bubblerank.fitting.prior import DEFAULT_PRIORS, Prior


def fit(
    observations: Observations,
    click_model: str,
    prior: Prior | None = None,
    iterations: int = DEFAULT_ITERATIONS,
    tolerance: float = DEFAULT_TOLERANCE,
    plain: bool = False,
) -> FittedModel:
    """The model of a name, CM, DCM or PBM; the prior is `DEFAULT_PRIORS`' unless given."""
    if click_model not in DEFAULT_PRIORS:
        raise ValueError(unknown_name("click model", click_model, DEFAULT_PRIORS))
    prior = DEFAULT_PRIORS[click_model] if prior is None else prior
    if click_model == "CM":
        return fit_cascade(observations, prior)
    if click_model == "DCM":
        return fit_dependent(observations, prior)
    return fit_position_based(observations, prior, iterations, tolerance, plain)


def fit_cascade(seen: Observations, prior: Prior) -> FittedModel:
    """CM: an item is examined at or above the first click, everywhere when there is none."""
    examined = seen.sessions - seen.ended_before(seen.first)
    attraction = _shares(seen, seen.first, examined, prior)
    return FittedModel("CM", seen, prior, attraction, None, prior.mean)


def fit_dependent(seen: Observations, prior: Prior) -> FittedModel:
    """DCM: examined at or above the last click, everywhere when there is none (Guo et al. 2009).

    v(k) is the share of the clicks at position k that were the last of their session.
    """
    examined = seen.sessions - seen.ended_before(seen.last)
    attraction = _shares(seen, seen.clicks, examined, prior)
    stops = share(
        _by_position(seen, seen.last), _by_position(seen, seen.clicks), prior_of_stops(prior)
    )
    return FittedModel("DCM", seen, prior, attraction, stops, prior.mean)


def fit_position_based(
    seen: Observations, prior: Prior, iterations: int, tolerance: float, plain: bool = False
) -> FittedModel:
    """PBM: EM on the counts of each (query, item, position), scaled so that max chi is 1."""
    positions = seen.positions
    keys, row = np.unique(seen.pair * positions + seen.position, return_inverse=True)
    row = row.reshape(-1)
    shown = sums(row, seen.sessions, len(keys))
    clicked = sums(row, seen.clicks, len(keys))
    counts = Counts(keys // positions, keys % positions, shown, clicked)
    result = run_em(counts, prior, iterations, tolerance, plain)
    scale = float(result.examination.max())
    return FittedModel(
        "PBM",
        seen,
        prior,
        result.attraction * scale,
        result.examination / scale,
        prior.mean * scale,
        result.iterations,
        result.converged,
    )


def prior_of_stops(prior: Prior) -> Prior:
    """The prior of a DCM's v(k): PyClick counts continuations, so it is mirrored here."""
    return Prior(prior.views - prior.clicks, prior.views)


def share(part: FloatArray, whole: FloatArray, prior: Prior) -> FloatArray:
    """(clicks + part) / (views + whole), and the prior's mean where both are 0."""
    total = whole + prior.views
    return np.where(total > 0, (part + prior.clicks) / np.where(total > 0, total, 1.0), prior.mean)


def sums(group: IntArray, values: IntArray, groups: int) -> FloatArray:
    """The sum of the values of each group."""
    return np.bincount(group, values.astype(np.float64), groups).astype(np.float64)


def _shares(seen: Observations, part: IntArray, whole: IntArray, prior: Prior) -> FloatArray:
    pairs = len(seen.pair_keys)
    return share(sums(seen.pair, part, pairs), sums(seen.pair, whole, pairs), prior)


def _by_position(seen: Observations, counts: IntArray) -> FloatArray:
    return sums(seen.position, counts, seen.positions)
