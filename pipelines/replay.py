"""The pipeline of `bubblerank replay`: a click log in, the ranker's stream, tables out."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import apache_beam as beam

from bubblerank.sessions.encode import DEFAULT_BLOCK_SESSIONS
from bubblerank.stream.replay import Replay
from pipelines.base_lists import StartFromLists, StartFromMostFrequent, StartFromStatistics
from pipelines.follow_folder import FollowFolder, Following, LeaveAfter
from pipelines.rank_sessions import RankSessions
from pipelines.read_sessions import ReadSessionFiles, ReadSessions, SessionBlocks
from pipelines.tally_queries import TallyQueries
from pipelines.write_tables import WriteTables


@dataclass(frozen=True)
class ReplaySettings:
    """Everything that determines a replay, and where it is written.

    base_lists: the lists by query; None takes each query's most frequent one, unless
    ``replay.first_list`` asks for its first.
    """

    replay: Replay
    logs: tuple[str, ...]
    out: str
    base_lists: Mapping[str, tuple[str, ...]] | None = None
    resume: tuple[str, ...] = ()
    log_format: str | None = None
    column_map: Mapping[str, str] = field(default_factory=dict)
    block_sessions: int = DEFAULT_BLOCK_SESSIONS


def build(pipeline: beam.Pipeline, settings: ReplaySettings) -> None:
    """Add the whole replay of a bounded log to a pipeline."""
    sessions = pipeline | "ReadSessions" >> ReadSessions(
        settings.logs, settings.log_format, settings.column_map, settings.block_sessions
    )
    _ = sessions.blocks | "TallyQueries" >> TallyQueries(settings.out)
    rank_and_write(pipeline, sessions, settings)


def build_following(
    pipeline: beam.Pipeline, settings: ReplaySettings, following: Following, every_s: float
) -> None:
    """Add the replay of a followed folder, for runners that keep event-time order.

    Every ``every_s`` of event time queries take turns and files are written.
    """
    files = ReadSessionFiles(settings.log_format, settings.column_map, settings.block_sessions)
    source = FollowFolder(following, files, settings.log_format)
    sessions = pipeline | "FollowFolder" >> source
    if following.until_us is not None:
        blocks = sessions.blocks | "LeaveAfter" >> LeaveAfter(following.until_us)
        sessions = sessions._replace(blocks=blocks)
    rank_and_write(pipeline, sessions, settings, every_s)


def rank_and_write(
    pipeline: beam.Pipeline,
    sessions: SessionBlocks,
    settings: ReplaySettings,
    every_s: float | None = None,
) -> None:
    """Sessions through the ranker into the run folder; ``every_s`` is for unbounded ones."""
    elements = [sessions.blocks]
    if settings.base_lists is not None:
        elements.append(pipeline | "GivenLists" >> StartFromLists(settings.base_lists))
    elif not settings.replay.first_list:
        elements.append(sessions.blocks | "MostFrequentLists" >> StartFromMostFrequent())
    if settings.resume:
        starts = StartFromStatistics(settings.resume, settings.replay.config)
        elements.append(pipeline | "Resume" >> starts)
    ranked = elements | beam.Flatten() | RankSessions(settings.replay, every_s)
    rejects = (sessions.rejects, ranked["reject"]) | "AllRejects" >> beam.Flatten()
    for rows, kind, part in (
        (ranked["display"], "display", "displays"),
        (ranked["statistic"], "statistic", "statistics"),
        (rejects, "reject", "rejects"),
    ):
        _ = rows | f"Write {part}" >> WriteTables(f"{settings.out}/{part}", kind, every_s)
