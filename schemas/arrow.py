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
