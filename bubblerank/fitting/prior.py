"""The prior: what is believed of a probability before anything was seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bubblerank.errors import UsageError


@dataclass(frozen=True)
class Prior:
    """As if `clicks` of `views` had been seen before: the estimate is (clicks + c) / (views + n).

    It holds for every parameter of a model, those of positions too. An item that the log never
    shows has the prior's mean. `Prior(0, 0)` is plain maximum likelihood; then a parameter of
    which nothing was seen is one half.
    """

    clicks: float
    views: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.views) and 0.0 <= self.clicks <= self.views):
            raise ValueError(
                f"a prior needs 0 <= clicks <= views, got {self.clicks:g}/{self.views:g}: "
                "1/2 is the usual one"
            )

    @property
    def mean(self) -> float:
        """What is believed without data."""
        return self.clicks / self.views if self.views else 0.5

    def __str__(self) -> str:
        return f"{self.clicks:g}/{self.views:g}"


COUNTING = Prior(1.0, 2.0)
"""The uniform prior, PyClick's for models that are fitted by counting."""

BY_EM = Prior(1.0, 5.0)
"""PyClick's prior for models that are fitted by EM."""

DEFAULT_PRIORS = {"CM": COUNTING, "DCM": COUNTING, "PBM": BY_EM}


def parse_prior(text: str) -> Prior:
    """The prior in `CLICKS/VIEWS`, as in 1/2, or `none`."""
    if text == "none":
        return Prior(0.0, 0.0)
    clicks, _, views = text.partition("/")
    try:
        return Prior(float(clicks), float(views))
    except ValueError as error:
        raise UsageError(
            f"--prior must be none or CLICKS/VIEWS with 0 <= CLICKS <= VIEWS, as in 1/2, "
            f"got {text!r}"
        ) from error
