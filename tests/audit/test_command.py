"""`bubblerank audit` as a user types it: clean runs, one tampered row, bad input."""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import schemas
from bubblerank.problems import write_problems
from commands.main import main
from tests.reference_logs import FLAGS, PROBLEMS, sessions, trajectory, write_log

ALL = "structure safety completeness books statistics recompute".split()
STEPS = 1000


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def statuses(self):
        return {check["check"]: check["status"] for check in json.loads(self.out)["checks"]}

    @property
    def failures(self):
        """(check, query, step) of the first failures."""
        return {
            (failure["check"], failure["query"], failure["step"])
            for check in json.loads(self.out)["checks"]
            for failure in check["first_failures"]
        }


@pytest.fixture
def audit(capsys):
    def call(*words, form="json"):
        capsys.readouterr()
        code = main(["audit", *map(str, words), "--format", form])
        return Ended(code, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def problems(tmp_path_factory):
    path = tmp_path_factory.mktemp("audit") / "problems.jsonl"
    write_problems(path, PROBLEMS)
    return path


@pytest.fixture(scope="session")
def simulated(tmp_path_factory, problems):
    """A simulation of all rankers; a copy for each test that wants to change it."""
    out = tmp_path_factory.mktemp("audit") / "run"
    words = ["simulate", "--problems", problems, "--steps", STEPS, "--displays", "--out", out]
    words += ["--ranker", "bubblerank,cascade-klucb,batchrank,toprank,baseline", "--seed", 5]
    assert main([*map(str, words), "--quiet", "--horizon", "3"]) == 0
    return out


@pytest.fixture
def run(tmp_path, simulated):
    copy = tmp_path / "run"
    shutil.copytree(simulated, copy)
    return copy


def displays_of(run):
    return pq.read_table(run / "displays").to_pylist()


def rewrite(run, part, rows, files=3):
    """Replace a part's rows, spread over several files."""
    kind = {"displays": "display", "statistics": "statistic"}[part]
    shutil.rmtree(run / part)
    (run / part).mkdir()
    for number in range(files):
        table = pa.Table.from_pylist(rows[number::files], schema=schemas.arrow_schema(kind))
        pq.write_table(table, run / part / f"{number}.parquet", store_schema=False)


def row_at(rows, step, ranker="bubblerank", query="shoes"):
    return next(r for r in rows if (r["ranker"], r["query"], r["step"]) == (ranker, query, step))


def test_a_clean_run_of_every_ranker_passes_without_ground_truth(audit, run):
    ended = audit(run)
    assert ended.code == 0, ended.out
    assert ended.statuses == {
        "structure": "PASS",
        "safety": "NOT CHECKED",
        "completeness": "PASS",
        "books": "PASS",
        "statistics": "PASS",
        "recompute": "NOT CHECKED",
    }
    assert not (run / "findings").exists()


def test_with_the_truth_only_other_rankers_fail_and_only_in_safety(audit, run, problems):
    ended = audit(run, "--problems", problems)
    assert ended.code == 3
    assert ended.statuses == {name: "FAIL" if name == "safety" else "PASS" for name in ALL}
    found = {row["ranker"]: row for row in json.loads(ended.out)["rankers"]}
    assert found["bubblerank"]["violations"] == found["baseline"]["violations"] == 0
    assert found["toprank"]["violations_in_first"]["100"] > 0
    assert found["toprank"]["first_violation"] <= 20
    assert found["baseline"]["max_displacement"] == 0


def test_the_papers_table_from_displays_equals_the_metrics(audit, run, problems):
    ended = audit(run, "--problems", problems, "--check", "safety")
    told = {row["ranker"]: row["violations_in_first"] for row in json.loads(ended.out)["rankers"]}
    expected = dict.fromkeys(told, 0)
    for row in pq.read_table(run / "metrics").to_pylist():
        if row["step"] == STEPS:
            expected[row["ranker"]] += row["violations"]
    assert {ranker: counts["1000"] for ranker, counts in told.items()} == expected
    assert any(expected.values())


@pytest.mark.parametrize(
    "flags",
    [
        ["--horizon", "20", "--freeze-decided"],
        ["--delta", "0.1", "--positions", "4"],
        ["--horizon", "auto"],
        ["--horizon", "3", "--positions", "3", "--freeze-decided"],
    ],
    ids=" ".join,
)
def test_bubblerank_passes_under_every_setting(audit, tmp_path, problems, flags):
    out = tmp_path / "run"
    steps = "25000" if "auto" in flags else "2000"
    words = ["simulate", "--problems", str(problems), "--steps", steps, "--displays", "--quiet"]
    assert main([*words, "--runs", "2", "--out", str(out), *flags]) == 0
    ended = audit(out, "--problems", problems)
    statuses = ended.statuses
    safe = statuses.pop("safety")
    assert set(statuses.values()) == {"PASS"}, ended.out
    rows = pq.read_table(out / "metrics").to_pylist()
    measured = sum(row["violations"] for row in rows if row["step"] == int(steps))
    assert json.loads(ended.out)["rankers"][0]["violations"] == measured
    assert safe == ("FAIL" if measured else "PASS")
    if "--positions" not in flags:
        assert measured == 0


@pytest.fixture(scope="session")
def log(tmp_path_factory):
    rows = [
        row for problem in PROBLEMS for row in sessions(problem, trajectory(problem, 300, seed=3))
    ]
    path = tmp_path_factory.mktemp("audit") / "log.parquet"
    write_log(path, rows)
    bare = path.with_name("bare.parquet")
    write_log(bare, [{**row, "step": None} for row in rows])
    holey = path.with_name("holey.parquet")
    write_log(holey, [row for row in rows if row["step"] % 7])
    return {"steps": path, "bare": bare, "holey": holey}


@pytest.mark.parametrize(
    ("name", "flags", "recomputed"),
    [
        ("bare", ["--snapshot-every", "50s"], "NOT CHECKED"),
        ("holey", ["--snapshot-every", "50s"], "NOT CHECKED"),
        ("steps", ["--feedback", "match", "--seed", "3"], "PASS"),
    ],
)
def test_a_replayed_log_passes(audit, tmp_path, problems, log, name, flags, recomputed):
    out = tmp_path / "run"
    words = ["replay", "--log", log[name], "--base-lists", problems, "--out", out, "--quiet"]
    assert main([*map(str, words), *FLAGS, *flags]) == 0
    ended = audit(out, "--problems", problems)
    assert ended.statuses == {
        name: recomputed if name == "recompute" else "PASS" for name in ALL
    }, ended.out
    rows = displays_of(out)
    last = max(row["step"] for row in rows if row["query"] == "shoes")
    if last > 20:
        lost = row_at(rows, last // 7 * 7 - 1)
        rewrite(out, "displays", [row for row in rows if row is not lost])
        ended = audit(out)
        assert ended.code == 3
        assert ("completeness", "shoes", lost["step"]) in ended.failures or name == "holey"
        assert ended.statuses["completeness"] == "FAIL"


def test_a_resumed_replay_is_replayed_from_where_it_went_on(audit, tmp_path, problems):
    halves = []
    for half in range(2):
        rows = [
            row
            for problem in PROBLEMS
            for row in sessions(problem, trajectory(problem, 400))
            if (row["step"] > 200) == half
        ]
        write_log(tmp_path / f"{half}.parquet", rows)
        resume = ["--resume", str(halves[0])] if halves else []
        halves.append(tmp_path / f"run{half}")
        words = ["replay", "--log", tmp_path / f"{half}.parquet", "--out", halves[-1], "--quiet"]
        assert main([*map(str, words), "--base-lists", str(problems), *FLAGS, *resume]) == 0
    ended = audit(halves[1])
    assert ended.code == 0, ended.out
    assert ended.statuses["structure"] == ended.statuses["statistics"] == "PASS"


def exchange(row, one, other, part="displayed"):
    row[part][one], row[part][other] = row[part][other], row[part][one]


SHOES, SIZE, HATS = (problem.query for problem in PROBLEMS)


def test_lists_and_base_lists_that_cannot_be(audit, run):
    rows = displays_of(run)
    exchange(row_at(rows, 777), 0, 3)
    exchange(row_at(rows, 1, query=SIZE), 0, 1)
    exchange(row_at(rows, 600, query=HATS), 2, 3, "base")
    rewrite(run, "displays", rows)
    ended = audit(run, "--limit", 100)
    assert ended.code == 3
    named = {(SHOES, 777), (SIZE, 1), (HATS, 600)}
    assert named <= {(query, step) for check, query, step in ended.failures if check == "structure"}
    found = {
        (row["query"], row["step"]): row
        for row in pq.read_table(run / "findings").to_pylist()
        if row["check"] == "structure"
    }
    far, parity, base = found[SHOES, 777], found[SIZE, 1], found[HATS, 600]
    assert (far["ranker"], far["run"], far["severity"]) == ("bubblerank", 0, "violation")
    assert "only neighbours exchanged" in far["expected"]
    assert " ".join(row_at(rows, 777)["displayed"]) in far["actual"]
    assert "of the other parity" in parity["actual"]
    assert "changed without evidence" in base["actual"]


def test_a_decided_pair_and_a_flipped_click(audit, run, problems):
    """In the last row of even parity the top pair has long been decided."""
    rows = displays_of(run)
    exchange(row_at(rows, STEPS), 0, 1)
    row = row_at(rows, 500, query=SIZE)
    row["clicks"][2] = not row["clicks"][2]
    rewrite(run, "displays", rows)
    blind = audit(run)
    assert blind.code == 3
    assert {("structure", SHOES, STEPS), ("statistics", SIZE, STEPS)} <= blind.failures
    assert "although" in blind.out
    ended = audit(run, "--problems", problems, "--check", "recompute")
    assert ended.failures == {("recompute", SHOES, STEPS), ("recompute", SIZE, 500)}


def test_missing_and_doubled_steps(audit, run):
    rows = displays_of(run)
    lost = [row_at(rows, 321), row_at(rows, STEPS, "toprank"), row_at(rows, 1, "baseline")]
    rows = [row for row in rows if row not in lost]
    twin, other = row_at(rows, 40, query=SIZE), row_at(rows, 50, query=HATS)
    rows += [dict(twin), {**other, "displayed": other["displayed"][::-1]}]
    rewrite(run, "displays", rows)
    ended = audit(run, "--limit", 100)
    assert ended.code == 3
    counted = {(query, step) for check, query, step in ended.failures if check == "completeness"}
    assert counted == {(SHOES, 321), (SHOES, STEPS), (SHOES, 1), (SIZE, 40), (HATS, 50)}
    assert "the same row twice" in ended.out
    assert "two histories under one key" in ended.out
    assert ended.statuses["books"] == "FAIL"


def test_another_seed(audit, run):
    ended = audit(run, "--seed", 6, "--check", "recompute,structure")
    assert ended.code == 3
    assert ended.statuses == {"structure": "PASS", "recompute": "FAIL"}


def test_unknown_items_and_lists_of_other_lengths(audit, run):
    rows = displays_of(run)
    row_at(rows, 10)["displayed"][0] = "stranger"
    row_at(rows, 20)["displayed"].pop()
    row_at(rows, 30)["clicks"].pop()
    row_at(rows, 40)["base"].pop()
    row_at(rows, 50, "toprank")["displayed"].append("stranger")
    rewrite(run, "displays", rows)
    ended = audit(run, "--check", "structure")
    assert ended.code == 3
    steps = {step for _, _, step in ended.failures}
    assert {10, 20, 30, 40, 50} <= steps
    assert "unknown stranger" in ended.out


def test_missing_statistics_of_one_query_is_a_finding_and_of_all_not_checked(audit, run):
    rows = pq.read_table(run / "statistics").to_pylist()
    rewrite(run, "statistics", [row for row in rows if row["query"] != "shoes"])
    ended = audit(run)
    assert ended.code == 3
    assert ("statistics", "shoes", None) in ended.failures
    shutil.rmtree(run / "statistics")
    assert audit(run, "--check", "statistics").statuses == {"statistics": "NOT CHECKED"}


def test_missing_displays_of_one_query_are_found(audit, run):
    rows = displays_of(run)
    rewrite(run, "displays", [row for row in rows if row["query"] != "shoes"])
    ended = audit(run)
    assert ended.code == 3
    assert ("completeness", "shoes", 1) in ended.failures


def test_half_a_run_folder_is_a_finding_and_flags_give_the_settings(audit, run):
    (run / "run.json").unlink()
    ended = audit(run)
    assert ended.code == 3
    assert ended.statuses["books"] == "FAIL"
    assert ended.statuses["structure"] == ended.statuses["recompute"] == "NOT CHECKED"
    ended = audit(run, "--seed", 5, "--horizon", 3, "--check", "structure,statistics")
    assert ended.statuses == {"structure": "PASS", "statistics": "PASS"}


def test_books_that_do_not_balance(audit, run):
    manifest = json.loads((run / "run.json").read_text())
    manifest["counters"]["ranked"] -= 1
    (run / "run.json").write_text(json.dumps(manifest))
    ended = audit(run, "--check", "books")
    assert ended.code == 3
    assert "do not balance" in ended.out


def test_a_glob_without_settings_still_finds_what_needs_none(audit, run, tmp_path):
    pattern = f"{run}/displays/*.parquet"
    ended = audit(pattern)
    assert ended.code == 0
    assert ended.statuses == {
        name: "PASS" if name == "completeness" else "NOT CHECKED" for name in ALL
    }
    rows = displays_of(run)
    exchange(row_at(rows, 777), 0, 3)
    exchange(row_at(rows, 1), 0, 1)
    rewrite(run, "displays", rows)
    ended = audit(pattern, "--out", tmp_path / "out")
    assert ended.code == 3
    assert {("structure", "shoes", 777), ("structure", "shoes", 1)} <= ended.failures
    assert (tmp_path / "out" / "audit.json").is_file()


def test_a_verdict_can_be_repeated(audit, run, problems):
    audit(run, "--problems", problems)
    first = (run / "audit.json").read_bytes()
    findings = pq.read_table(run / "findings").sort_by([("query", "ascending")]).num_rows
    audit(run, "--problems", problems)
    assert (run / "audit.json").read_bytes() == first
    assert pq.read_table(run / "findings").num_rows == findings > 0
    for entry in json.loads(first)["inputs"]:
        content = Path(entry["path"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry["sha256"]
        assert len(content) == entry["bytes"]
    assert str(problems) in [entry["path"] for entry in json.loads(first)["inputs"]]


def test_fitted_attractions_are_called_so(audit, run, problems):
    ended = audit(run, "--problems", problems, "--fitted", form="table")
    assert "against the fitted model" in ended.out
    assert json.loads((run / "audit.json").read_text())["against"] == "against the fitted model"
    assert "--fitted is about --problems" in audit(run, "--fitted").err


def test_the_terminal_shows_a_line_for_each_check(audit, run):
    ended = audit(run, form="table")
    lines = [line.split() for line in ended.out.splitlines()]
    displays = f"{15 * STEPS:,}"
    assert ["PASS", "structure", displays, "0", "15"] in lines
    assert any(line[:3] == ["NOT", "CHECKED", "safety"] for line in lines)
    assert "verdict: PASS, not checked: safety, recompute" in ended.err


def test_the_checks_are_listed_with_what_they_need(audit):
    ended = audit("--list")
    assert ended.code == 0
    assert [row["name"] for row in json.loads(ended.out)] == ALL
    assert all(row["needs"] and row["proves"] for row in json.loads(ended.out))


def other_schema(run):
    pq.write_table(pa.table({"query": ["q"], "step": ["one"]}), run / "displays" / "9.parquet")
    return "has another schema than display: no column ranker"


def no_parquet(run):
    (run / "displays" / "9.parquet").write_bytes(b"PAR1 not really")
    return "9.parquet is no Parquet file that can be read"


def no_displays(run):
    shutil.rmtree(run / "displays")
    return "holds no displays: simulate with --displays"


def nulls(run):
    schema = pa.schema([f.with_nullable(True) for f in schemas.arrow_schema("display")])
    row = {**displays_of(run)[0], "displayed": None}
    pq.write_table(pa.Table.from_pylist([row], schema=schema), run / "displays" / "9.parquet")
    return "column displayed holds 1 nulls"


@pytest.mark.parametrize("spoil", [other_schema, no_parquet, no_displays, nulls])
def test_files_that_cannot_be_audited_are_a_clear_error(audit, run, spoil):
    message = spoil(run)
    ended = audit(run)
    assert ended.code == 2
    assert message in ended.err
    assert not (run / "audit.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a run or a glob of displays to audit"),
        (["nowhere/*.parquet"], "nowhere/*.parquet holds no displays"),
        (["x", "--check", "safty"], "did you mean 'safety'?"),
        (["x", "--horizon", "5", "--delta", "0.1"], "contradict each other"),
    ],
)
def test_mistakes_are_told(audit, words, message):
    ended = audit(*words)
    assert ended.code == 2
    assert message in ended.err


def test_a_replay_against_a_fitted_model_is_run_again(audit, tmp_path, log):
    fitted, out = tmp_path / "fitted.jsonl", tmp_path / "run"
    words = ["replay", "--feedback", "model", "--log", log["steps"], "--out", out, "--displays"]
    words += ["--fitted", fitted, "--steps", 500, "--click-model", "CM", "--quiet"]
    assert main([*map(str, words), *FLAGS]) == 0
    ended = audit(out, "--problems", fitted, "--fitted")
    statuses = ended.statuses
    assert statuses.pop("safety") in ("PASS", "FAIL")
    assert set(statuses.values()) == {"PASS"}, ended.out
    assert json.loads(ended.out)["against"] == "against the fitted model"


def test_other_attractions_than_the_simulations_own_cause_no_false_alarm(audit, run, tmp_path):
    other = tmp_path / "other.jsonl"
    flat = [replace(problem, attraction=[0.5] * len(problem.items)) for problem in PROBLEMS]
    write_problems(other, flat)
    ended = audit(run, "--problems", other)
    assert ended.code == 0
    assert ended.statuses["safety"] == "PASS"
    assert ended.statuses["recompute"] == "NOT CHECKED"


def test_a_query_without_attractions_or_with_an_unknown_item_is_not_passed(audit, run, tmp_path):
    some = tmp_path / "some.jsonl"
    write_problems(some, PROBLEMS[1:])
    ended = audit(run, "--problems", some, "--check", "safety")
    assert ended.statuses["safety"] == "FAIL"
    write_problems(some, PROBLEMS[:2])
    rows = [row for row in displays_of(run) if row["ranker"] == "baseline"]
    rewrite(run, "displays", rows)
    ended = audit(run, "--problems", some, "--check", "safety")
    assert ended.statuses["safety"] == "NOT CHECKED"
    row_at(rows, 3, "baseline")["displayed"][0] = "stranger"
    rewrite(run, "displays", [row for row in rows if row["query"] == SHOES])
    shutil.rmtree(run / "statistics")
    ended = audit(run, "--problems", some, "--check", "safety")
    assert ended.statuses["safety"] == "NOT CHECKED"
