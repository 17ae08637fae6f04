"""The same lists and sessions with new clicks, drawn from a fitted model: a parametric bootstrap.

A model fitted to redrawn clicks differs from the first as that one differs from the truth, as far
as the model holds. That shows how much of a result is noise of the fit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bubblerank.fitting.model import FittedModel, FloatArray
from bubblerank.fitting.observations import IntArray, Observations


def redraw(model: FittedModel, draw: np.random.Generator) -> Observations:
    """The observations of the model with clicks drawn anew, in counts."""
    seen = model.observations
    clicks, first, last = (np.zeros_like(seen.clicks) for _ in range(3))
    for lists, places in seen.rectangles():
        alpha = model.attraction[seen.pair[places]]
        by_position = model.position_parameters(places.shape[1])
        sessions = seen.list_sessions[lists]
        if model.click_model == "PBM":
            chances = np.clip(alpha * by_position, 0.0, 1.0)
            clicks[places] = draw.binomial(sessions[:, None], chances)
        else:
            drawn = _cascade(draw, sessions, np.clip(alpha, 0.0, 1.0), by_position)
            clicks[places], first[places], last[places] = drawn
    return replace(seen, clicks=clicks, first=first, last=last)


def _cascade(
    draw: np.random.Generator, sessions: IntArray, alpha: FloatArray, stop: FloatArray
) -> npt.NDArray[np.int64]:
    """(clicks, first, last) by list and position, for users who scan from the top.

    `looking[k]` are users who still look and whose last click was at position k - 1, at 0 those
    without a click.
    """
    lists, width = alpha.shape
    clicks, first, last = np.zeros((3, lists, width), dtype=np.int64)
    looking = np.zeros((width + 1, lists), dtype=np.int64)
    looking[0] = sessions
    for position in range(width):
        clicked = draw.binomial(looking[: position + 1], alpha[:, position])
        looking[: position + 1] -= clicked
        first[:, position] = clicked[0]
        clicks[:, position] = clicked.sum(axis=0)
        last[:, position] = draw.binomial(clicks[:, position], stop[position])
        looking[position + 1] = clicks[:, position] - last[:, position]
    last += looking[1:].T
    return np.stack([clicks, first, last])
