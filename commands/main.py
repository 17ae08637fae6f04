"""The entry point: find the command, load only it, and turn how it ends into an exit code."""

import importlib
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

import bubblerank
from bubblerank.errors import RunFailed, UsageError, unknown_name
from commands.parser import CommandParser


class Command(NamedTuple):
    """Where a command lives, what it does, and whether it takes Beam flags after `--`."""

    module: str
    summary: str
    beam: bool = False


COMMANDS = {
    "simulate": Command(
        "commands.simulate", "run rankers against the click models of problems", beam=True
    ),
    "replay": Command(
        "commands.replay", "run a click log through the ranker as a stream", beam=True
    ),
    "generate": Command("commands.generate", "write a synthetic click log with a known truth"),
    "fit": Command("commands.fit", "fit a click model to a log, as problems", beam=True),
    "audit": Command("commands.audit", "say whether displayed lists were safe", beam=True),
    "compare": Command("commands.compare", "say whether two runs hold the same rows"),
    "inspect": Command("commands.inspect", "show what a run has learned about one query"),
    "schema": Command("commands.schema", "list or print the schemas of all files"),
}

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code: 0 fine, 1 failed, 2 usage, 130 interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader has left: nothing may be flushed into the pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except Exception as error:
        if os.environ.get("BUBBLERANK_DEBUG"):
            raise
        return _complain(*_verdict(error))


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        raise UsageError(f"name a command\n{help_text()}")
    name, *rest = arguments
    if name in ("-h", "--help"):
        sys.stdout.write(help_text())
        return OK
    if name == "--version":
        sys.stdout.write(f"bubblerank {bubblerank.__version__}\n")
        return OK
    if name.startswith("-"):
        known = unknown_name("flag", name, ["--help", "--version"])
        raise UsageError(f"{known}; the flags of a command follow its name")
    if name not in COMMANDS:
        raise UsageError(unknown_name("command", name, COMMANDS))
    if COMMANDS[name].beam:
        _keep_beam_quiet()
    module = importlib.import_module(COMMANDS[name].module)
    parser = CommandParser(
        prog=f"bubblerank {name}", description=_sentence(COMMANDS[name]), epilog=module.EXAMPLES
    )
    module.add_arguments(parser)
    try:
        args = parser.parse_command(rest, beam=COMMANDS[name].beam)
    except SystemExit:  # argparse has printed the help
        return OK
    return int(module.run(args))


def _keep_beam_quiet() -> None:
    """Beam warns through the root logger, already when it is imported: only errors are shown."""
    import logging

    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")


def help_text() -> str:
    """What `bubblerank --help` prints."""
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {entry.summary}" for name, entry in COMMANDS.items())
    return (
        "usage: bubblerank COMMAND [options] [-- Beam flags]\n\n"
        "Safe online re-ranking from clicks.\n\n"
        f"commands:\n{commands}\n\n"
        "options:\n"
        "  -h, --help  show this help\n"
        "  --version   show the version\n\n"
        "`bubblerank COMMAND --help` has the options of a command, with examples.\n"
        "Exit codes: 0 fine, 1 failed or different, 2 usage, 3 violations found,\n"
        "  4 too many rejects, 130 interrupted.\n"
        "BUBBLERANK_DEBUG=1 shows the stack trace of an error.\n"
    )


def _sentence(command: Command) -> str:
    text = f"{command.summary[0].upper()}{command.summary[1:]}."
    return f"{text} Flags after -- go to Beam." if command.beam else text


def _verdict(error: Exception) -> tuple[str, int]:
    if isinstance(error, UsageError):
        return str(error), USAGE
    if isinstance(error, RunFailed):
        return str(error), FAILED
    return f"{type(error).__name__}: {error} (BUBBLERANK_DEBUG=1 shows where)", FAILED


def _complain(message: str, code: int) -> int:
    sys.stderr.write(f"bubblerank: {message}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
