"""Run benchmarks and print a table of each: ``python -m benchmarks [NAME...]``.

A benchmark is a module of this package with a function ``run`` that gives rows, dictionaries
with the same keys. The first line of its docstring is the title of its table.
"""

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Iterable, Mapping
from types import ModuleType

from rich.console import Console
from rich.table import Table

import benchmarks


def find_benchmarks() -> dict[str, ModuleType]:
    """The modules with a ``run``, by name."""
    names = [found.name for found in pkgutil.iter_modules(benchmarks.__path__)]
    modules = {
        name: importlib.import_module(f"benchmarks.{name}")
        for name in sorted(names)
        if not name.startswith("_")
    }
    return {name: module for name, module in modules.items() if hasattr(module, "run")}


def as_table(title: str, rows: Iterable[Mapping[str, object]]) -> Table:
    """Rows as a table; numbers to the right."""
    table = Table(title=title, title_justify="left")
    for row in rows:
        if not table.columns:
            for name, value in row.items():
                number = isinstance(value, int | float)
                table.add_column(name, justify="right" if number else "left")
        table.add_row(*[cell(value) for value in row.values()])
    return table


def cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    known = find_benchmarks()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"which: {', '.join(known)}; all by default")
    names = parser.parse_args().name or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}: there are {', '.join(known)}")
    console = Console(width=None if sys.stdout.isatty() else 120)
    for name in names:
        title = (known[name].__doc__ or name).splitlines()[0]
        console.print(as_table(f"{name}: {title}", known[name].run()))


if __name__ == "__main__":
    main()
