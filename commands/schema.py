"""`bubblerank schema`: list the schemas of all files, or print one."""

import argparse
import sys
from typing import Any

import schemas
from bubblerank.errors import UsageError
from commands.output import show_rows

EXAMPLES = """\
examples:
  bubblerank schema list
  bubblerank schema show session
  bubblerank schema show problem --format table
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `schema`."""
    parser.add_argument("action", choices=("list", "show"), help="list all names, or show one")
    parser.add_argument("name", nargs="?", metavar="NAME", help=", ".join(schemas.names()))
    parser.add_argument(
        "--format",
        choices=("table", "json"),
        help="table: for people; json: Avro, as it is (default: table to list, json to show)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the names with what they hold, or one schema."""
    if args.action == "list":
        if args.name:
            raise UsageError(f"schema list takes no name, got {args.name!r}: try schema show")
        rows = [{"name": name, "one row is": schemas.load(name)["doc"]} for name in schemas.names()]
        show_rows(rows, form=args.format or "table")
        return 0
    if not args.name:
        raise UsageError(f"schema show needs a name: {', '.join(schemas.names())}")
    try:
        text = schemas.text(args.name)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if args.format == "table":
        show_rows(_fields(args.name), form="table", title=schemas.load(args.name)["doc"])
    else:
        sys.stdout.write(text)
    return 0


def _fields(name: str) -> list[dict[str, str]]:
    return [
        {"field": field["name"], "type": _type_name(field["type"]), "is": field["doc"]}
        for field in schemas.load(name)["fields"]
    ]


def _type_name(avro: Any) -> str:
    match avro:
        case ["null", present]:
            return f"{_type_name(present)} or null"
        case {"logicalType": str(logical)}:
            return logical
        case {"type": "array", "items": items}:
            return f"array of {_type_name(items)}"
        case {"type": "record", "fields": fields}:
            inner = ", ".join(f"{field['name']} {_type_name(field['type'])}" for field in fields)
            return f"{{{inner}}}"
    return str(avro)
