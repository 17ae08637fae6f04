"""Problems: the ground truth of a query, that is its production list and its users' click model."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from bubblerank.errors import UsageError, unknown_name
from bubblerank.field_checks import distinct_items, non_empty_text, probability_list, short
from bubblerank.record_files import read_records, write_records

POSITION_PARAMETER = {"CM": None, "DCM": "abandonment", "PBM": "examination"}
"""Click models, and the parameter by position that each of them needs."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One query with its production list R_0 (top first) and the parameters of its click model.

    `attraction` is the paper's alpha, aligned with `items`; `abandonment` the v(k) of a DCM and
    `examination` the chi(k) of a PBM, by position from the top. Any sequences are taken; they are
    kept as tuples. Raises `ValueError` for anything that is no problem.
    """

    query: str
    items: tuple[str, ...]
    click_model: str
    attraction: tuple[float, ...]
    abandonment: tuple[float, ...] | None = None
    examination: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        non_empty_text("query", self.query)
        object.__setattr__(self, "items", distinct_items("items", self.items))
        if not isinstance(self.click_model, str) or self.click_model not in POSITION_PARAMETER:
            raise ValueError(unknown_name("click_model", str(self.click_model), POSITION_PARAMETER))
        object.__setattr__(self, "attraction", probability_list("attraction", self.attraction))
        if len(self.attraction) != len(self.items):
            raise ValueError(
                f"attraction has {len(self.attraction)} values for {len(self.items)} items: "
                "give one per item"
            )
        for name in ("abandonment", "examination"):
            values = self._position_parameter(name, getattr(self, name))
            object.__setattr__(self, name, values)

    def _position_parameter(self, name: str, given: object) -> tuple[float, ...] | None:
        needed = POSITION_PARAMETER[self.click_model] == name
        if given is None and needed:
            raise ValueError(f"{name} is missing: {self.click_model} needs one value per position")
        if given is None:
            return None
        if not needed:
            raise ValueError(f"{name} must be null for {self.click_model}, got {short(given)}")
        values = probability_list(name, given)
        if len(values) > len(self.items):
            raise ValueError(
                f"{name} has {len(values)} values for {len(self.items)} items: "
                "give one per position, at most as many as items"
            )
        return values

    @property
    def positions(self) -> int:
        """K, the number of positions displayed: those with a parameter, else all items."""
        return len(self.abandonment or self.examination or self.items)

    def to_record(self) -> dict[str, Any]:
        """The problem as a record of `schemas/problem.avsc`, with lists."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_record(cls, record: object) -> "Problem":
        """The problem in a record; abandonment and examination may be left out."""
        if not isinstance(record, Mapping):
            raise ValueError(f"a problem is an object with named fields, got {short(record)}")
        names = [field.name for field in fields(cls)]
        for name in record:
            if name not in names:
                raise ValueError(unknown_name("field", str(name), names))
        needed = names[:4]
        missing = [name for name in needed if record.get(name) is None]
        if missing:
            raise ValueError(f"missing {', '.join(missing)}: a problem has {', '.join(needed)}")
        return cls(**record)


def read_problems(path: str | Path) -> list[Problem]:
    """The problems in a .jsonl, .avro or .parquet file, in its order.

    Raises `UsageError` naming file, place and value for a file without problems, a row that is
    none, and a second problem of the same query and click model.
    """
    problems: list[Problem] = []
    places: dict[tuple[str, str], str] = {}
    for where, record in read_records(path):
        try:
            problem = Problem.from_record(record)
        except ValueError as error:
            raise UsageError(f"{where}: {error}") from error
        _claim(places, problem, where)
        problems.append(problem)
    if not problems:
        raise UsageError(f"{path} holds no problems: give at least one")
    return problems


def write_problems(path: str | Path, problems: Iterable[Problem]) -> None:
    """Write problems to a .jsonl, .avro or .parquet file, which appears whole or not at all."""
    records = []
    places: dict[tuple[str, str], str] = {}
    for number, problem in enumerate(problems, start=1):
        _claim(places, problem, f"problem {number}")
        records.append(problem.to_record())
    if not records:
        raise UsageError(f"no problems to write to {path}: give at least one")
    write_records(path, "problem", records)


def _claim(places: dict[tuple[str, str], str], problem: Problem, where: str) -> None:
    """Remember where the problem of a query and click model is; refuse a second one."""
    first = places.setdefault((problem.query, problem.click_model), where)
    if first != where:
        raise UsageError(
            f"{where}: a second {problem.click_model} for the query {short(problem.query)}, "
            f"the first is in {first}: keep one"
        )
