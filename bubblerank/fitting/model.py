"""A fitted click model: an attraction for each query and item, parameters shared by position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bubblerank.fitting.observations import Observations
from bubblerank.fitting.prior import Prior

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Iteration:
    """One EM iteration: the log-likelihood (in nats), and with the prior's logarithm added.

    EM never lets `objective` fall; without a prior the two are the same.
    """

    log_likelihood: float
    objective: float


@dataclass(frozen=True, eq=False)
class FittedModel:
    """What was learned from `observations`.

    `attraction` is by pair of the observations, `by_position` the v(k) of a DCM or the chi(k)
    of a PBM (None for CM), `unseen` the attraction of a pair that was never observed. A PBM is
    fitted up to a factor between attraction and examination: here the largest chi is 1.
    """

    click_model: str
    observations: Observations
    prior: Prior
    attraction: FloatArray
    by_position: FloatArray | None
    unseen: float
    iterations: tuple[Iteration, ...] = ()
    converged: bool = True

    def attraction_of(self, others: Observations) -> FloatArray:
        """The attraction of each element of other observations, `unseen` where it is new."""
        pairs = others.pairs_in(self.observations)
        return np.where(pairs >= 0, self.attraction[pairs], self.unseen)

    def position_parameters(self, positions: int) -> FloatArray:
        """v(k) or chi(k) down to a position; the prior's mean where the log never reached it."""
        known = np.ones(positions) if self.by_position is None else self.by_position[:positions]
        beyond = np.full(positions - len(known), self.prior.mean)
        return np.concatenate([known, beyond])
