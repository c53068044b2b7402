"""What quartet_torch refuses, and what it uses of torch."""

import ast
import json
import logging
import math
import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="quartet_torch needs PyTorch: python3-torch, or QUARTET_TORCH names a Python that has it")

import quartet_torch  # noqa: E402
from quartet_torch import CheckpointError, _checkpoint  # noqa: E402
from quartet_torch._report import Window  # noqa: E402

PACKAGE = pathlib.Path(quartet_torch.__file__).parent


def private_names(text):
    """Attributes with a leading underscore of anything but self, and of self's own parts of other classes; and private modules of
    torch."""
    ours = {"_join", "_part", "_quiet", "_observer"}  # of ElasticModel and Job, used by each other
    tree = ast.parse(text)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "_checkpoint")) and node.attr not in ours:
                found.append(node.attr)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [a.name for a in node.names] + ([node.module] if getattr(node, "module", None) else [])
            found += [n for n in names if n.split(".")[0] == "torch" and any(part.startswith("_") for part in n.split("."))]
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
                found += [a.name for a in node.names if a.name.startswith("_")]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("_") and node.value.isidentifier():
            found.append(node.value)  # as getattr would take it
    return [n for n in found if not n.startswith("__")]


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda p: p.name)
def test_no_private_names(path):
    assert private_names(path.read_text()) == []


@pytest.mark.parametrize("text, want", [
    ("model._sync_params()", ["_sync_params"]), ("import torch._C", ["torch._C"]), ("from torch import _utils", ["_utils"]),
    ("getattr(model, '_reducer')", ["_reducer"]), ("self._own", []), ("torch.ones(2)", []),
])
def test_private_names_are_found(text, want):
    assert private_names(text) == want


@pytest.fixture
def job(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "QUARTET_RANK", "QUARTET_REPLICAS", "QUARTET_RENDEZVOUS", "QUARTET_AGENT"):
        monkeypatch.delenv(name, raising=False)
    job = quartet_torch.init()
    yield job
    job.done()


def test_variables_of_torchrun(job):
    assert {n: os.environ[n] for n in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")} == {
        "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    assert os.environ["MASTER_ADDR"] and int(os.environ["MASTER_PORT"])
    job.done()
    assert "RANK" not in os.environ and "MASTER_PORT" not in os.environ


def test_what_makes_no_sense(job):
    net = torch.nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="a job begins with its model, its optimizer and its loader"):
        next(job.epochs(1))
    with pytest.raises(ValueError, match="precondition: SGD has no betas"):
        job.optimizer(torch.optim.SGD(net.parameters(), 0.1), precondition=True)
    with pytest.raises(ValueError, match="scaling: 'quick' is not one of"):
        job.optimizer(torch.optim.SGD(net.parameters(), 0.1), scaling="quick")
    with pytest.raises(ValueError, match="batch_size: 0 is not at least 1"):
        job.loader([1, 2], 0)
    with pytest.raises(ValueError, match="dataset: it is empty"):
        job.loader([], 1)
    with pytest.raises(ValueError, match="loader: sampler, drop_last: the loader decides"):
        job.loader([1], 1, sampler=None, drop_last=True)
    with pytest.raises(TypeError, match="keep: best has no state_dict and load_state_dict"):
        job.keep(best=0.5)
    job.model(net)
    with pytest.raises(RuntimeError, match="a job has one model"):
        job.model(net)


def test_arguments_that_make_no_sense():
    with pytest.raises(ValueError, match="observe_every: 0 is below 1"):
        quartet_torch.init(observe_every=0)
    with pytest.raises(ValueError, match="report_seconds: nan is below 0"):
        quartet_torch.init(report_seconds=float("nan"))


