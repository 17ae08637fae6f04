import pyarrow as pa
import pyarrow.parquet as pq

import schemas
from bubblerank.effective_sample import EffectiveSample, effective_sample
from bubblerank.run_folder import RunFolder


def write(folder, rows):
    names = schemas.arrow_schema("statistic").names
    empty = {"ranker": "bubblerank", "run": 0, "horizon": 9, "log_inverse_delta": 1.0}
    empty |= {"initial": [], "base": [], "pairs": []}
    records = [empty | {"query": query, "step": step} for query, step in rows]
    assert set(records[0]) == set(names)
    table = pa.Table.from_pylist(records, schema=schemas.arrow_schema("statistic"))
    (folder / "statistics").mkdir()
    pq.write_table(table, folder / "statistics" / "1.parquet")


def test_the_last_snapshot_of_each_query_counts(tmp_path):
    write(tmp_path, [("a", 10), ("a", 300), ("b", 20), ("c", 120), ("c", 120)])
    found = effective_sample(RunFolder(tmp_path))
    assert found == EffectiveSample(least=20, median=120, example="a")
    assert found.warning is None


def test_a_run_without_statistics_has_consumed_nothing(tmp_path):
    found = effective_sample(RunFolder(tmp_path))
    assert found == EffectiveSample(0, 0.0, None)
    assert "no verdict" in found.warning


def test_half_of_the_queries_with_too_few_sessions_are_no_verdict(tmp_path):
    write(tmp_path, [("a", 1000), ("b", 99), ("c", 3)])
    assert "matched 99 sessions or fewer" in effective_sample(RunFolder(tmp_path)).warning
