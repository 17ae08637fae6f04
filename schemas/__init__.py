"""The schemas of everything that enters or leaves: Avro files, and what is derived from them.

`schemas/NAME.avsc` is the only place where a kind of record is written down; Parquet takes the
Arrow schema that is derived from it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

_FOLDER = Path(__file__).parent


@cache
def names() -> tuple[str, ...]:
    """The known kinds of record, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.avsc")))


def text(name: str) -> str:
    """The Avro schema of `name` as written, with its documentation."""
    if name not in names():
        from bubblerank.errors import unknown_name

        raise ValueError(unknown_name("schema", name, names()))
    return (_FOLDER / f"{name}.avsc").read_text("utf-8")


def load(name: str) -> dict[str, Any]:
    """The Avro schema of `name` as a dictionary of its own, free to be changed."""
    import json

    schema: dict[str, Any] = json.loads(text(name))
    return schema


@cache
def arrow_schema(name: str) -> pyarrow.Schema:
    """The Arrow schema of `name`, which its Parquet files have: the same fields, the same nulls."""
    from schemas.arrow import schema_of

    return schema_of(load(name))


@cache
def encoded_arrow_schema(name: str) -> pyarrow.Schema:
    """The Arrow schema of `name` with its repeating text as dictionaries, for tables in memory.

    Tables of exactly this schema are the fastest to write; their files have the plain schema.
    """
    from schemas.arrow import with_text_encoded

    return with_text_encoded(arrow_schema(name))


@cache
def fingerprint(name: str) -> str:
    """SHA-256, in hex, of the schema's Parsing Canonical Form (Avro specification)."""
    from fastavro.schema import fingerprint as digest
    from fastavro.schema import to_parsing_canonical_form

    return str(digest(to_parsing_canonical_form(load(name)), "SHA-256"))