def plain_job(monkeypatch, checkpoint, epochs):
    """A training alone whose rate halves each epoch; its job, the rates of its epochs and what it kept."""
    for name in ("RANK", "WORLD_SIZE", "QUARTET_RANK", "QUARTET_REPLICAS", "QUARTET_RENDEZVOUS", "QUARTET_AGENT"):
        monkeypatch.delenv(name, raising=False)
    job = quartet_torch.init(checkpoint=str(checkpoint))
    model = job.model(torch.nn.Linear(2, 1))
    optimizer = job.optimizer(torch.optim.Adam([{"params": [model.module.weight]}, {"params": [model.module.bias]}], 0.8),
                              scaling="adamscale", precondition=True)
    halves = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    job.keep(halves=halves)
    data = [(torch.tensor([float(i), 1.0]), torch.tensor([float(i % 3)])) for i in range(20)]
    loader = job.loader(data, 4)
    rates = []
    for epoch in job.epochs(epochs):
        rates.append(optimizer.param_groups[0]["lr"])
        for x, y in loader:
            assert x.device == job.device
            optimizer.zero_grad()
            ((model(x) - y) ** 2).mean().backward()
            optimizer.step()
        halves.step()
        job.state["epochs"] = job.state.get("epochs", []) + [epoch]
    return job, rates


def test_what_is_kept(monkeypatch, tmp_path):
    """Schedulers of rates and the user's own state go on from the checkpoint; a job that is done stays done."""
    first, rates = plain_job(monkeypatch, tmp_path, 2)
    assert rates == pytest.approx([0.8, 0.4]) and first.step == 10 and first.gradients.variance > 0
    second, rates = plain_job(monkeypatch, tmp_path, 4)
    assert rates == pytest.approx([0.2, 0.1])
    assert second.state == {"epochs": [0, 1, 2, 3]} and second.samples == 80 and second.progress > first.progress
    third, rates = plain_job(monkeypatch, tmp_path, 4)
    assert rates == [] and third.step == 20


def test_checkpoint_of_another_training_ends_the_job(monkeypatch, tmp_path):
    plain_job(monkeypatch, tmp_path, 1)
    path = tmp_path / _checkpoint.FILE
    path.write_bytes(path.read_bytes().replace(b'"samples": 20', b'"samples": 21', 1))
    with pytest.raises(CheckpointError, match="it is of another training: samples is 21, here 20"):
        plain_job(monkeypatch, tmp_path, 2)
    assert not torch.distributed.is_initialized()


IDENTITY = {"samples": 10, "seed": 0, "parameters": {"weight": [2, 3]}}
STATE = {"step": 3, "rate": 0.1, "state": {"best": [1, (2.5, "x")], 7: torch.arange(3)}, "nothing": None}


def test_checkpoint_comes_back(tmp_path):
    assert _checkpoint.load(str(tmp_path), IDENTITY) is None
    _checkpoint.save(str(tmp_path / "new"), IDENTITY, STATE)
    got = _checkpoint.load(str(tmp_path / "new"), IDENTITY)
    assert got["state"].pop(7).tolist() == [0, 1, 2]
    assert got == {**STATE, "state": {"best": [1, (2.5, "x")]}}
    assert os.listdir(tmp_path / "new") == [_checkpoint.FILE]


def damaged(text, kind):
    head, _, rest = text.partition(b"\n")
    if kind == "cut":
        return text[:-5]
    if kind == "flipped":
        return text[:-9] + bytes([text[-9] ^ 1]) + text[-8:]
    if kind == "newer":
        return json.dumps({**json.loads(head), "version": 2}).encode() + b"\n" + rest
    return {"empty": b"", "foreign": b"PK\3\4 something else\n", "list": b"[]\nx", "half": text[:20]}[kind]


@pytest.mark.parametrize("kind, want", [
    ("cut", "it is damaged: [0-9]+ bytes of [0-9]+"), ("flipped", "it is damaged: its checksum is another"),
    ("newer", "it is of version 2, this is version 1"), ("empty", "not a checkpoint of quartet_torch"),
    ("foreign", "not a checkpoint of quartet_torch"), ("list", "not a checkpoint"), ("half", "not a checkpoint"),
])
def test_damaged_checkpoints(tmp_path, kind, want):
    _checkpoint.save(str(tmp_path), IDENTITY, STATE)
    path = tmp_path / _checkpoint.FILE
    path.write_bytes(damaged(path.read_bytes(), kind))
    with pytest.raises(CheckpointError, match=want + ".*; remove it to begin anew"):
        _checkpoint.load(str(tmp_path), IDENTITY)


