"""A search of hyper-parameters for Quartet: docs/search-with-quartet.md of Quartet, in Python.

    class Descent:
        def start(self, hello):
            self.random = random.Random(hello.seed)

        def ask(self, trial):
            return {d.name: self.random.uniform(d.low, d.high) for d in hello.space}

        def tell(self, result):
            return []

    serve(Descent())

A config names it as {type: external, config: {command: [python3, descent.py]}}. What it prints goes to the log of Quartet.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TextIO, Union

__all__ = ["PROTOCOL", "Dimension", "Hello", "Result", "Search", "Value", "serve"]

PROTOCOL = 1

Value = Union[float, str]


@dataclass(frozen=True)
class Dimension:
    """A hyper-parameter. Scale is uniform, log_uniform, int, log_int, choice or fixed."""

    name: str
    scale: str
    low: float = 0
    high: float = 0
    choices: tuple[Value, ...] = ()  # of choice and, one of them, of fixed

    @classmethod
    def read(cls, item: Mapping[str, Any]) -> Dimension:
        scale = next(key for key in ("uniform", "log_uniform", "int", "log_int", "choice", "fixed") if key in item)
        given = item[scale]
        if scale == "fixed":
            return cls(item["name"], scale, choices=(given,))
        if scale == "choice":
            return cls(item["name"], scale, choices=tuple(given))
        return cls(item["name"], scale, given[0], given[1])


@dataclass(frozen=True)
class Result:
    """What became of a trial: report, or finished, stopped or failed at its end."""

    trial: int
    kind: str
    at_seconds: float
    step: float | None
    value: float | None  # None where the trial reported nothing, or no finite number

    @property
    def ended(self) -> bool:
        return self.kind != "report"


@dataclass(frozen=True)
class Hello:
    """What the search is for. Trials and results are those of a life before: the search goes on from there."""

    goal: str  # minimize or maximize
    seed: int
    space: list[Dimension]
    trials: list[dict[str, Value]] = field(default_factory=list)  # by their numbers
    results: list[Result] = field(default_factory=list)


class Search(Protocol):
    """What serve needs. A search that has no more trials for good sets done to True."""

    def start(self, hello: Hello) -> None:
        """Is called first, once."""

    def ask(self, trial: int) -> Mapping[str, Value] | None:
        """Returns the parameters of the trial of that number, or None where it has none before more results come."""

    def tell(self, result: Result) -> Iterable[int]:
        """Takes a result, and returns the numbers of trials that are to be stopped."""


def serve(search: Search, lines: Iterable[str] = sys.stdin, out: TextIO | None = None) -> None:
    """Answers Quartet until it ends its lines. What the search prints goes to standard error."""
    if out is None:
        out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    asked = 0
    for line in lines:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        if "hello" in request:
            hello = _hello(request["hello"])
            asked = len(hello.trials)
            search.start(hello)
            answer["protocol"] = PROTOCOL
        stop: set[int] = set()
        for result in request.get("tell", ()):
            stop.update(search.tell(Result(**result)))
        if stop:
            answer["stop"] = sorted(stop)
        trials = []
        for _ in range(request.get("ask", 0)):
            params = search.ask(asked)
            if params is None:
                break
            trials.append({"id": asked, "params": {name: _plain(value) for name, value in params.items()}})
            asked += 1
        if trials:
            answer["trials"] = trials
        if getattr(search, "done", False) and "hello" not in request:
            answer["done"] = True
        out.write(json.dumps(answer, allow_nan=False) + "\n")
        out.flush()


def _hello(said: Mapping[str, Any]) -> Hello:
    if said["protocol"] != PROTOCOL:
        raise ValueError(f"Quartet speaks protocol {said['protocol']}, not {PROTOCOL}")
    past = said.get("resume", {"trials": [], "tell": []})
    return Hello(
        goal=said["goal"],
        seed=said["seed"],
        space=[Dimension.read(item) for item in said["space"]],
        trials=[trial["params"] for trial in past["trials"]],
        results=[Result(**result) for result in past["tell"]],
    )


def _plain(value: Any) -> Value:
    """The value as JSON has it, from NumPy and the like too."""
    if isinstance(value, (bool, str)):
        return value if isinstance(value, str) else str(value).lower()
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is no finite number")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
