"""Trainings of processes: batches that change, checkpoints at other sizes, worlds that change."""

import collections
import os
import random
import socket
import time

import pytest

pytest.importorskip("torch", reason="quartet_torch needs PyTorch: python3-torch, or QUARTET_TORCH names a Python that has it")

from torch_scheduler import Run, Scheduler, until  # noqa: E402


@pytest.fixture
def scheduler():
    s = Scheduler()
    yield s
    s.close()


@pytest.fixture
def slow(tmp_path):
    """A file that slows trainings down until it is removed, so that what they are told comes in time."""
    path = tmp_path / "slow"
    path.touch()
    return path


def seen_once(lines, samples, epoch):
    """Every sample of an epoch was seen once, by whoever, in the last try of each step."""
    seen = collections.Counter(i for line in lines if line["epoch"] == epoch for i in line["seen"])
    assert sorted(seen) == list(range(samples)) and set(seen.values()) == {1}


def agree(lines):
    """After each step all replicas had the same parameters."""
    found = {}
    for line in lines:
        found.setdefault(tuple(line["at"]), set()).add(line["parameters"])
    assert len(found) > 10 and all(len(values) == 1 for values in found.values())


def steps_of(*runs):
    """What the replicas saw, without the steps that a later run took again."""
    kept = []
    for k, run in enumerate(runs):
        later = [line["step"] for r in runs[k + 1:] for line in r.all("seen")]
        ends = min(later, default=1 << 60)
        kept += [line for line in run.all("seen") if line["step"] < ends]
    return kept


def test_alone_and_without_anything():
    run = Run(1, "--epochs", 1, extra={"QUARTET_RENDEZVOUS": "", "QUARTET_JOB": ""})
    assert run.wait() == [0], run.problems()
    seen_once(run.all("seen"), 300, 0)
    done, = run.all("done")
    assert done["samples"] == 300 and 9 < done["progress"] < 10.5


