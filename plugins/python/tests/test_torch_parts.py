"""The parts of quartet_torch that reports and checkpoints are made of: times of steps, random numbers of new replicas, averages."""

import math
import random

import pytest

torch = pytest.importorskip("torch", reason="quartet_torch needs PyTorch: python3-torch, or QUARTET_TORCH names a Python that has it")

import quartet_torch  # noqa: E402
from quartet_torch import _statistics as statistics  # noqa: E402
from quartet_torch._random import random_state, set_random  # noqa: E402
from quartet_torch._report import Window  # noqa: E402

CPU = torch.device("cpu")


class Clock:
    """A window whose clock is set by hand."""

    def __init__(self):
        self.window, self.at = Window(0, CPU), 100.0
        self.window.now = lambda: self.at

    def step(self, compute, exchange, rest, since=None):
        """One step: seconds of the pass, of the exchange, and of what follows; since is how long before its end the exchange began."""
        self.window.begin()
        self.at += compute
        self.window.computed()
        self.at += exchange
        self.window.synchronised(0.0 if since is None else self.at - since)
        self.at += rest
        self.window.end()


def reported(window):
    class Agent:
        def report(self, **what):
            self.what = what

        def metric(self, *_):
            raise AssertionError("there is no metric")

    agent = Agent()
    window.report(agent, quartet_torch.Gradients(), 1.0)
    return agent.what["pass_seconds"], agent.what["step_seconds"]


@pytest.mark.parametrize(
    "step, seconds",
    [
        (dict(compute=2.0, exchange=3.0, rest=1.0), (3.0, 6.0)),  # a pass is a step without its exchange
        (dict(compute=2.0, exchange=0.0, rest=1.0), (3.0, 3.0)),
        (dict(compute=2.0, exchange=3.0, rest=1.0, since=4.0), (2.0, 6.0)),  # an exchange that began in the pass
        (dict(compute=2.0, exchange=1.0, rest=1.0, since=9.0), (0.0, 4.0)),  # and one from before the step
    ],
)
def test_passes_and_steps(step, seconds):
    clock = Clock()
    clock.step(compute=50.0, exchange=50.0, rest=50.0)  # the first one waits for others: it is left out
    clock.step(**step)
    assert reported(clock.window) == seconds


def test_reports_hold_medians():
    clock = Clock()
    for compute in (9.0, 1.0, 40.0, 2.0, 3.0):
        clock.step(compute=compute, exchange=compute, rest=0.0)
    assert reported(clock.window) == (3.0, 6.0)  # of 1, 40, 2 and 3, the upper one
    assert reported(clock.window) == (3.0, 6.0)  # without a step since, those of the last report
    clock.step(compute=7.0, exchange=0.0, rest=0.0)  # after a report the first step counts
    assert reported(clock.window) == (7.0, 7.0)


def drawn():
    """The next numbers of every stream of this process."""
    numbers = [float(torch.rand(())), random.random()]
    numpy = pytest.importorskip("numpy")
    return numbers + [float(numpy.random.rand())]


def test_new_replicas_draw_other_numbers():
    pytest.importorskip("numpy")
    drawings = []
    for seed, rank in ((5, 2), (5, 3), (5, 4), (6, 2), (5, 2)):
        set_random([], rank, seed)
        drawings.append(drawn())
    assert drawings[4] == drawings[0]  # the same replica of the same training
    for stream in range(3):  # no stream is shared by two replicas that join; another seed shifts them by one rank
        assert len({d[stream] for d in drawings[:3]}) == 3
    assert drawings[3] == drawings[1]


def test_known_replicas_resume_their_numbers():
    pytest.importorskip("numpy")
    states, wanted = [], []
    for rank in range(2):
        set_random([], 10 + rank, 1)
        states.append(random_state(CPU))
        wanted.append(drawn())
    for rank in (1, 0):
        set_random(states, rank, 1)
        assert drawn() == wanted[rank]
    set_random(states, 2, 1)  # one more than there were
    assert drawn() not in wanted


def test_averages_have_the_sums_of_their_weights():
    values, scales = [3.0, -1.0, 4.0, 1.5, 9.0], [1.0, 2.0, 0.5, 8.0, 1.0]
    averages = statistics._Averages()
    for x, scale in zip(values, scales):
        averages.add(x, scale)
    for memory, sums in zip(statistics._MEMORIES, averages.kept):
        weights = []
        for scale in scales:
            weights = [w * memory**scale for w in weights] + [1 - memory**scale]
        assert sums == pytest.approx(
            [
                math.fsum(w * x for w, x in zip(weights, values)), math.fsum(w * x * x for w, x in zip(weights, values)),
                math.fsum(weights), math.fsum(w * w for w in weights),
            ]
        )


def test_averages_follow_a_value_that_changes():
    """A constant is averaged for as long as possible; after a jump the long averages contradict the short ones and are dropped."""
    averages = statistics._Averages()
    assert averages.value() is None
    for k in range(2000):
        averages.add(10 + (-1) ** k, 1.0)
    long = averages.kept[-1]
    assert averages.value() == pytest.approx(long[0] / long[2])
    for k in range(60):
        averages.add(30 + (-1) ** k, 1.0)
    assert abs(averages.value() - 30) < 1
    assert abs(long[0] / long[2] - 30) > 10


def test_averages_of_another_version():
    with pytest.raises(ValueError, match="not of this version"):
        statistics._Averages([[0.0] * 4] * (len(statistics._MEMORIES) - 1))
    with pytest.raises(ValueError, match="not of this version"):
        statistics._Averages([[0.0] * 3] * len(statistics._MEMORIES))
    averages = statistics._Averages()
    averages.add(2.0, 1.0)
    assert statistics._Averages(averages.kept).kept == averages.kept
