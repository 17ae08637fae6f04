import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bubblerank
import schemas
from bubblerank.errors import RunFailed, UsageError
from bubblerank.run_folder import PARTS, RunFolder


def put_rows(folder, part, count, name="a"):
    schema = schemas.arrow_schema(PARTS[part])
    columns = [pa.nulls(count, field.type) for field in schema]
    folder.part(part).mkdir(exist_ok=True)
    loose = pa.schema([field.with_nullable(True) for field in schema])
    pq.write_table(pa.table(columns, loose), folder.part(part) / f"{name}.parquet")


def finish(folder, **changes):
    values = {
        "command": "replay",
        "settings": {"horizon": None},
        "seed": 7,
        "runner": "DirectRunner",
        "engine": "FnApiRunner",
        "counters": {"read": 40, "ranked": 40},
        "seconds": 2.0,
    }
    return folder.write_manifest(**(values | changes))


def test_a_new_or_empty_folder_is_made_ready(tmp_path):
    assert RunFolder.prepare(tmp_path / "a" / "b").path.is_dir()
    assert not RunFolder.prepare(tmp_path / "a" / "b").is_complete


def test_a_file_and_a_non_empty_folder_are_refused(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(UsageError, match="is not a folder"):
        RunFolder.prepare(tmp_path / "x", overwrite=True)
    with pytest.raises(UsageError, match=r"not empty: .* --overwrite"):
        RunFolder.prepare(tmp_path)


def test_overwriting_removes_the_parts_of_a_run(tmp_path):
    folder = RunFolder.prepare(tmp_path / "run")
    put_rows(folder, "displays", 3)
    (folder.path / "report.html").write_text("")
    (folder.path / "audit.json").write_text("{}")
    (folder.path / ".writing" / "displays-1").mkdir(parents=True)
    finish(folder)
    assert list(RunFolder.prepare(folder.path, overwrite=True).path.iterdir()) == []


@pytest.mark.parametrize("strange", ["notes.txt", "displays/notes.txt", "displays/deep/a.parquet"])
def test_overwriting_never_touches_a_folder_that_holds_anything_else(tmp_path, strange):
    folder = RunFolder.prepare(tmp_path / "run")
    put_rows(folder, "statistics", 1)
    finish(folder)
    (folder.path / strange).parent.mkdir(parents=True, exist_ok=True)
    (folder.path / strange).write_text("mine")
    with pytest.raises(UsageError, match="no part of a run"):
        RunFolder.prepare(folder.path, overwrite=True)
    assert folder.is_complete
    assert (folder.path / strange).read_text() == "mine"
    assert folder.rows()["statistics"] == 1


def test_overwriting_does_not_follow_links_out_of_the_folder(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.parquet").write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "displays").symlink_to(elsewhere)
    with pytest.raises(UsageError, match="no part of a run"):
        RunFolder.prepare(tmp_path / "run", overwrite=True)
    assert (elsewhere / "a.parquet").exists()


def test_the_manifest_holds_what_a_reader_of_the_run_needs(tmp_path):
    folder = RunFolder.prepare(tmp_path / "run")
    put_rows(folder, "displays", 30, "a")
    put_rows(folder, "displays", 10, "b")
    put_rows(folder, "rejects", 0)
    written = finish(folder, counters={"read": 40, "ranked": 40, "rows_display": 40}, note="x")
    assert folder.is_complete
    assert folder.read_manifest() == json.loads(json.dumps(written))
    assert written["rows"] == {"displays": 40, "rejects": 0}
    assert written["per_second"] == {"read": 20.0, "ranked": 20.0, "displays": 20.0}
    assert written["version"] == bubblerank.__version__
    assert written["schemas"]["display"] == schemas.fingerprint("display")
    assert (written["seed"], written["engine"], written["note"]) == (7, "FnApiRunner", "x")


def test_files_with_other_rows_than_the_counters_say_are_no_complete_run(tmp_path):
    folder = RunFolder.prepare(tmp_path / "run")
    put_rows(folder, "displays", 39)
    with pytest.raises(RunFailed, match=r"40 display rows were to be written and .* holds 39"):
        finish(folder, counters={"rows_display": 40})
    with pytest.raises(RunFailed, match=r"5 metric rows .* holds 0"):
        finish(folder, counters={"rows_metric": 5})
    assert not folder.is_complete


@pytest.mark.parametrize("error", [KeyboardInterrupt, RunFailed, UsageError])
def test_a_run_that_ends_badly_has_no_manifest_and_no_half_file(tmp_path, error):
    folder = RunFolder.prepare(tmp_path / "run")
    with pytest.raises(error), folder.filling():
        half = folder.path / ".writing" / "displays-1" / "half"
        half.parent.mkdir(parents=True)
        half.write_text("half")
        raise error
    assert list(folder.path.iterdir()) == []
    with pytest.raises(UsageError, match="did not end well"):
        folder.read_manifest()


def test_a_manifest_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    folder = RunFolder.prepare(tmp_path / "run")
    monkeypatch.setattr("os.replace", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        finish(folder)
    assert list(folder.path.iterdir()) == []


def test_what_is_no_manifest_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="no run folder"):
        RunFolder(tmp_path / "none").read_manifest()
    for text in ("{", "[]"):
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(UsageError, match=r"run\.json"):
            RunFolder(tmp_path).read_manifest()


def test_an_unknown_part_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"one of displays, .* got 'display'"):
        RunFolder(tmp_path).part("display")
