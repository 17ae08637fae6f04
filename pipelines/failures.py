"""What went wrong in a pipeline, in a line, out of the text that Beam makes of it."""

import logging
import re

from bubblerank.errors import RunFailed, UsageError

_WHILE_RUNNING = re.compile(r"\s*\[while running .*?\]", re.DOTALL)
_TYPE = re.compile(r"^([A-Za-z_][\w.]*)(?:: (.*))?$", re.DOTALL)
_OURS: dict[str, type[Exception]] = {"RunFailed": RunFailed, "UsageError": UsageError}

_LOGGER = logging.getLogger(__name__)


def as_run_failure(error: Exception) -> Exception:
    """A RunFailed (a UsageError, where the step raised one) with the root cause's message.

    Engines that run steps through an API hand back a traceback as text: the root cause is what
    follows its last stack frame.
    """
    _LOGGER.debug("the pipeline failed", exc_info=error)
    kind, message = _root_cause(error)
    if kind in _OURS:
        return _OURS[kind](message)
    return RunFailed(f"the pipeline failed: {kind}: {message}" if message else kind)


def _root_cause(error: Exception) -> tuple[str, str]:
    text = _WHILE_RUNNING.sub("", str(error)).strip()
    if "Traceback (most recent call last)" not in text:
        return type(error).__name__, text
    lines = text.splitlines()
    frames = [i for i, line in enumerate(lines) if line.startswith("  ")]
    last = "\n".join(lines[frames[-1] + 1 :] if frames else lines[-1:]).strip()
    match = _TYPE.match(last)
    if not match:
        return type(error).__name__, last
    return match[1].rsplit(".", 1)[-1], (match[2] or "").strip()