def test_environment_of_torchrun():
    """Started as torchrun does it, with nothing of Quartet's."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    runs = [Run(1, "--epochs", 1, extra={
        "QUARTET_RANK": "", "QUARTET_REPLICAS": "", "QUARTET_RENDEZVOUS": "", "QUARTET_JOB": "", "RANK": str(rank), "WORLD_SIZE": "2",
        "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port),
    }) for rank in range(2)]
    assert [run.wait() for run in runs] == [[0], [0]], runs[0].problems() + runs[1].problems()
    lines = runs[0].all("seen") + runs[1].all("seen")
    seen_once(lines, 300, 0)
    assert {line["replicas"] for line in lines} == {2}


def test_tunings_between_steps(scheduler, slow):
    """With worker processes, which have loaded some of the samples by the batch of before."""
    run = Run(2, "--pause", 0.02, "--slow", slow, "--workers", 2, "--samples", 600, scheduler=scheduler)
    until(lambda: len(run.all("seen")) > 4, "steps")
    scheduler.tell(0, tuning={"batch_per_device": 8, "accumulation_steps": 2, "learning_rate_factor": 1.25})
    until(lambda: any(line["passes"] == 3 for line in run.all("seen")), "accumulation")
    scheduler.tell(0, tuning={"batch_by_replica": [12, 4]})
    until(lambda: any(line["shares"] == [12, 4] for line in run.all("seen")), "an uneven split")
    slow.unlink()
    assert run.wait() == [0, 0], run.problems()
    lines = run.all("seen")
    seen_once(lines, 600, 0)
    seen_once(lines, 600, 1)
    agree(lines)
    assert any(line["factor"] == 1.25 and line["shares"] == [8, 8] for line in lines)
    assert any(line["shares"] == [12, 4] and line["passes"] == 1 and line["factor"] == 0 for line in lines)
    reports = scheduler.heard("report")
    assert {r["batch_per_device"] for r in reports} >= {8} and all(r["replicas"] == 2 for r in reports)
    assert any(m["name"] == "loss" for metrics in scheduler.heard("metrics") for m in metrics)
    last = reports[-1]
    assert last["gradient_variance"] > 0 and last["step_seconds"] >= last["pass_seconds"] > 0
    assert scheduler.heard("done") == [{}]
    assert {rank for rank, _, _ in scheduler.said} == {0}


def test_resizes_through_checkpoints(scheduler, slow, tmp_path):
    """1, 2, 4 and 1 replicas: each stops with code 75 and a checkpoint, and the next goes on in the middle of the epoch."""
    runs, losses = [], []
    for replicas in (1, 2, 4, 1):
        last = len(runs) == 3
        if last:
            slow.unlink()
        run = Run(replicas, "--samples", 900, "--epochs", 2, "--slow", slow, scheduler=scheduler, checkpoint=str(tmp_path))
        runs.append(run)
        if not last:
            until(lambda run=run: len({line["step"] for line in run.all("seen")}) > 6, "six steps")
            scheduler.tell(0, stop={"grace_seconds": 10})
        assert run.wait() == ([0] if last else [75] * replicas), run.problems()
        losses.append(sum(line["loss"] for line in run.all("seen")) / len(run.all("seen")))
    lines = steps_of(*runs)
    seen_once(lines, 900, 0)
    seen_once(lines, 900, 1)
    assert losses == sorted(losses, reverse=True)
    assert len(scheduler.heard("checkpointed")) == 4
    starts = [min(line["step"] for line in run.all("seen")) for run in runs]
    assert starts[0] == 0 and all(b > a + 5 for a, b in zip(starts, starts[1:]))


def test_same_run_again_is_equal(tmp_path):
    """One replica that was killed and went on ends where one that was not killed does, to the last bit, random numbers included."""
    arguments = ("--samples", 200, "--scaling", "square_root", "--dropout", 0.2)
    whole = Run(1, *arguments)
    assert whole.wait() == [0], whole.problems()
    first = Run(1, *arguments, "--kill-at", 7, "--checkpoint-seconds", 0, checkpoint=str(tmp_path))
    assert first.wait() == [-9]
    second = Run(1, *arguments, checkpoint=str(tmp_path))
    assert second.wait() == [0], second.problems()
    assert second.all("done")[0]["loss"] == whole.all("done")[0]["loss"]
    assert second.all("done")[0]["samples"] == whole.all("done")[0]["samples"] == 400
    assert min(line["step"] for line in second.all("seen")) == 7


KILLS = int(os.environ.get("QUARTET_TORCH_KILLS", 2))


def test_kills_at_random_moments(scheduler, tmp_path):
    """kill -9 of a replica at any moment loses at most what was done since the last checkpoint; QUARTET_TORCH_KILLS=50 does it at length."""
    rng = random.Random(7)
    arguments = ("--samples", 1600, "--epochs", 3, "--checkpoint-seconds", 0.05)
    runs = []
    for kill in range(KILLS + 1):
        said = [c["progress"] for c in scheduler.heard("checkpointed")]
        last = kill == KILLS
        run = Run(2, *arguments, "--pause", 0.0 if last else 0.01, scheduler=scheduler, checkpoint=str(tmp_path))
        runs.append(run)
        if last:
            assert run.wait() == [0, 0], run.problems()
        else:
            wait = rng.uniform(0, 1)
            if rng.random() < 0.8:  # else it may be killed before it begins
                until(lambda run=run: run.all("seen") or run.all("done"), "a step")
            time.sleep(wait)
            run.processes[rng.randrange(2)].kill()
            codes = run.wait(5)  # the other one fails on its own, or is killed as a scheduler would
            assert -9 in codes or codes == [0, 0], run.problems()
        began = run.all("epoch_began")
        if began and said:
            assert began[0]["progress"] >= said[-1]
    runs = [r for r in runs if r.all("seen")]
    lines = steps_of(*runs)
    for epoch in range(3):
        seen_once(lines, 1600, epoch)


def world(generation, rank, replicas):
    return {"generation": generation, "rank": rank, "replicas": replicas, "nodes": 1, "address": "localhost"}


def test_in_place(scheduler, slow):
    """Replicas join and leave while the others keep their process, model and place in the epoch."""
    arguments = ("--worlds", "--samples", 1200, "--epochs", 2, "--slow", slow)
    first = Run(1, *arguments, scheduler=scheduler)
    until(lambda: first.all("seen"), "a step")
    joins = Run(1, *arguments, scheduler=scheduler, first=1, of=2, rendezvous=first.rendezvous)
    until(lambda: 1 in scheduler.connections, "the one that joins")
    scheduler.tell(1, world=world(1, 1, 2))
    scheduler.tell(0, world=world(1, 0, 2))
    until(lambda: any(line["replicas"] == 2 for line in joins.all("seen")), "the one that joined to take a step")
    until(lambda: len(joins.all("seen")) > 5, "steps of both")
    assert joins.all("seen")[0]["step"] > 0
    # The first one leaves: the one that joined goes on alone.
    scheduler.tell(1, world=world(2, 0, 1))
    scheduler.tell(0, stop={"grace_seconds": 10})
    until(lambda: any(line["replicas"] == 1 for line in joins.all("seen")), "the one that joined to go on alone")
    slow.unlink()
    codes = joins.wait(), first.wait()
    assert codes == ([0], [75]), first.problems() + joins.problems()
    lines = first.all("seen") + joins.all("seen")
    seen_once(lines, 1200, 0)
    seen_once(lines, 1200, 1)
    agree(lines)
    assert len({line["pid"] for line in first.all("pid") + joins.all("pid")}) == 2
    assert all(h.get("worlds") for h in scheduler.heard("hello"))
    assert joins.all("done")[0]["samples"] == 2400
