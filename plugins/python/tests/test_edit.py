import random
from typing import NamedTuple

import pytest

from quartet_plugin._edit import Receiver, Sender


class Item(NamedTuple):
    job: int
    value: int = 0


def new_sender():
    return Sender(lambda item: item.job)


@pytest.mark.parametrize("seed", range(300))
def test_edits_rebuild_every_list(seed):
    draw = random.Random(seed)
    sender, receiver = new_sender(), Receiver()
    for _ in range(6):
        jobs = draw.sample(range(10), draw.randint(0, 10))
        items = [Item(job, draw.randint(0, 1)) for job in jobs]
        if draw.randint(0, 5) == 0:
            sender, receiver = new_sender(), Receiver()
        assert receiver.apply(*sender.tell(items)) == items


LIST = [Item(job) for job in range(1000)]


@pytest.mark.parametrize(
    "items, want_inserted, want_steps",
    [
        pytest.param(LIST, 0, 3, id="nothing"),
        pytest.param(LIST[:500] + [Item(500, 1)] + LIST[501:], 1, 6, id="one value"),
        pytest.param(LIST[:500] + LIST[501:], 0, 6, id="one gone"),
        pytest.param(LIST[1:] + LIST[:1], 1, 6, id="first becomes last"),
        pytest.param(LIST[-1:] + LIST[:-1], 1, 6, id="last becomes first"),
        pytest.param([], 0, 0, id="everything"),
    ],
)
def test_edit_carries_only_what_changed(items, want_inserted, want_steps):
    sender = new_sender()
    sender.tell(list(LIST))
    steps, inserted = sender.tell(list(items))
    assert len(inserted) == want_inserted
    assert len(steps) <= want_steps


@pytest.mark.parametrize(
    "steps, inserted",
    [
        pytest.param([0, 1], [], id="half a step"),
        pytest.param([0, 3, 0], [], id="more than there is"),
        pytest.param([3, 0, 0], [], id="drops more"),
        pytest.param([0, 0, 1], [], id="inserts what is not"),
        pytest.param([0, 1, 0], [Item(5)], id="leaves items over"),
        pytest.param([2**32 - 1] * 3, [], id="huge numbers"),
    ],
)
def test_edits_that_do_not_fit_are_refused(steps, inserted):
    receiver = Receiver()
    before = receiver.apply([0, 0, 2], [Item(1), Item(2)])
    with pytest.raises(ValueError, match="does not fit"):
        receiver.apply(steps, inserted)
    assert receiver.apply([0, 2, 0], []) == before
