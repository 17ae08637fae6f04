"""Sessions and clicks of each query of a log, beside the replay of it."""

import json
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.transforms.window import GlobalWindow, GlobalWindows
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from apache_beam.utils.windowed_value import WindowedValue

from bubblerank.run_folder import TEMPORARY
from bubblerank.usage import block_tally


class TallyQueries(beam.PTransform):
    """Write (sessions, clicks) of each query of the blocks below the run's temporary folder.

    A bundle's tallies are one line, so that they cost next to nothing; `read_tallies` adds up.
    """

    def __init__(self, out: str) -> None:
        super().__init__()
        self._prefix = _prefix(out)

    def expand(self, blocks: beam.PCollection) -> beam.PCollection:
        """Tally bundles, write lines."""
        return (
            blocks
            | "Unwindow" >> beam.WindowInto(GlobalWindows())
            | "Tally" >> beam.ParDo(_Tally()).with_output_types(str)
            | "Write" >> beam.io.WriteToText(self._prefix)
        )


def read_tallies(out: str) -> dict[str, tuple[int, int]]:
    """(sessions, clicks) of each query, before the run's temporary folder is removed."""
    totals: dict[str, tuple[int, int]] = {}
    for found in FileSystems.match([_prefix(out) + "*"])[0].metadata_list:
        with FileSystems.open(found.path) as file:
            for line in file.read().splitlines():
                for query, (sessions, clicks) in json.loads(line).items():
                    before = totals.get(query, (0, 0))
                    totals[query] = before[0] + sessions, before[1] + clicks
    return totals


def _prefix(out: str) -> str:
    return str(FileSystems.join(out, TEMPORARY, "tallies"))


@beam.typehints.with_input_types(tuple[str, bytes])
@beam.typehints.with_output_types(str)
class _Tally(beam.DoFn):
    def start_bundle(self) -> None:
        self._totals: dict[str, tuple[int, int]] = {}

    def process(self, element: tuple[str, bytes]) -> Iterator[str]:
        query, data = element
        sessions, clicks = block_tally(data)
        before = self._totals.get(query, (0, 0))
        self._totals[query] = before[0] + sessions, before[1] + clicks
        return iter(())

    def finish_bundle(self) -> Iterator[Any]:
        if self._totals:
            yield WindowedValue(json.dumps(self._totals), MIN_TIMESTAMP, [GlobalWindow()])
