"""Lists sent as edits of the list before, so that an answer that repeats itself costs nothing.

An edit is a sequence of triples (drop, copy, insert): leave out so many old items, take over so many, then take so many
of the new items that are sent beside it. Old items after the last triple are left out.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from typing import Any, Callable, Generic, TypeVar
from collections.abc import Sequence

T = TypeVar("T")


class Sender(Generic[T]):
    """Sends a list of items, at most one for each key. A new sender has sent the empty list."""

    def __init__(self, key: Callable[[T], Any]) -> None:
        self._key = key
        self._old: list[T] = []

    def tell(self, items: list[T]) -> tuple[list[int], list[T]]:
        """The steps of an edit that turns the list before into items, and the items to insert."""
        old, self._old = self._old, items
        if items == old:
            return ([0, len(old), 0], []) if old else ([], [])
        matches = self._match(old, items)
        _keep_order(matches)
        return _write(items, matches)

    def _match(self, old: list[T], items: list[T]) -> list[int]:
        """For each new item the index of the equal old one, -1 for none."""
        key = self._key
        at = {key(item): i for i, item in enumerate(old)}
        matches = []
        for item in items:
            i = at.get(key(item), -1)
            matches.append(i if i >= 0 and old[i] == item else -1)
        return matches


def _write(items: list[T], matches: list[int]) -> tuple[list[int], list[T]]:
    steps: list[int] = []
    inserted: list[T] = []
    read, i, end = 0, 0, len(items)
    while i < end:
        drop = 0
        if matches[i] >= 0:
            drop = matches[i] - read
            read = matches[i]
        first = i
        while i < end and matches[i] == read:
            i += 1
            read += 1
        kept, first = i - first, i
        while i < end and matches[i] < 0:
            i += 1
        inserted += items[first:i]
        steps += (drop, kept, i - first)
    return steps, inserted


def _keep_order(matches: list[int]) -> None:
    """Leaves of the matches a longest increasing sequence: an edit takes old items over in their order."""
    known = [match for match in matches if match >= 0]
    if all(map(operator.lt, known, known[1:])):
        return
    # ends[k] is the new item that ends the lowest increasing sequence of k+1 matches, lows[k] its match; before links
    # each item to the one that comes before it there.
    ends: list[int] = []
    lows: list[int] = []
    before = [-1] * len(matches)
    for i, match in enumerate(matches):
        if match < 0:
            continue
        k = bisect_left(lows, match)
        if k > 0:
            before[i] = ends[k - 1]
        if k == len(lows):
            ends.append(i)
            lows.append(match)
        else:
            ends[k], lows[k] = i, match
    keep = ends[-1] if ends else -1
    for i in range(len(matches) - 1, -1, -1):
        if i == keep:
            keep = before[i]
        else:
            matches[i] = -1


class Receiver(Generic[T]):
    """The list at the other end. A new receiver holds the empty list."""

    def __init__(self) -> None:
        self._items: list[T] = []

    def apply(self, steps: Sequence[int], inserted: Sequence[T]) -> list[T]:
        """The edited list, which belongs to the receiver. An edit that does not fit is a ValueError, and changes
        nothing."""
        old = self._items
        if not inserted and len(steps) == 3 and steps[0] == 0 and steps[1] == len(old) and steps[2] == 0:
            return old
        items: list[T] = []
        read = taken = 0
        for i in range(0, len(steps), 3):
            drop, kept, fresh = steps[i : i + 3] if i + 3 <= len(steps) else (len(old) + 1, 0, 0)
            read += drop
            if read + kept > len(old) or taken + fresh > len(inserted):
                raise ValueError("an edit does not fit the list that it is for")
            items += old[read : read + kept]
            read += kept
            items += inserted[taken : taken + fresh]
            taken += fresh
        if taken < len(inserted):
            raise ValueError("an edit does not fit the list that it is for")
        self._items = items
        return items
