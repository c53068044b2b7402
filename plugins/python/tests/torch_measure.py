"""Measurements for docs/results/pytorch.md: what a step costs more, and the pause of a resize.

PYTHONPATH=plugins/python python3 plugins/python/tests/torch_measure.py overhead
PYTHONPATH=plugins/python python3 plugins/python/tests/torch_measure.py pause
"""

import os
import statistics
import sys
import tempfile
import time

import torch
import torch.multiprocessing
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from torch_scheduler import Run, Scheduler, until

import quartet_torch

BATCH, WIDTH, BLOCK, BLOCKS = 128, 320, 10, 300


def network():
    return torch.nn.Sequential(torch.nn.Linear(256, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(),
                               torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 10))


def steps(model, optimizer, loader):
    while True:  # epochs
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            yield


def replica(rank, replicas, folder, agent, into, every):
    """Blocks of steps of a plain training and of an elastic one by turns, so that both see the same machine."""
    torch.set_num_threads(1)
    os.environ.update({"QUARTET_RANK": str(rank), "QUARTET_REPLICAS": str(replicas), "QUARTET_RENDEZVOUS": folder, "QUARTET_JOB": "train",
                       "QUARTET_AGENT": agent})
    data = TensorDataset(torch.randn(1 << 16, 256), torch.randint(10, (1 << 16,)))
    # As often as at steps of 20 ms: orders are heard in each 4th or 5th step, and a report is made in each 50th.
    quartet_torch._job._HEARING, quartet_torch._job._MOST_APART = 1e9, 4
    job = quartet_torch.init(observe_every=every, report_seconds=0.3)
    plain = DistributedDataParallel(network())
    plain_steps = steps(plain, torch.optim.SGD(plain.parameters(), 0.01),
                        DataLoader(data, BATCH // replicas, sampler=DistributedSampler(data)))
    model = job.model(network())
    optimizer = job.optimizer(torch.optim.SGD(model.parameters(), 0.01))
    loader = job.loader(data, BATCH)
    elastic_steps = steps(model, optimizer, (batch for _ in job.epochs(1 << 40) for batch in loader))
    times = {"plain": [], "elastic": [], "plain busy": [], "elastic busy": []}
    for k in range(BLOCKS):
        # Which of the two is first changes, too.
        for name, some in (("plain", plain_steps), ("elastic", elastic_steps))[::1 if k % 2 else -1]:
            began, busy = time.perf_counter(), time.process_time()
            for _ in range(BLOCK):
                next(some)
            times[name].append((time.perf_counter() - began) / BLOCK)
            times[name + " busy"].append((time.process_time() - busy) / BLOCK)
    if rank == 0:
        torch.save(times, into)
    job.done()


def overhead():
    """By blocks of the two in turns. What is more does not depend on the samples of a step: with few of them there are more blocks."""
    for replicas in (1, 2):
        for every in (1, 10):  # as in the first steps of a training, and as later
            scheduler = Scheduler()
            with tempfile.TemporaryDirectory() as folder:
                into = os.path.join(folder, "times")
                torch.multiprocessing.spawn(replica, (replicas, folder, scheduler.path, into, every), replicas)
                times = torch.load(into)
            reports = len(scheduler.heard("report"))
            scheduler.close()
            for what, name in ((" busy", "time of processors"), ("", "wall")):
                # What others do can only make a block slower: the quick ones tell what a step takes by itself.
                plain, elastic = (1000 * statistics.quantiles(times[k + what], n=10)[0] for k in ("plain", "elastic"))
                more = statistics.median(1000 * (e - p) for p, e in zip(times["plain" + what], times["elastic" + what]))
                print(f"{replicas} replicas, observe_every={every}, {name}: a tenth of the blocks quicker than {plain:.2f} ms plain, {elastic:.2f} ms "
                      f"elastic, {elastic - plain:+.2f} ms, {5 * (elastic - plain):+.1f} % of 20 ms; {more:+.2f} ms, {5 * more:+.1f} % at the median "
                      f"of pairs; {reports} reports, load {os.getloadavg()[0]:.1f}", flush=True)


def world(generation, rank, replicas):
    return {"generation": generation, "rank": rank, "replicas": replicas, "nodes": 1, "address": "localhost"}


LONG = ("--samples", 100000, "--epochs", 1, "--pause", 0.02)


def joined():
    """Seconds without a step when a replica joins another one in place, which trains on until it is there."""
    scheduler = Scheduler()
    first = Run(1, "--worlds", *LONG, scheduler=scheduler)
    until(lambda: len(first.all("seen")) > 5, "steps")
    second = Run(1, "--worlds", *LONG, scheduler=scheduler, first=1, of=2, rendezvous=first.rendezvous)
    until(lambda: 1 in scheduler.connections, "the second replica")
    scheduler.tell(1, world=world(1, 1, 2))
    scheduler.tell(0, world=world(1, 0, 2))
    until(lambda: sum(line["replicas"] == 2 for line in first.all("seen")) > 3, "steps of both")
    alone = max(line["time"] for line in first.all("seen") if line["replicas"] == 1)
    together = min(line["time"] for line in first.all("seen") if line["replicas"] == 2)
    first.kill()
    second.kill()
    scheduler.close()
    return together - alone


def restarted():
    """Seconds without a step when a replica is stopped, and two go on from its checkpoint."""
    scheduler = Scheduler()
    with tempfile.TemporaryDirectory() as checkpoint:
        run = Run(1, *LONG, scheduler=scheduler, checkpoint=checkpoint)
        until(lambda: len(run.all("seen")) > 5, "steps")
        scheduler.tell(0, stop={"grace_seconds": 10})
        run.wait()
        again = Run(2, *LONG, scheduler=scheduler, checkpoint=checkpoint)
        until(lambda: again.all("seen"), "a step")
        seconds = min(line["time"] for line in again.all("seen")) - max(line["time"] for line in run.all("seen"))
        again.kill()
    scheduler.close()
    return seconds


def pause(times=5):
    """Of a training that goes from one replica to two."""
    for name, measure in (("in place", joined), ("restarted", restarted)):
        found = [measure() for _ in range(times)]
        print(f"{name}: {statistics.median(found):.2f} s at the median of {times} (from {min(found):.2f} to {max(found):.2f})")


if __name__ == "__main__":
    {"overhead": overhead, "pause": pause}[sys.argv[1]]()
