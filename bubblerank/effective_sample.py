"""How many sessions each query's ranker has consumed: what a replay can be judged by."""

from dataclasses import dataclass
from statistics import median

from bubblerank.run_folder import RunFolder

ENOUGH = 100
"""A rejection replay is judged only if half of its queries consumed so many sessions."""


@dataclass(frozen=True)
class EffectiveSample:
    """The sessions that the rankers of a run's queries have consumed.

    least, median: over the queries. example: a query that consumed the most.
    """

    least: int = 0
    median: float = 0.0
    example: str | None = None

    @property
    def warning(self) -> str | None:
        """What to tell the user of a rejection replay that accepted too little."""
        if self.median >= ENOUGH:
            return None
        return (
            f"WARNING: no verdict: half of the queries matched {self.median:g} sessions or fewer, "
            f"at least {ENOUGH} are needed. The log shows too few of the lists that the ranker "
            "draws: take a longer log, or --feedback logged if a ranker like this one made it."
        )


def effective_sample(run: RunFolder) -> EffectiveSample:
    """The effective sample in a run's statistics; nothing where it has none."""
    import pyarrow.parquet as pq

    files = run.files("statistics")
    if not files:
        return EffectiveSample()
    table = pq.read_table(run.part("statistics"), columns=["query", "step"])
    last = table.group_by("query").aggregate([("step", "max")])
    steps = last.column("step_max").to_pylist()
    queries = last.column("query").to_pylist()
    example = min(zip(steps, queries, strict=True), key=lambda pair: (-pair[0], pair[1]))[1]
    return EffectiveSample(min(steps), median(steps), example)
