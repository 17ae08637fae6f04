import json
from typing import NamedTuple

import pytest

from bubblerank.problems import write_problems
from commands.main import main
from tests.reference_logs import FLAGS, PROBLEMS, sessions, statistic, trajectory

STEPS = 900


class Ended(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def bubblerank(capsys):
    """Call the command line as a user types it."""

    def call(*words):
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Ended(code, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def problems_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("problems") / "problems.jsonl"
    write_problems(path, PROBLEMS)
    return path


@pytest.fixture(scope="session")
def trajectories():
    """What the readable ranker does on each problem."""
    return {problem: trajectory(problem, STEPS) for problem in PROBLEMS}


@pytest.fixture(scope="session")
def known_sessions(trajectories):
    return [row for problem, advance in trajectories.items() for row in sessions(problem, advance)]


@pytest.fixture(scope="session")
def known_statistics(trajectories):
    return {
        problem.query: statistic(problem, advance.progress.state)
        for problem, advance in trajectories.items()
    }


@pytest.fixture
def replay(bubblerank, problems_file, tmp_path):
    """Replay a log into tmp_path/run with the settings of the known sessions; must succeed."""

    def call(*logs, flags=(), out="run", config=tuple(FLAGS), base_lists=problems_file, code=0):
        words = ["replay", "--log", *logs, "--out", tmp_path / out, "--overwrite"]
        ended = bubblerank(*words, "--base-lists", base_lists, *config, *flags)
        assert ended.code == code, ended.err
        assert "Traceback" not in ended.err
        return tmp_path / out

    return call
