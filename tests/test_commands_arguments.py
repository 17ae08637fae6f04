"""The shared flags: what they understand and what they refuse."""

import math

import pytest

from bubblerank.errors import UsageError
from commands import arguments
from commands.parser import CommandParser


def parse(*words):
    parser = CommandParser(prog="bubblerank toy")
    arguments.add_run_folder(parser)
    arguments.add_output(parser)
    arguments.add_seed(parser)
    arguments.add_ranker(parser, default_horizon="--steps")
    arguments.add_top(parser)
    return parser.parse_command(["--out", "run", *words])


def test_defaults_are_the_documented_ones():
    args = parse()
    assert (args.format, args.quiet, args.overwrite, args.seed) == ("table", False, False, 0)
    assert (args.horizon, args.delta, args.positions, args.top) == (None, None, None, 5)
    assert args.freeze_decided is False


@pytest.mark.parametrize("text", ["1000000", "1e6", "1_000_000", "1000000.0"])
def test_whole_numbers_may_be_written_as_people_write_them(text):
    assert parse("--horizon", text).horizon == 1_000_000


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--horizon", "0"), "--horizon: must be at least 1, got 0"),
        (("--horizon", "1.5"), "--horizon: must be a whole number, got '1.5'"),
        (("--horizon", "soon"), "--horizon: must be a whole number, got 'soon'"),
        (("--horizon", "inf"), "--horizon: must be a whole number, got 'inf'"),
        (("--horizon", "1e30"), "--horizon: must be at most 9223372036854775807, got 1e30"),
        (("--delta", "1.5"), "--delta: must lie in (0, 1), got 1.5"),
        (("--delta", "0"), "--delta: must lie in (0, 1), got 0"),
        (("--delta", "nan"), "--delta: must lie in (0, 1), got nan"),
        (("--positions", "1001"), "--positions: must be 1 to 1000, got 1001"),
        (("--top", "none"), "--top: must be a whole number, got 'none'"),
        (("--seed", "x"), "--seed: must be a whole number, got 'x'"),
    ],
)
def test_a_bad_value_is_told_with_flag_value_and_bound(words, complaint):
    with pytest.raises(UsageError) as caught:
        parse(*words)
    assert complaint in str(caught.value)


def test_all_bad_values_are_told_at_once():
    with pytest.raises(UsageError) as caught:
        parse("--horizon", "0", "--delta", "7", "--top", "x")
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "argument --horizon",
        "argument --delta",
        "argument --top",
    ]


def test_a_horizon_sets_delta_as_the_paper_does():
    config = arguments.ranker_config(parse("--horizon", "500"), default_horizon=9)
    assert config.log_inverse_delta(config.start_horizon) == pytest.approx(4 * math.log(500))
    assert not config.doubling


def test_without_a_horizon_the_commands_default_holds():
    assert arguments.ranker_config(parse(), default_horizon=77).start_horizon == 77
    assert arguments.ranker_config(parse(), default_horizon=None).doubling
    assert arguments.ranker_config(parse("--horizon", "auto"), default_horizon=77).doubling


def test_a_fixed_delta_takes_the_place_of_the_horizon():
    config = arguments.ranker_config(parse("--delta", "0.25"), default_horizon=77)
    assert config.log_inverse_delta(config.start_horizon) == pytest.approx(math.log(4))
    assert config.start_horizon == 0


def test_a_horizon_and_a_delta_contradict_each_other():
    with pytest.raises(UsageError, match=r"--horizon 5 and --delta 0\.5 contradict each other"):
        arguments.ranker_config(parse("--horizon", "5", "--delta", "0.5"), default_horizon=1)


def test_a_folder_with_something_in_it_is_refused_unless_overwriting(tmp_path):
    arguments.refuse_nonempty(tmp_path / "new", overwrite=False)
    arguments.refuse_nonempty(tmp_path, overwrite=False)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is not empty: name another folder or add --overwrite"):
        arguments.refuse_nonempty(tmp_path, overwrite=False)
    arguments.refuse_nonempty(tmp_path, overwrite=True)
    with pytest.raises(UsageError, match="is not a folder"):
        arguments.refuse_nonempty(tmp_path / "file", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
