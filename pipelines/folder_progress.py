"""How far a source has come with a folder: what a runner checkpoints, in portable coders."""

import json
from typing import Any, NamedTuple

from apache_beam.coders import Coder, StrUtf8Coder, VarIntCoder
from apache_beam.io.iobase import RestrictionProgress, RestrictionTracker
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.transforms.core import RestrictionProvider, WatermarkEstimatorProvider
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp

from bubblerank.stream.rounds import NEVER_US

MILLISECOND_US = 1000


class FolderProgress(NamedTuple):
    """The names of the files read, the newest event time in them, and when the last one came.

    ended: nothing more is to be read.
    """

    taken: tuple[str, ...] = ()
    newest_us: int = NEVER_US
    quiet_since_s: float = 0.0
    ended: bool = False

    def to_json(self) -> str:
        """The restriction as the runner keeps it."""
        return json.dumps(self)

    @staticmethod
    def from_json(text: str) -> "FolderProgress":
        """The progress of ``to_json``."""
        taken, newest_us, quiet_since_s, ended = json.loads(text)
        return FolderProgress(tuple(taken), newest_us, quiet_since_s, ended)


class FolderTracker(RestrictionTracker):
    """Claims are of the progress to come; a split hands all that is unclaimed to the residual.

    The file that is being read when the runner splits stays with the primary, and its event
    times do not move the residual's watermark: it lags until the next file, never runs ahead.
    """

    def __init__(self, restriction: str) -> None:
        self._progress = FolderProgress.from_json(restriction)
        self._split = False

    def current_restriction(self) -> str:
        """What has been claimed, and whether there may be more."""
        return self._progress.to_json()

    def try_claim(self, position: FolderProgress) -> bool:
        """Go on to this progress, unless the rest was split off."""
        if self._split or self._progress.ended:
            return False
        self._progress = position
        return True

    def try_split(self, fraction_of_remainder: float) -> tuple[str, str] | None:
        """Checkpoints only: one folder is one line of work."""
        if fraction_of_remainder or self._split or self._progress.ended:
            return None
        rest = self._progress
        self._progress, self._split = rest._replace(ended=True), True
        return self._progress.to_json(), rest.to_json()

    def check_done(self) -> None:
        """Raise ValueError when the folder was left before its end."""
        if not (self._split or self._progress.ended):
            raise ValueError("the source left its folder without ending or deferring")

    def current_progress(self) -> RestrictionProgress:
        """Files read; how many will come is not known."""
        done = self._split or self._progress.ended
        return RestrictionProgress(completed=len(self._progress.taken), remaining=0 if done else 1)

    def is_bounded(self) -> bool:
        """Never: files may come for ever."""
        return False


class FolderRestrictions(RestrictionProvider):
    """The restrictions of one folder."""

    def initial_restriction(self, element: str) -> str:
        """Nothing read yet."""
        return FolderProgress().to_json()

    def create_tracker(self, restriction: str) -> FolderTracker:
        """The tracker of a restriction."""
        return FolderTracker(restriction)

    def restriction_size(self, element: str, restriction: str) -> int:
        """All folders weigh the same."""
        return 1

    def restriction_coder(self) -> Coder:
        """Text, which every runner knows."""
        return StrUtf8Coder()


class FolderWatermark(ManualWatermarkEstimator):
    """A watermark that only rises, in whole milliseconds, kept as a number."""

    def get_estimator_state(self) -> int:
        """Microseconds."""
        return int(self.current_watermark().micros)

    def rise_to(self, time_us: int) -> None:
        """Promise that nothing before this event time is to come, where that is news."""
        time = Timestamp(
            micros=max(time_us // MILLISECOND_US * MILLISECOND_US, MIN_TIMESTAMP.micros)
        )
        if time > self.current_watermark():
            self.set_watermark(time)


class FolderWatermarks(WatermarkEstimatorProvider):
    """The watermarks of one folder, from the beginning of time."""

    def initial_estimator_state(self, element: str, restriction: str) -> int:
        """Nothing is promised yet."""
        return int(MIN_TIMESTAMP.micros)

    def create_watermark_estimator(self, estimator_state: int) -> FolderWatermark:
        """The estimator that goes on from a state."""
        return FolderWatermark(Timestamp(micros=estimator_state))

    def estimator_state_coder(self) -> Any:
        """A number, which every runner knows."""
        return VarIntCoder()