@pytest.mark.parametrize("change, want", [
    ({"samples": 11}, "samples is 10, here 11"), ({"parameters": {"weight": [2, 4]}}, r"parameters 'weight' is \[2, 3\], here \[2, 4\]"),
    ({"parameters": {"bias": [2]}}, r"parameters 'bias' is absent, here \[2\]; parameters 'weight' is \[2, 3\], here absent"),
])
def test_checkpoints_of_another_training(tmp_path, change, want):
    _checkpoint.save(str(tmp_path), IDENTITY, STATE)
    with pytest.raises(CheckpointError, match="it is of another training: " + want):
        _checkpoint.load(str(tmp_path), {**IDENTITY, **change})


@pytest.mark.parametrize("value, want", [
    ({"x": {1, 2}}, r"state\['x'\]: set is not kept"), ({(1, 2): 3}, r"the key \(1, 2\) is neither a text nor a whole number"),
    ({"a": [0, object()]}, r"state\['a'\]\[1\]: object is not kept"),
])
def test_what_a_checkpoint_does_not_keep(tmp_path, value, want):
    with pytest.raises(CheckpointError, match=want):
        _checkpoint.save(str(tmp_path), IDENTITY, value)
    assert os.listdir(tmp_path) == []


def test_checkpoint_that_cannot_be_written_leaves_the_one_before(tmp_path, monkeypatch):
    _checkpoint.save(str(tmp_path), IDENTITY, STATE)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match="write checkpoint .*No space left"):
        _checkpoint.save(str(tmp_path), IDENTITY, {**STATE, "step": 4})
    monkeypatch.undo()
    assert _checkpoint.load(str(tmp_path), IDENTITY)["step"] == 3
    assert os.listdir(tmp_path) == [_checkpoint.FILE]


def test_metrics(caplog):
    class Agent:
        def __init__(self):
            self.told = {}

        def report(self, **what):
            pass

        def metric(self, name, value, step):
            self.told[name] = value, step

    agent, window = Agent(), Window(0, torch.device("cpu"))
    with caplog.at_level(logging.WARNING, "quartet_torch"):
        for _ in range(2):
            window.metric("", 1.0, 0)
        for k in range(70):
            window.metric(f"m{k}", -float(k), 3)
        window.metric("m1", 8.0, 4)
        window.metric("m3", float("nan"), 4)  # it diverged
    window.report(agent, quartet_torch.Gradients(), 1.0)
    assert len(agent.told) == 64 and agent.told["m1"] == (8.0, 4) and agent.told["m2"] == (-2.0, 3) and math.isnan(agent.told["m3"][0])
    agent.told.clear()
    window.report(agent, quartet_torch.Gradients(), 2.0)
    assert not agent.told  # each is told once
    messages = [r.getMessage() for r in caplog.records]
    assert messages.count("metric '' has a name of 0 characters, not of 1 to 100: left out") == 1 and len(messages) == 7


def test_torchrun():
    """The training of the other tests, started by torchrun with nothing of Quartet's."""
    here = pathlib.Path(__file__).parent
    environment = {k: v for k, v in os.environ.items() if not k.startswith("QUARTET_") and k not in ("RANK", "WORLD_SIZE")}
    environment.update(PYTHONPATH=str(here.parent), OMP_NUM_THREADS="1")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--rdzv_backend", "c10d",
               "--rdzv_endpoint", "localhost:0", str(here / "torch_training.py"), "--epochs", "1"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    if "'NoneType' object has no attribute 'get'" in ended.stderr:
        pytest.skip("the torchrun of this torch is too old for this Python: it ends before it starts anything")
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line[line.index("{"):]) for line in ended.stdout.splitlines() if "{" in line]
    seen = sorted(i for line in lines if "seen" in line for i in line["seen"])
    assert seen == list(range(300)) and {line["replicas"] for line in lines} == {2}
