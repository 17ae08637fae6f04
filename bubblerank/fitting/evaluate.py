"""How well a click model predicts sessions: log-likelihood and perplexity.

Log-likelihood: the logarithm (nats) of the probability of each session's clicks, summed over
sessions. Perplexity at rank r (Dupret and Piwowarski 2008; Chuklin et al. 2015, chapter 5):
2 ** -(mean over sessions of log2 P(c_r)), where P(c_r) is the probability of what was seen at r,
given the list and *not* the other clicks of the session; that is what PyClick's `Perplexity`
computes. The overall perplexity is the mean over ranks. 1 is perfect, 2 is a fair coin.

A probability that a model calls impossible counts as `FLOOR`: under CM, a second click.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubblerank.fitting.model import FittedModel, FloatArray
from bubblerank.fitting.observations import IntArray, Observations

FLOOR = 1e-6
"""PyClick's least probability."""


@dataclass(frozen=True)
class Evaluation:
    """Of `sessions` sessions; `unseen` is the share of impressions the training log never had."""

    sessions: int
    log_likelihood: float
    perplexity: float
    perplexity_by_rank: tuple[float, ...]
    unseen: float

    @property
    def log_likelihood_per_session(self) -> float:
        """The mean over sessions."""
        return self.log_likelihood / self.sessions


def evaluate(model: FittedModel, others: Observations) -> Evaluation:
    """The log-likelihood and perplexity of sessions, training or test."""
    attraction = model.attraction_of(others)
    bits = np.zeros(others.positions)
    likelihood = 0.0
    for lists, places in others.rectangles():
        alpha = attraction[places]
        stop = model.position_parameters(places.shape[1])
        clicks = others.clicks[places].astype(np.float64)
        sessions = others.list_sessions[lists][:, None].astype(np.float64)
        click = _click_probability(model, alpha, stop)
        by_element = clicks * _log(click) + (sessions - clicks) * _log(1.0 - click)
        bits[: places.shape[1]] += by_element.sum(axis=0) / np.log(2.0)
        if model.click_model == "PBM":
            likelihood += float(by_element.sum())
        else:
            likelihood += _cascading(others, places, alpha, stop, model.click_model == "CM")
    reached = np.bincount(others.position, others.sessions, others.positions)
    by_rank = 2.0 ** (-bits / reached)
    new = others.pairs_in(model.observations) < 0
    return Evaluation(
        sessions=int(others.list_sessions.sum()),
        log_likelihood=likelihood,
        perplexity=float(by_rank.mean()),
        perplexity_by_rank=tuple(by_rank.tolist()),
        unseen=float(others.sessions[new].sum() / others.sessions.sum()),
    )


def _click_probability(
    model: FittedModel, alpha: FloatArray, by_position: FloatArray
) -> FloatArray:
    """P(click) at each position of each list, whatever else was clicked."""
    if model.click_model == "PBM":
        return alpha * by_position
    leaves = np.cumprod(1.0 - alpha * by_position, axis=1)
    looks = np.concatenate([np.ones((len(alpha), 1)), leaves[:, :-1]], axis=1)
    clicks: FloatArray = alpha * looks
    return clicks


def _cascading(
    others: Observations,
    places: IntArray,
    alpha: FloatArray,
    stop: FloatArray,
    single: bool,
) -> float:
    """Log-likelihood under DCM; under CM (`single`) too, where a click always stops.

    Down to the last click everything was examined. After it, either the user stopped, or went on
    and found nothing attractive.
    """
    ends = others.first if single else others.last
    last = ends[places].astype(np.float64)
    clicks = last if single else others.clicks[places].astype(np.float64)
    examined = (others.sessions - others.ended_before(ends))[places].astype(np.float64)
    total = float((clicks * _log(alpha) + (examined - clicks) * _log(1.0 - alpha)).sum())
    if single:
        impossible = float((others.clicks[places] - others.first[places]).sum())
        return total + impossible * float(np.log(FLOOR))
    total += float(((clicks - last) * _log(1.0 - stop)).sum())
    silent = np.cumprod((1.0 - alpha)[:, ::-1], axis=1)[:, ::-1]
    after = np.concatenate([silent[:, 1:], np.ones((len(alpha), 1))], axis=1)
    return total + float((last * _log(stop + (1.0 - stop) * after)).sum())


def _log(values: FloatArray) -> FloatArray:
    return np.log(np.clip(values, FLOOR, 1.0))
