"""Gradient statistics and what follows from them: noise scale, gain, learning-rate factors.

The estimates are those of core/goodput of Quartet: McCandlish et al. (2018), as Pollux (OSDI'21) uses them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

LEAST_VARIANCE = 1e-6  # keeps a report from showing gradients without any noise


@dataclass(frozen=True)
class Gradients:
    """Squared norm of the expected gradient, and the trace of the gradient's covariance at the initial batch."""

    square: float = 0.0
    variance: float = 0.0

    def gain(self, scale: float) -> float:
        """Iterations at the initial batch that one iteration at scale times that batch is worth: from 1 to scale, if scale is above 1."""
        below = self.variance / scale + self.square
        return (self.variance + self.square) / below if below > 0 else 1.0


@dataclass(frozen=True)
class Scatter:
    """How far the gradients of a step's parts lie apart. Norms are squared, and of mean gradients of a part.

    parts: how many there are; local: mean of their norms, weighted by samples; total: norm of the mean; scale: the batch of all
    parts over the initial one.
    """

    parts: int
    local: float
    total: float
    scale: float

    def estimate(self) -> Optional[Gradients]:
        """What one step shows: unbiased, and as noisy as the step, so that either may be negative. None for fewer than two parts, and for
        norms that are not finite."""
        if self.parts < 2:
            return None
        n = self.parts
        square, variance = (n * self.total - self.local) / (n - 1), (self.local - self.total) * self.scale / (n - 1)
        if not (math.isfinite(square * square) and math.isfinite(variance * variance)):
            return None
        return Gradients(square, variance)


# What averages, from short to long, keep of themselves over a step at the initial batch.
_MEMORIES = (0.8, 0.9, 0.95, 0.97, 0.985, 0.993, 0.997, 0.999)
_LEAST_STEPS = 6  # that an average must stand for to say how uncertain it is
_ERROR_BARS = 1.5  # standard errors at which averages contradict each other


class _Averages:
    """Exponential moving averages of one quantity with bias correction, one for each memory: sum, sum of squares, weight, sum of squared
    weights."""

    def __init__(self, kept: Optional[Sequence[Sequence[float]]] = None) -> None:
        self.kept = [list(map(float, a)) for a in kept] if kept else [[0.0] * 4 for _ in _MEMORIES]
        if [len(a) for a in self.kept] != [4] * len(_MEMORIES):
            raise ValueError("averages are not of this version")

    def add(self, x: float, scale: float) -> None:
        for memory, a in zip(_MEMORIES, self.kept):
            keep = memory**scale
            forget = 1 - keep
            a[0] = keep * a[0] + forget * x
            a[1] = keep * a[1] + forget * x * x
            a[2] = keep * a[2] + forget
            a[3] = keep * keep * a[3] + forget * forget

    def value(self) -> Optional[float]:
        """The longest average that agrees with all shorter ones; None before the first value."""
        if not self.kept[-1][2] > 0:
            return None
        value = self.kept[-1][0] / self.kept[-1][2]
        low, high = -math.inf, math.inf
        for total, squares, weight, weights in self.kept:
            mean, steps = total / weight, weight * weight / weights
            if not steps >= _LEAST_STEPS:
                continue
            margin = _ERROR_BARS * math.sqrt(max(squares / weight - mean * mean, 0.0) / steps)
            if mean - margin > high or mean + margin < low:
                break
            value, low, high = mean, max(low, mean - margin), min(high, mean + margin)
        return value


class Tracker:
    """Follows the statistics of one parameter group from step to step.

    Of averages from short to long, the longest counts that the shorter ones do not contradict (Goldenshluger and Nemirovski, 1997), so
    that a training that learns quickly is followed. The longest is that of AdaptDL, which keeps 0.999 of itself at the initial batch.
    """

    def __init__(self) -> None:
        self._square, self._variance, self._successive = _Averages(), _Averages(), False
        self._known: Optional[Gradients] = None  # since the last step with statistics

    def take(self, scatter: Scatter, successive: bool = False) -> None:
        """Takes a step in. Estimates from successive gradients are biased, and forgotten once there are others. What is not finite is
        skipped."""
        told = scatter.estimate()
        if told is None:
            return
        if self._successive and not successive:
            self._square, self._variance = _Averages(), _Averages()
        self._successive, self._known = successive, None
        self._square.add(told.square, scatter.scale)
        self._variance.add(told.variance, scatter.scale)

    @property
    def successive(self) -> bool:
        """Whether the estimates are from successive gradients, which others will replace."""
        return self._successive

    def gradients(self) -> Gradients:
        """The statistics so far; zero before the first step with statistics."""
        if self._known is None:
            square, variance = self._square.value(), self._variance.value()
            self._known = Gradients()
            if square is not None and variance is not None:
                self._known = Gradients(max(square, 0.0), max(variance, LEAST_VARIANCE))
        return self._known

    def state_dict(self) -> dict[str, Any]:
        return {"square": self._square.kept, "variance": self._variance.kept, "successive": self._successive}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._square, self._variance = _Averages(state["square"]), _Averages(state["variance"])
        self._successive, self._known = bool(state["successive"]), None


# A training changes over a part of its age, so that fewer and fewer steps show how: each of the first ones, and at most every tenth later.
_AGE_STEPS, _MOST_SELDOM = 400, 10


class Pace:
    """In which steps statistics are taken: every so many, or as the training's age has it if nothing is said. All replicas decide alike."""

    def __init__(self, every: Optional[int]) -> None:
        self._every = every
        self.since = 0  # step at which the statistics began anew

    def every(self, step: int) -> int:
        return self._every or min(max((step - self.since) // _AGE_STEPS, 1), _MOST_SELDOM)

    def takes(self, step: int, compares: bool) -> bool:
        """Whether a step is one of them. Where it takes two that follow each other, to compare them, so is the next one."""
        every = self.every(step)
        return step % every < (2 if compares and every > 1 else 1)


def summed(trackers: Sequence[Tracker]) -> Gradients:
    """The statistics of all groups together."""
    each = [t.gradients() for t in trackers]
    if len(each) == 1:
        return each[0]
    return Gradients(sum(g.square for g in each), sum(g.variance for g in each))


Rule = Callable[[float, Gradients], float]

# By which factor a learning rate grows when the batch is scale times the initial one.
RULES: dict[str, Rule] = {
    "adascale": lambda scale, g: g.gain(scale),  # Johnson et al. (ICML'20)
    "adamscale": lambda scale, g: math.sqrt(g.gain(scale)),  # the agent of Pollux, for Adam and its kin
    "square_root": lambda scale, g: math.sqrt(scale),  # Krizhevsky (2014)
    "linear": lambda scale, g: scale,  # Goyal et al. (2017)
    "none": lambda scale, g: 1.0,
}


def rule_of(scaling: Union[str, Rule]) -> Rule:
    """The rule of a name, or the function itself. A ValueError names the valid ones."""
    if callable(scaling):
        return scaling
    if scaling not in RULES:
        raise ValueError(f"scaling: {scaling!r} is not one of {', '.join(RULES)}, nor a function of scale and gradients")
    return RULES[scaling]
