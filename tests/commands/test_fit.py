"""`bubblerank generate` and `bubblerank fit` as a user types them."""

import json

import pytest

from bubblerank.problems import read_problems
from commands.main import main


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    path = folder / "log.parquet"
    words = ["--sessions", "6000", "--queries", "12", "--positions", "6", "--broken-rate", ".01"]
    assert main(["generate", "--out", str(path), *words, "--quiet"]) == 0
    return path


def fit(log, out, *more):
    return main(["fit", "--log", str(log), "--out", str(out), *more])


@pytest.mark.parametrize("name", ["CM", "DCM", "PBM"])
def test_fit_writes_problems_of_the_production_lists(log, tmp_path, capsys, name):
    out = tmp_path / "problems.jsonl"
    assert fit(log, out, "--click-model", name, "--queries", "5", "--format", "json") == 0
    told = json.loads(capsys.readouterr().out)
    problems = read_problems(out)
    truth = read_problems(log.with_name("log.problems.jsonl"))
    assert [problem.query for problem in problems] == [f"q{rank}" for rank in range(1, 6)]
    assert [problem.items for problem in problems] == [problem.items for problem in truth[:5]]
    assert {problem.click_model for problem in problems} == {name}
    assert told["read"] == 6000
    assert told["rejected"] == sum(told["reasons"].values()) > 0
    assert told["sessions"] == told["read"] - told["rejected"]
    assert told["queries"] == 12
    assert told["evaluation"][0]["on"] == "train"
    assert 1.0 < told["evaluation"][0]["perplexity"] < 2.0
    rising = [step["with_prior"] for step in told["iterations"]]
    assert (name == "PBM") == bool(rising)
    assert rising == sorted(rising)
    if rising:
        final = told["iterations"][-1]["log_likelihood"]
        assert final == pytest.approx(told["evaluation"][0]["log_likelihood"])


def test_beam_and_memory_write_the_same_problems(log, tmp_path):
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    assert fit(log, here, "--click-model", "PBM", "--quiet") == 0
    flags = ("--click-model", "PBM", "--quiet", "--", "--direct_num_workers=1")
    assert fit(log, there, *flags) == 0
    assert here.read_bytes() == there.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.jsonl", "there.jsonl"]


def test_a_test_log_is_evaluated_too_and_tables_tell_iterations(log, tmp_path, capsys):
    test = tmp_path / "test.parquet"
    assert main(["generate", "--out", str(test), "--sessions", "500", "--queries", "30",
                 "--positions", "6", "--quiet"]) == 0  # fmt: skip
    assert fit(log, tmp_path / "p.jsonl", "--click-model", "PBM", "--test", str(test)) == 0
    told = capsys.readouterr()
    assert "test" in told.out
    assert "chi(k)" in told.out
    assert "Perplexity by rank" in told.out
    assert "EM iteration     0: log-likelihood with the prior -" in told.err
    assert "missing_query" in told.err


def test_fitted_problems_are_for_simulate(log, tmp_path):
    problems = tmp_path / "p.jsonl"
    assert fit(log, problems, "--click-model", "DCM", "--queries", "2", "--quiet") == 0
    words = ["--problems", str(problems), "--steps", "200", "--out", str(tmp_path / "run")]
    assert main(["simulate", *words, "--quiet"]) == 0


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["--click-model", "CM", "--iterations", "5"], "--iterations belong to EM"),
        (["--click-model", "CM", "--prior", "3/2"], "--prior must be none or CLICKS/VIEWS"),
        (["--click-model", "UBM"], "invalid choice: 'UBM'"),
        (["--click-model", "CM", "--test", "nowhere.parquet"], "nowhere.parquet matches no file"),
    ],
)
def test_a_mistake_is_answered_with_exit_code_2(log, tmp_path, capsys, words, answer):
    assert fit(log, tmp_path / "p.jsonl", *words) == 2
    assert answer in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_kept_unless_it_may_be_overwritten(log, tmp_path, capsys):
    out = tmp_path / "p.jsonl"
    out.write_text("precious")
    assert fit(log, out, "--click-model", "CM") == 2
    assert "exists: name another file or add --overwrite" in capsys.readouterr().err
    assert out.read_text() == "precious"
    assert main(["generate", "--out", str(out)]) == 2
    assert fit(log, out, "--click-model", "CM", "--overwrite", "--quiet") == 0


def test_too_many_rejects_are_exit_code_4(log, tmp_path, capsys):
    code = fit(log, tmp_path / "p.jsonl", "--click-model", "CM", "--max-reject-rate", "0.001")
    assert code == 4
    assert "--max-reject-rate is 0.10%" in capsys.readouterr().err


def test_a_log_without_a_usable_session_is_told(tmp_path, capsys):
    log = tmp_path / "log.jsonl"
    log.write_text("{]\n")
    assert fit(log, tmp_path / "p.jsonl", "--click-model", "CM") == 2
    assert "1 of 1 records rejected (not_parsable 1)" in capsys.readouterr().err


def test_generate_refuses_variants_of_a_randomised_log(tmp_path, capsys):
    words = ["--out", str(tmp_path / "l.avro"), "--randomised", "--variants", "3"]
    assert main(["generate", *words]) == 2
    assert "--randomised has no --variants" in capsys.readouterr().err
