"""Noise scale, gains and rules against what all samples tell and against the formulas, on gradients that were recorded."""

import itertools
import math
import os
import random

import pytest

torch = pytest.importorskip("torch", reason="quartet_torch needs PyTorch: python3-torch, or QUARTET_TORCH names a Python that has it")

import torch.multiprocessing  # noqa: E402, F811
import torch.nn.functional as F  # noqa: E402

import quartet_torch  # noqa: E402
from quartet_agent import Tuning  # noqa: E402
from quartet_torch import _statistics as statistics  # noqa: E402
from quartet_torch._gradients import Observer  # noqa: E402
from quartet_torch._plan import Setting  # noqa: E402

torch.set_num_threads(1)


def dataset(samples=1500, seed=5):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(samples, 8, generator=generator)
    y = (x @ torch.randn(8, 4, generator=generator) + 2 * torch.randn(samples, 4, generator=generator)).argmax(1)
    return torch.utils.data.TensorDataset(x, y)


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.Tanh(), torch.nn.Linear(12, 4))


def of_all(model, data):
    """The squared norm of the mean gradient over all samples, and the trace of a sample's covariance."""
    total, squares = None, 0.0
    for x, y in data:
        model.zero_grad()
        F.cross_entropy(model(x[None]), y[None]).backward()
        g = torch.cat([p.grad.flatten() for p in model.parameters()]).double()
        total = g if total is None else total + g
        squares += float(g @ g)
    n = len(data)
    square = float((total / n) @ (total / n))
    return square, (squares / n - square) * n / (n - 1)


BATCH = 32
AGE_STEPS = 50  # over which a training ages, for it is as short


