"""What the user sees: results on stdout as tables or JSON, remarks on stderr.

Text from files is never trusted: control characters are shown, not sent to the terminal.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Row = Mapping[str, Any]


def console(file: IO[str] | None = None) -> Console:
    """A console on `file` (default: stdout): plain with NO_COLOR, never cut when no terminal."""
    from rich.console import Console

    stream = sys.stdout if file is None else file
    plain = bool(os.environ.get("NO_COLOR"))
    width = None if stream.isatty() or os.environ.get("COLUMNS") else 10_000
    return Console(
        file=stream,
        color_system=None if plain else "auto",
        highlight=False,
        markup=False,
        emoji=False,
        width=width,
    )


def show_rows(
    rows: Sequence[Row], *, form: str, title: str | None = None, right: Collection[str] = ()
) -> None:
    """Print rows with the same keys as a table, or as a JSON array (`form` is `--format`).

    Columns of numbers, and those named in `right`, are aligned at the right.
    """
    if form == "json":
        show_json(list(rows))
        return
    table = _table()
    for name, value in (rows[0] if rows else {}).items():
        number = (isinstance(value, (int, float)) and not isinstance(value, bool)) or name in right
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*[_cell(value) for value in row.values()])
    _print(title, table)


def show_record(record: Row, *, form: str, title: str | None = None) -> None:
    """Print one record, a line per field, or as a JSON object (`form` is `--format`)."""
    if form == "json":
        show_json(dict(record))
        return
    table = _table()
    table.show_header = False
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in record.items():
        table.add_row(_cell(name), _cell(value))
    _print(title, table)


def show_json(value: object) -> None:
    """Print a value as JSON."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def remark(message: str, *, quiet: bool = False) -> None:
    """Print a remark on stderr, unless `--quiet`."""
    if not quiet:
        sys.stderr.write(visible(message) + "\n")


def visible(text: str) -> str:
    """The text with control characters shown as escapes, so that none can steer the terminal.

    >>> visible("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return "".join(
        letter if letter.isprintable() or letter in " \n" else ascii(letter)[1:-1]
        for letter in text
    )


def _table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)


def _print(title: str | None, table: Table) -> None:
    """The title stands above the table, and is not folded to the table's width."""
    from rich.text import Text

    screen = console()
    if title:
        screen.print(Text(visible(title), style="bold"))
    screen.print(table)


def _cell(value: object) -> str:
    """A value as a table shows it: whole numbers with separators, floats with six digits."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, (list, tuple)):
        return " ".join(_cell(part) for part in value)
    return visible(str(value)).replace("\n", "\\n")
