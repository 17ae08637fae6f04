"""The books of a run: every session that was read is accounted for."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from bubblerank.errors import RunFailed


@dataclass(frozen=True)
class Books:
    """How many sessions were read, and what became of each of them.

    read: sessions, and records that should have been one.
    ranked: consumed by a ranker.
    rejected: written to `rejects/` with a reason, late ones included.
    duplicate: dropped because their session_id was there before.
    off_policy: their list cannot have come from the ranker.
    no_base_list: their query has no base list.
    """

    read: int = 0
    ranked: int = 0
    rejected: int = 0
    duplicate: int = 0
    off_policy: int = 0
    no_base_list: int = 0

    def __post_init__(self) -> None:
        negative = {name: count for name, count in asdict(self).items() if count < 0}
        if negative:
            raise ValueError(f"counts must be 0 or more, got {negative}: a counter ran backwards")

    @classmethod
    def from_counters(cls, counters: Mapping[str, int]) -> "Books":
        """The books in a run's counters; a counter that nothing touched is 0."""
        return cls(**{field.name: int(counters.get(field.name, 0)) for field in fields(cls)})

    @property
    def accounted(self) -> int:
        """ranked + rejected + duplicate + off_policy + no_base_list."""
        fates = (self.ranked, self.rejected, self.duplicate, self.off_policy, self.no_base_list)
        return sum(fates)

    @property
    def reject_rate(self) -> float:
        """The share of what was read that was rejected; 0 when nothing was read."""
        return self.rejected / self.read if self.read else 0.0

    def balance(self) -> None:
        """Raise RunFailed, with the numbers, unless `read` equals `accounted`."""
        if self.read == self.accounted:
            return
        parts = [f"{name} {count}" for name, count in asdict(self).items() if name != "read"]
        off = abs(self.read - self.accounted)
        what = "unaccounted for" if self.read > self.accounted else "counted twice"
        raise RunFailed(
            f"the books do not balance: read {self.read}, but {' + '.join(parts)} = "
            f"{self.accounted}: {off} {what}; the run is void"
        )
