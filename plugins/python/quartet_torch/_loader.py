"""A data loader whose batches follow the scheduler, and which never visits a sample twice in an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch.utils.data import DataLoader

from quartet_torch._plan import Setting, places, step_at, steps


class Driver(Protocol):
    """Gets each pass, and says how to continue."""

    setting: Setting

    @property
    def rank(self) -> int: ...
    def begin(self) -> None: ...
    def begin_pass(self, step: Setting, number: int) -> None: ...
    def end_step(self) -> bool: ...
    def abandon(self) -> None: ...


class Batches:
    """The indices of a replica's samples, pass by pass, from a position of an epoch on: a batch sampler for a torch DataLoader."""

    def __init__(self, samples: int, seed: int, shuffle: bool) -> None:
        self.samples, self.seed, self.shuffle = samples, seed, shuffle
        self.epoch, self.position, self.rank, self.setting = 0, 0, 0, Setting((1,))
        self._order: list[int] = []
        self._order_of = -1

    def order(self) -> list[int]:
        """The order of the epoch, which depends on the seed and its number alone."""
        if not self.shuffle:
            self._order = self._order or list(range(self.samples))
        elif self._order_of != self.epoch:
            generator = torch.Generator()
            generator.manual_seed((self.seed * 1_000_003 + self.epoch) % (1 << 63))
            self._order, self._order_of = torch.randperm(self.samples, generator=generator).tolist(), self.epoch
        return self._order

    def __iter__(self) -> Iterator[list[int]]:
        order, rank = self.order(), self.rank
        for position, step in steps(self.samples, self.position, self.setting):
            for place in places(position, step, rank):
                # A replica without a share computes on a sample of another's, with a weight of zero, so that all keep step.
                yield order[place.start:place.stop] or [order[position]]


class Loader:
    """What DataLoader and DistributedSampler are to a plain script. It is made by Job.loader."""

    def __init__(self, driver: Driver, dataset: Any, batch_size: int, seed: int, shuffle: bool, options: dict[str, Any]) -> None:
        self.dataset, self.batch_size = dataset, batch_size
        self.batches = Batches(len(dataset), seed, shuffle)
        self._driver = driver
        self._generator = torch.Generator()
        options.setdefault("persistent_workers", options.get("num_workers", 0) > 0)
        options.setdefault("generator", self._generator)  # or workers would draw from the random numbers of the training
        self._loader: DataLoader[Any] = DataLoader(dataset, batch_sampler=self.batches, **options)

    def __len__(self) -> int:
        """Passes that are left of the epoch, as the batch is now."""
        setting = self._driver.setting
        return sum(step.passes for _, step in steps(self.batches.samples, self.batches.position, setting))

    def __iter__(self) -> Iterator[Any]:
        driver, batches = self._driver, self.batches
        driver.begin()
        while batches.position < batches.samples:
            batches.setting, batches.rank = driver.setting, driver.rank
            self._generator.manual_seed((batches.seed + 7919 * batches.epoch + batches.position) % (1 << 63))
            content = iter(self._loader)
            changed = False
            try:
                while batches.position < batches.samples and not changed:
                    step = step_at(batches.samples - batches.position, driver.setting)
                    for number in range(step.passes):
                        driver.begin_pass(step, number)
                        yield next(content)
                    batches.position += step.batch
                    changed = driver.end_step()
            finally:
                driver.abandon()
