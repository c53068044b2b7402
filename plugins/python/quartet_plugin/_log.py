"""Structured logs, written to stderr as the host reads them."""

from __future__ import annotations

import datetime
import json
import logging
import sys
from typing import Any
from collections.abc import MutableMapping

_LEVELS = ((logging.ERROR, "error"), (logging.WARNING, "warn"), (logging.INFO, "info"))
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

logger = logging.getLogger("quartet_plugin")


class Formatter(logging.Formatter):
    """One JSON object a line; what is passed as extra becomes keys of its own."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "@level": next((name for level, name in _LEVELS if record.levelno >= level), "debug"),
            "@message": record.getMessage(),
            "@timestamp": datetime.datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="microseconds"),
        }
        line.update((k, v) for k, v in vars(record).items() if k not in _STANDARD)
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return json.dumps(line, default=repr)


class ComponentLog(logging.LoggerAdapter):  # type: ignore[type-arg]
    """Names the component in each line."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


def log_to_stderr() -> None:
    """Sends all logging of the process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logger.setLevel(logging.DEBUG)