def still(rank, replicas, folder, passes, groups, loss_scale, every, room, into):
    """A training that stands still, and what it makes of its gradients."""
    quartet_torch._job._HEARING = 1e9  # nobody is to be heard soon
    statistics._AGE_STEPS = AGE_STEPS  # as if it trained for much longer
    torch.set_num_threads(1)
    os.environ.update({"QUARTET_RANK": str(rank), "QUARTET_REPLICAS": str(replicas), "QUARTET_RENDEZVOUS": folder, "QUARTET_JOB": "x"})
    job = quartet_torch.init(observe_every=every)
    exchanges, known = [], job._known
    job._known = lambda: (exchanges.append(job.step), known())[1]
    if not room:  # as where gradients are of another type than the numbers that go with them
        job._observer.computed = lambda room: job._computed(False)
    model = job.model(network())
    parameters = list(model.parameters())
    of = [{"params": parameters[:2]}, {"params": parameters[2:]}] if groups == 2 else parameters
    optimizer = job.optimizer(torch.optim.SGD(of, lr=1e-12), scaler=Scale(loss_scale) if loss_scale != 1 else None)
    loader = job.loader(dataset(), BATCH)
    if passes > 1:
        job._orders.tuning = Tuning(BATCH // passes // replicas, passes - 1) if rank == 0 else None
    for _ in job.epochs(20 if every == 1 else 40):
        for x, y in loader:
            optimizer.zero_grad()
            (F.cross_entropy(model(x), y) * loss_scale).backward()
            optimizer.step()
    if rank == 0:
        torch.save((job.gradients.square, job.gradients.variance, job.step, exchanges), into)


class Scale:
    def __init__(self, scale):
        self.scale = scale

    def get_scale(self):
        return self.scale


@pytest.mark.parametrize("replicas, passes, groups, loss_scale, every, room", [
    (1, 1, 1, 1, 1, True), (2, 1, 1, 1, 1, True), (4, 1, 2, 1, 1, True), (1, 2, 1, 1024, 1, True), (2, 2, 2, 512, 1, True),
    (1, 1, 1, 1, 3, True), (2, 1, 1, 1, 3, True), (2, 1, 2, 1, 1, False),
    (1, 1, 1, 1, None, True), (2, 1, 1, 1, None, True), (4, 1, 1, 1, None, True), (1, 2, 1, 1, None, True),
])
def test_noise_scale(tmp_path, replicas, passes, groups, loss_scale, every, room):
    into = str(tmp_path / "out")
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    torch.multiprocessing.spawn(still, (replicas, str(meeting), passes, groups, loss_scale, every, room, into), replicas)
    square, variance, steps, exchanges = torch.load(into)
    want_square, want_variance = of_all(network(), dataset())
    noise, want = BATCH * variance / square, want_variance / want_square
    print(f"R={replicas} passes={passes} groups={groups} every={every}: noise scale {noise:.2f}, of all samples {want:.2f} ({100 * (noise / want - 1):+.1f} %)")
    assert abs(noise / want - 1) < 0.15
    if replicas > 1:  # at first, when a tuning may have come, and then for the statistics only
        assert exchanges == [0, *(k for k in range(steps) if k % (every or min(max(k // AGE_STEPS, 1), 10)) == 0)]


@pytest.mark.parametrize("every, since, compares, want", [
    (None, 0, False, {0: 1, 1: 1, 799: 1, 800: 1, 801: 0, 1199: 0, 1200: 1, 1201: 0, 1203: 1, 3998: 0, 4000: 1, 4001: 0, 4005: 0, 4010: 1, 10**9: 1, 10**9 + 1: 0}),
    (None, 0, True, {799: 1, 800: 1, 801: 1, 1200: 1, 1201: 1, 1202: 0, 4000: 1, 4001: 1, 4002: 0}),
    (None, 5000, False, {5000: 1, 5001: 1, 5799: 1, 5801: 0, 9001: 0}),
    (1, 0, True, {0: 1, 799: 1, 4001: 1, 10**9 + 1: 1}),
    (5, 0, False, {0: 1, 1: 0, 4: 0, 5: 1, 4001: 0, 4005: 1, 4010: 1}),
    (5, 0, True, {0: 1, 1: 1, 2: 0, 5: 1, 6: 1, 7: 0}),
    (20, 3, False, {0: 1, 3: 0, 4010: 0, 4020: 1}),
])
def test_pace(every, since, compares, want):
    """In which steps statistics are taken: as the age has it, or as somebody said, from the first step to the last."""
    pace = statistics.Pace(every)
    pace.since = since
    assert {step: pace.takes(step, compares) for step in want} == {step: bool(taken) for step, taken in want.items()}


def test_statistics_that_begin_anew(monkeypatch):
    """When estimates without bias take the place of successive ones, each step tells something again. Going back changes nothing; checkpoints keep it."""
    monkeypatch.setattr(statistics, "_AGE_STEPS", 5)
    for name in ("RANK", "WORLD_SIZE", "QUARTET_RANK", "QUARTET_REPLICAS", "QUARTET_RENDEZVOUS"):
        monkeypatch.delenv(name, raising=False)
    job = quartet_torch.init()
    model = job.model(network())
    optimizer = job.optimizer(torch.optim.SGD(model.parameters(), lr=1e-3))
    loader = job.loader(dataset(3200), 16)
    told, taken = {60: Tuning(8, 1), 140: Tuning(16, 0)}, []
    for _ in job.epochs(1):
        for x, y in loader:
            if job.last_pass and job._observer.observes:
                taken.append(job.step)
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            job._orders.tuning = told.pop(job.step, job._orders.tuning) if job.last_pass else job._orders.tuning
            optimizer.step()
    began = 61  # the first step with two passes
    age = [(k - began if k >= began else k, k) for k in range(200)]
    assert taken == [k for a, k in age if k % min(max(a // 5, 1), 10) < (1 if began <= k <= 140 or a < 10 else 2)]
    assert job._pace.since == began
    state = job._snapshot([])
    job._pace.since = 0
    job._restore(state)
    assert job._pace.since == began
    del state["statistics_since"]
    job._restore(state)  # of a version that did not say
    assert job._pace.since == 0
    job.done()


def test_numbers_in_a_bucket():
    """They come to what they are, or nearly so, whatever the type of the gradient."""
    numbers = torch.tensor([1.7, 0.0, 2**40 + 1, 1e-30, 123456789.125], dtype=torch.float64)
    for kind in (torch.float32, torch.float64):
        observer = Observer()
        observer.begin(Setting((1, 3)), 1, False)
        for _ in range(2):  # the second finds the memory of the first
            whole, gradient, parts = observer._carry(0, torch.arange(4.0, dtype=kind), numbers)
            assert gradient.tolist() == whole[:4].tolist() == [0, 0.75, 1.5, 2.25]
            sums = parts.sum(0, dtype=torch.float64)
            assert sums.tolist() == pytest.approx(numbers.tolist(), rel=2.0**-47, abs=0)


def recorded(steps=40, parts=4, length=50, seed=2):
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(length, generator=generator, dtype=torch.float64)
    for _ in range(steps):
        yield mean + 3 * torch.randn(parts, length, generator=generator, dtype=torch.float64)


def test_gain_of_recorded_gradients():
    """The gain and the rules are the formulas, of averages computed anew from the gradients themselves."""
    for scale in (0.5, 1.0, 4.0, 64.0):
        tracker, estimates = statistics.Tracker(), []
        for gradients in recorded():
            local, total = float((gradients**2).sum(1).mean()), float((gradients.mean(0)**2).sum())
            tracker.take(statistics.Scatter(len(gradients), local, total, scale))
            n = len(gradients)
            estimates.append(((n * total - local) / (n - 1), (local - total) * scale / (n - 1)))
        got = tracker.gradients()
        square, variance = (longest_that_agrees([e[k] for e in estimates], scale) for k in (0, 1))
        want = (max(variance, 1e-6) + max(square, 0)) / (max(variance, 1e-6) / scale + max(square, 0))
        assert got.gain(scale) == pytest.approx(want, rel=1e-6)
        assert statistics.RULES["adascale"](scale, got) == pytest.approx(want, rel=1e-6)
        assert statistics.RULES["adamscale"](scale, got) == pytest.approx(math.sqrt(want), rel=1e-6)
        assert statistics.RULES["square_root"](scale, got) == pytest.approx(math.sqrt(scale), rel=1e-6)
        assert statistics.RULES["linear"](scale, got) == scale


def longest_that_agrees(values, scale):
    """The averages written down as sums over all steps, not from step to step."""
    low, high, chosen = -math.inf, math.inf, None
    for memory in (0.8, 0.9, 0.95, 0.97, 0.985, 0.993, 0.997, 0.999):
        keep = memory**scale
        weights = [(1 - keep) * keep ** (len(values) - 1 - k) for k in range(len(values))]
        mean = sum(w * x for w, x in zip(weights, values)) / sum(weights)
        stands = sum(weights) ** 2 / sum(w * w for w in weights)
        if stands < 6:
            continue
        margin = 1.5 * math.sqrt(max(sum(w * x * x for w, x in zip(weights, values)) / sum(weights) - mean**2, 0) / stands)
        if mean - margin > high or mean + margin < low:
            break
        chosen, low, high = mean, max(low, mean - margin), min(high, mean + margin)
    if chosen is None:
        keep = 0.999**scale
        weights = [(1 - keep) * keep ** (len(values) - 1 - k) for k in range(len(values))]
        chosen = sum(w * x for w, x in zip(weights, values)) / sum(weights)
    return chosen


@pytest.mark.parametrize("scaling, want", [
    ("adascale", None), ("square_root", math.sqrt), ("linear", float), ("none", lambda s: 1.0), (lambda s, g: s + 1, lambda s: s + 1),
])
def test_rates_follow_the_batch(tmp_path, monkeypatch, scaling, want):
    """The rate that a step really takes: the user's, times the factor of its rule, of its group; the scheduler's comes first."""
    for name in ("RANK", "WORLD_SIZE", "QUARTET_RANK", "QUARTET_REPLICAS", "QUARTET_RENDEZVOUS"):
        monkeypatch.delenv(name, raising=False)
    job = quartet_torch.init()
    rates = []

    class Plain(torch.optim.SGD):
        def step(self, closure=None):
            rates.append([group["lr"] for group in self.param_groups])
            return super().step()

    model = job.model(network())
    parameters = list(model.parameters())
    optimizer = job.optimizer(Plain([{"params": parameters[:2], "lr": 0.1}, {"params": parameters[2:], "lr": 0.2}], lr=0.1), scaling=scaling)
    loader = job.loader(dataset(640), 8)
    wanted, told = [], iter([(32, 0.0), (16, 3.0)])
    for _ in job.epochs(3):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            scale, before = len(x) / 8, job.progress
            optimizer.step()
            factors = [job.setting.factor or (want(scale) if want else t.gradients().gain(scale)) for t in job._trackers]
            wanted.append([rate * f for rate, f in zip((0.1, 0.2), factors)])
            assert job.progress - before == pytest.approx(job.gradients.gain(scale), rel=1e-6)
            assert [g["lr"] for g in optimizer.param_groups] == [0.1, 0.2]
        job._orders.tuning = next(itertools.starmap(lambda b, f: Tuning(b, 0, f), told), None)
    for got, expected in zip(rates, wanted):
        assert got == pytest.approx(expected, rel=1e-6)
    assert len(rates) == len(wanted) and len({tuple(r) for r in rates}) >= 2


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e200])
def test_what_is_not_finite_is_skipped(bad):
    tracker = statistics.Tracker()
    tracker.take(statistics.Scatter(2, 3.0, 2.0, 1.0))
    before = tracker.gradients()
    for scatter in (statistics.Scatter(2, bad, 2.0, 1.0), statistics.Scatter(2, 3.0, bad, 1.0), statistics.Scatter(1, 3.0, 2.0, 1.0)):
        tracker.take(scatter)
        assert tracker.gradients() == before


def test_unbiased_estimates_take_the_place_of_successive_ones():
    tracker = statistics.Tracker()
    for _ in range(10):
        tracker.take(statistics.Scatter(2, 9.0, 5.0, 2.0), successive=True)
    tracker.take(statistics.Scatter(2, 3.0, 2.0, 1.0))
    assert tracker.gradients() == statistics.Gradients(1.0, 1.0)
    again = statistics.Tracker()
    again.load_state_dict(tracker.state_dict())
    assert again.gradients() == tracker.gradients()


def test_gain_lies_between_one_and_the_scale():
    rng = random.Random(4)
    for _ in range(500):
        g = statistics.Gradients(rng.choice([0.0, 1e-9, rng.random(), 1e9]), rng.choice([0.0, 1e-6, rng.random(), 1e9]))
        for scale in (1.0, 2.0, 1000.0):
            assert 1 - 1e-9 <= g.gain(scale) <= scale * (1 + 1e-9)
    assert statistics.Gradients().gain(4) == 1


def test_a_rule_that_is_none():
    with pytest.raises(ValueError, match="scaling: 'fast' is not one of adascale, adamscale, square_root, linear, none"):
        statistics.rule_of("fast")
