"""Misreadings of the paper, made on purpose: each is a change of one place of the readable code.

A mutant is worth something when the check that the real code passes fails on it.
"""

import inspect
import textwrap
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True)
class Mutant:
    """``old`` becomes ``new`` in the source of a function of a module, or of a class in it."""

    name: str
    module: ModuleType
    function: str
    old: str
    new: str

    def plant(self, monkeypatch):
        """Put the changed function in the place of the real one."""
        *owners, name = self.function.split(".")
        owner = self.module
        for part in owners:
            owner = getattr(owner, part)
        source = textwrap.dedent(inspect.getsource(getattr(owner, name)))
        if source.count(self.old) != 1:
            raise ValueError(f"mutant {self.name!r}: {self.old!r} must be once in\n{source}")
        namespace = {}
        changed = source.replace(self.old, self.new)
        exec(compile(changed, f"<mutant {self.name}>", "exec"), vars(self.module), namespace)
        monkeypatch.setattr(owner, name, namespace[name])
