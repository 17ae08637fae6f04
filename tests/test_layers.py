"""The library stands alone: Beam is never needed, and importing it costs next to nothing."""

import pkgutil
import subprocess
import sys

import bubblerank
import schemas

BLOCKED = "import sys; sys.modules['apache_beam'] = None\n"


def python(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def modules_of(package):
    return [
        package.__name__,
        *(m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")),
    ]


def test_the_block_does_block_beam():
    assert "ModuleNotFoundError" in python(BLOCKED + "import apache_beam").stderr


def test_the_library_and_the_schemas_import_with_beam_blocked():
    names = modules_of(bubblerank) + modules_of(schemas)
    ended = python(BLOCKED + "\n".join(f"import {name}" for name in names))
    assert ended.returncode == 0, ended.stderr
    assert {"bubblerank.problems", "bubblerank.errors", "schemas.arrow"} <= set(names)


def test_every_public_name_loads_with_beam_blocked():
    program = "import bubblerank\nfor name in bubblerank.__all__: getattr(bubblerank, name)"
    ended = python(BLOCKED + program)
    assert ended.returncode == 0, ended.stderr


def test_importing_the_library_loads_nothing_heavy():
    heavy = ["numpy", "numba", "pyarrow", "fastavro", "apache_beam"]
    ended = python(f"import sys, bubblerank, schemas; print(set({heavy}) & set(sys.modules))")
    assert ended.stdout == "set()\n"
