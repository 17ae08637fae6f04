import pytest

from bubblerank.fitting.read import count_files
from bubblerank.generation.settings import LogSettings
from bubblerank.generation.write import write_log
from pipelines.engine import choose_engine, run_pipeline
from pipelines.fit import CountSettings, build, read_counts

SETTINGS = LogSettings(sessions=4000, queries=30, positions=6, broken_rate=0.02, seed=1)


@pytest.mark.parametrize("ending", ["parquet", "avro", "jsonl", "tsv"])
@pytest.mark.parametrize("block_sessions", [16_384, 50])
def test_beam_counts_what_reading_in_memory_counts(tmp_path, ending, block_sessions):
    path = tmp_path / f"log.{ending}"
    write_log(path, SETTINGS)
    folder = tmp_path / "counts"
    settings = CountSettings((str(path),), str(folder), block_sessions=block_sessions)
    options, _ = choose_engine([])
    counters = run_pipeline(lambda pipeline: build(pipeline, settings), options)
    by_beam, here = read_counts(str(folder), counters), count_files([str(path)])
    assert by_beam.table.equals(here.table)
    assert (by_beam.read, by_beam.rejected) == (here.read, here.rejected)
    assert by_beam.reasons == here.reasons
    assert here.read == SETTINGS.sessions
    assert here.rejected > 0


def test_the_number_of_files_and_workers_shows_nowhere(tmp_path):
    paths = []
    for part in range(3):
        path = tmp_path / f"log{part}.parquet"
        write_log(path, LogSettings(sessions=500, queries=8, seed=part))
        paths.append(str(path))
    tables = []
    for workers in (1, 2):
        folder = tmp_path / f"counts{workers}"
        settings = CountSettings(tuple(paths), str(folder))
        options, _ = choose_engine([f"--direct_num_workers={workers}"])
        counters = run_pipeline(lambda pipeline, s=settings: build(pipeline, s), options)
        tables.append(read_counts(str(folder), counters).table)
    assert tables[0].equals(tables[1])
    assert tables[0].equals(count_files(paths[::-1]).table)
