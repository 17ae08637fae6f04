"""An argument parser that tells everything that is wrong with a command line at once."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from bubblerank.errors import UsageError, raise_all, unknown_name


class CommandParser(argparse.ArgumentParser):
    """Parses one command's flags: none abbreviated, all complaints in one `UsageError`."""

    def __init__(self, **settings: Any) -> None:
        """Take the settings of `argparse.ArgumentParser`; the epilog is printed as written."""
        super().__init__(
            allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **settings
        )
        self._complaints: list[str] = []

    def parse_command(self, words: Sequence[str], *, beam: bool = False) -> argparse.Namespace:
        """Parse; what follows `--` becomes `beam_flags`, which only Beam commands may be given."""
        split = words.index("--") if "--" in words else len(words)
        beam_flags = list(words[split + 1 :])
        self._complaints = []
        if beam_flags and not beam:
            given = " ".join(beam_flags)
            self._complaints.append(f"{self.prog} runs no pipeline: remove -- {given}")
        own, strange = self._without_unknown_flags(words[:split])
        args, rest = self.parse_known_args(own)
        if rest and not strange:
            self._complaints.append(f"unexpected: {' '.join(rest)}")
        raise_all(self._complaints)
        args.beam_flags = beam_flags
        return args

    def error(self, message: str) -> NoReturn:
        """Raise argparse's own complaint together with those collected before it."""
        raise UsageError("\n".join([*self._complaints, message]))

    def _without_unknown_flags(self, words: Sequence[str]) -> tuple[list[str], list[str]]:
        known = self._option_string_actions
        strange = [
            word for word in words if word.startswith("--") and word.partition("=")[0] not in known
        ]
        flags = sorted(flag for flag in known if flag.startswith("--"))
        for word in strange:
            self._complaints.append(unknown_name("flag", word.partition("=")[0], flags))
        return [word for word in words if word not in strange], strange

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        try:
            return super()._get_value(action, text)
        except argparse.ArgumentError as error:
            self._complaints.append(str(error))
            return None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            if value is not None:
                self._complaints.append(str(error))
