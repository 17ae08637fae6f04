"""Counts of log files, read here and now; for big logs `pipelines.fit` gives the same table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from bubblerank.fitting.list_counts import CountLists, count_table
from bubblerank.sessions.readers import check_column_map, format_of, read_part, split_file
from bubblerank.sessions.validate import validate


@dataclass(frozen=True)
class LogCounts:
    """The counts of a log, and what became of its records: `read` is sessions and rejects."""

    table: pa.Table
    read: int
    rejected: int
    clicks_outside: int
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def sessions(self) -> int:
        """The accepted sessions; duplicates are counted as they come."""
        return self.read - self.rejected


def count_files(
    paths: Sequence[str],
    log_format: str | None = None,
    column_map: Mapping[str, str] | None = None,
) -> LogCounts:
    """Read and count files, chunk by chunk; only the counts stay in memory."""
    names = check_column_map(column_map)
    aggregate = CountLists()
    counted = aggregate.create()
    read = rejected = outside = 0
    reasons: Counter[str] = Counter()
    for path in paths:
        file_format = format_of(path, log_format)
        with open(path, "rb") as file:
            for part in split_file(file, file_format):
                for chunk in read_part(file, path, file_format, names, part):
                    good, bad = validate(chunk.rows, path, chunk.positions)
                    counted = aggregate.add(counted, count_table(good))
                    for rejects in (chunk.rejects, bad):
                        reasons.update(rejects.column("reason").to_pylist())
                        rejected += rejects.num_rows
                    read += good.num_rows + bad.num_rows + chunk.rejects.num_rows
                    outside += chunk.clicks_outside
    return LogCounts(
        aggregate.extract(counted), read, rejected, outside, dict(sorted(reasons.items()))
    )
