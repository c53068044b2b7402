"""Who sees which sample when: every one once an epoch, whatever happens to batch and replicas."""

import random

import pytest

torch = pytest.importorskip("torch", reason="quartet_torch needs PyTorch: python3-torch, or QUARTET_TORCH names a Python that has it")

from quartet_torch._loader import Batches  # noqa: E402
from quartet_torch._plan import Setting, places, split, step_at, steps, tuned  # noqa: E402


def random_setting(rng):
    replicas = rng.choice([1, 2, 3, 4, 7])
    kind = rng.randrange(3)
    if kind == 0:
        return tuned(rng.randint(1, 40), replicas)
    if kind == 1:
        return tuned(32, replicas, rng.randint(1, 20), rng.randint(0, 3))
    return tuned(32, replicas, 0, rng.randint(0, 2), 0.0, [rng.randint(0, 9) for _ in range(replicas - 1)] + [1])


def test_thousand_sequences_of_resizes():
    rng = random.Random(11)
    for sequence in range(1000):
        samples = rng.choice([1, 2, 5, rng.randint(1, 400)])
        batches = Batches(samples, rng.randrange(5), True)
        for epoch in range(2):
            batches.epoch, batches.position = epoch, 0
            seen = []
            while batches.position < samples:
                batches.setting = random_setting(rng)
                replicas = len(batches.setting.shares)
                taken = rng.choice([1, 1, 2, 5])
                ahead = list(steps(samples, batches.position, batches.setting))[:taken]
                for rank in range(replicas):
                    batches.rank = rank
                    got = iter(batches)
                    for position, step in ahead:
                        for place in places(position, step, rank):
                            indices = next(got)
                            assert len(indices) == max(step.shares[rank], 1) == max(len(place), 1)
                            seen += indices if step.shares[rank] else []
                for position, step in ahead:
                    assert position == batches.position and step.batch > 0
                    assert step.passes == 1 or step.shares == batches.setting.shares  # the passes of a step are alike
                    batches.position += step.batch
            assert batches.position == samples
            assert sorted(seen) == list(range(samples)), (sequence, epoch)


def test_every_replica_with_a_share_has_a_sample():
    """As long as there are as many samples left as replicas with a share, none of them idles."""
    rng = random.Random(12)
    for _ in range(2000):
        setting, left = random_setting(rng), rng.randint(1, 300)
        busy = [r for r, s in enumerate(setting.shares) if s > 0]
        whole = left
        while left > 0:
            step = step_at(left, setting)
            if left >= len(busy):
                assert all(step.shares[r] > 0 for r in busy)
            assert step.batch <= max(setting.batch, 2 * len(busy))
            left -= step.batch
        assert left == 0 or whole < len(busy)


def test_order():
    a, b, c = Batches(50, 1, True), Batches(50, 1, True), Batches(50, 2, True)
    assert a.order() == b.order() != c.order()
    first = a.order()
    a.epoch = 1
    assert a.order() != first and sorted(a.order()) == list(range(50))
    a.epoch = 0
    assert a.order() == first
    assert Batches(4, 9, False).order() == [0, 1, 2, 3]


@pytest.mark.parametrize("arguments, want", [
    ((33, 2), Setting((16, 17))),
    ((32, 3, 8, 1, 2.0), Setting((8, 8, 8), 2, 2.0)),
    ((32, 2, 8, 1, 0.0, [5, 3]), Setting((5, 3), 2)),
    ((32, 2, 8, 0, 0.0, [5, 3, 1]), Setting((8, 8))),
    ((32, 2, 0, 3, 1.5, [0, 0]), Setting((16, 16), 1, 1.5)),
    ((32, 2, 0, 0, 0.0, [-1, 5]), Setting((16, 16))),
    ((1, 3), Setting((0, 0, 1))),
])
def test_tuned(arguments, want):
    assert tuned(*arguments) == want


def test_split():
    for count in range(30):
        for replicas in range(1, 8):
            shares = split(count, replicas)
            assert sum(shares) == count and max(shares) - min(shares) <= 1
