"""Avro schemas as Arrow schemas: same names, same nullability."""

from typing import Any

import pyarrow as pa

_PRIMITIVES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}


def schema_of(record: dict[str, Any]) -> pa.Schema:
    """The Arrow schema of an Avro record schema."""
    return pa.schema([_field(field["name"], field["type"]) for field in record["fields"]])


def _field(name: str, avro: Any) -> pa.Field:
    """An Arrow field; nullable exactly where the Avro type is a union with null."""
    if not isinstance(avro, list):
        return pa.field(name, _type(avro), nullable=False)
    present = [branch for branch in avro if branch != "null"]
    if len(present) != 1 or len(avro) != 2:
        raise ValueError(f"field {name!r}: a union must be of null and one type, got {avro!r}")
    return pa.field(name, _type(present[0]), nullable=True)


def _type(avro: Any) -> pa.DataType:
    match avro:
        case str() if avro in _PRIMITIVES:
            return _PRIMITIVES[avro]
        case {"type": "long", "logicalType": "timestamp-micros"}:
            return pa.timestamp("us", tz="UTC")
        case {"type": "array", "items": items}:
            return pa.list_(_field("element", items))
        case {"type": "record", "fields": fields}:
            return pa.struct([_field(field["name"], field["type"]) for field in fields])
    raise ValueError(f"no Arrow type is known for the Avro type {avro!r}: add it to {__name__}")


MOSTLY_DISTINCT = frozenset({"session_id", "detail", "payload", "expected", "actual"})
"""Text columns that rarely repeat a value: a dictionary would only cost time."""


def with_text_encoded(plain: pa.Schema) -> pa.Schema:
    """`plain` with text that repeats dictionary-encoded, by int32 indexes."""
    return pa.schema(
        [
            field if field.name in MOSTLY_DISTINCT else field.with_type(_text_encoded(field.type))
            for field in plain
        ]
    )


def _text_encoded(plain: pa.DataType) -> pa.DataType:
    if pa.types.is_string(plain):
        return pa.dictionary(pa.int32(), plain)
    if pa.types.is_list(plain):
        return pa.list_(plain.value_field.with_type(_text_encoded(plain.value_type)))
    if pa.types.is_struct(plain):
        return pa.struct([field.with_type(_text_encoded(field.type)) for field in plain])
    return plain
