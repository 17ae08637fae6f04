"""`bubblerank schema`, with golden copies of what the terminal shows."""

import json

import fastavro
import pytest

import schemas
from commands.main import main


def test_list_shows_every_schema(capsys):
    assert main(["schema", "list"]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0].split() == ["name", "one", "row", "is"]
    assert lines[-2:] == [
        "session     One list displayed to one user, and the clicks on it.",
        "statistic   What one learner knows after a number of sessions.",
    ]
    assert main(["schema", "list", "--format", "json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == list(schemas.names())


@pytest.mark.parametrize("name", schemas.names())
def test_show_prints_avro_that_avro_understands(name, capsys):
    assert main(["schema", "show", name]) == 0
    shown = capsys.readouterr().out
    assert shown == schemas.text(name)
    fastavro.parse_schema(json.loads(shown))


def test_show_as_a_table_names_types_for_people(capsys):
    assert main(["schema", "show", "statistic", "--format", "table"]) == 0
    shown = capsys.readouterr().out
    assert "array of {upper string, lower string, wins long, trials long}" in shown
    assert main(["schema", "show", "session", "--format", "table"]) == 0
    shown = capsys.readouterr().out
    assert "long or null" in shown
    assert "timestamp-micros" in shown


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["show", "sesion"], "unknown schema 'sesion': did you mean 'session'?"),
        (["show"], "schema show needs a name: display, finding"),
        (["list", "session"], "schema list takes no name, got 'session'"),
        (["shwo"], "invalid choice: 'shwo'"),
    ],
)
def test_a_mistake_is_answered(words, answer, capsys):
    assert main(["schema", *words]) == 2
    assert answer in capsys.readouterr().err
