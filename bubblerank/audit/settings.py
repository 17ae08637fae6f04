"""What the audit knows of how displays came about: from `run.json`, else from flags."""

from dataclasses import dataclass

from bubblerank.config import RankerConfig

BUBBLERANK = "bubblerank"
SIMULATE, REPLAY = "simulate", "replay"
LOGGED, MATCH, MODEL = "logged", "match", "model"


@dataclass(frozen=True)
class AuditSettings:
    """What is known, None standing for what is not.

    config: BubbleRank's settings; None where neither horizon nor delta is known.
    seed: of the coins. command: what made the displays: ``simulate`` or ``replay``.
    feedback: of a replay. steps: how many each learner took. fitted: whether the attractions
    come from a fitted model; same_users: whether the clicks of a simulation were drawn from the
    very problems at hand. statistics: whether `statistics/` is there.
    readable: replay by the readable functions, some hundred times slower.
    """

    checks: tuple[str, ...]
    config: RankerConfig | None = None
    positions: int | None = None
    seed: int | None = None
    command: str | None = None
    feedback: str | None = None
    steps: int | None = None
    fitted: bool = False
    same_users: bool = False
    statistics: bool = False
    readable: bool = False

    @property
    def simulated(self) -> bool:
        """Whether the clicks were drawn from click models."""
        return self.command == SIMULATE or (self.command == REPLAY and self.feedback == MODEL)

    @property
    def gaps_allowed(self) -> bool:
        """Whether steps may be missing: a logged replay takes them from the log."""
        return self.command == REPLAY and self.feedback == LOGGED
