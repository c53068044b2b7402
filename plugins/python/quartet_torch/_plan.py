"""Which samples a replica sees when: every sample of an epoch once, whatever the batch and however many replicas.

An epoch is an order of all samples and a position in it: how many are taken, by all replicas together. Nothing else is kept, so that
another number of replicas, or another batch, goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """How the samples of a step are spread: shares of each replica in a pass, and passes. factor of the learning rate; 0 leaves it to the
    scaling rule."""

    shares: tuple[int, ...]
    passes: int = 1
    factor: float = 0.0

    @property
    def batch(self) -> int:
        """Samples of a step."""
        return sum(self.shares) * self.passes

    @property
    def per_device(self) -> int:
        """The mean share of a pass, rounded up."""
        return -(-sum(self.shares) // len(self.shares))


def split(count: int, replicas: int) -> tuple[int, ...]:
    """count, as evenly as can be."""
    return tuple(count * (r + 1) // replicas - count * r // replicas for r in range(replicas))


def tuned(batch: int, replicas: int, per_device: int = 0, accumulation: int = 0, factor: float = 0.0,
          by_replica: Sequence[int] = ()) -> Setting:
    """The setting that a scheduler wants. What it leaves open, or what makes no sense, is as nobody tuned it: the initial batch in one
    pass."""
    if len(by_replica) == replicas and sum(by_replica) > 0 and min(by_replica) >= 0:
        shares = tuple(int(b) for b in by_replica)
    elif per_device > 0:
        shares = (int(per_device),) * replicas
    else:
        return Setting(split(batch, replicas), 1, factor)
    return Setting(shares, 1 + max(int(accumulation), 0), factor)


def _proportional(count: int, shares: Sequence[int]) -> tuple[int, ...]:
    """count in proportion to shares, at least one for each that is above 0: count is no less than those are."""
    whole, given, out = sum(shares), 0, []
    busy = sum(1 for s in shares if s > 0)
    spare, before = count - busy, 0
    for s in shares:
        before += s
        upto = spare * before // whole
        out.append(upto - given + (1 if s > 0 else 0))
        given = upto
    return tuple(out)


def step_at(left: int, setting: Setting) -> Setting:
    """The next step of an epoch of which so many samples are left. All passes of a step are alike. At the end of an epoch steps are
    smaller, and so that each replica with a share has a sample, if as many are left."""
    shares, one = setting.shares, sum(setting.shares)
    busy = sum(1 for s in shares if s > 0)
    if left < busy:
        few = [0] * len(shares)
        for r in [r for r, s in enumerate(shares) if s > 0][:left]:
            few[r] = 1
        return Setting(tuple(few), 1, setting.factor)
    passes = min(left // one, setting.passes)
    if passes == 0:
        return Setting(_proportional(left, shares), 1, setting.factor)
    rest = left - passes * one
    if rest == 0 or rest >= busy:
        return setting if passes == setting.passes else Setting(shares, passes, setting.factor)
    if passes > 1:
        return Setting(shares, passes - 1, setting.factor)
    return Setting(_proportional(left - busy if left >= 2 * busy else left, shares), 1, setting.factor)


def steps(samples: int, position: int, setting: Setting) -> Iterator[tuple[int, Setting]]:
    """The steps that are left of an epoch, each with the position at which it begins."""
    while position < samples:
        step = step_at(samples - position, setting)
        yield position, step
        position += step.batch


def places(position: int, step: Setting, rank: int) -> Iterator[range]:
    """Where in the order of the epoch the samples of a replica are, pass by pass; an empty range when it has none in that step."""
    first = position + sum(step.shares[:rank])
    for p in range(step.passes):
        begin = first + p * sum(step.shares)
        yield range(begin, begin + step.shares[rank])
