"""A training for the tests of quartet_torch, told by its arguments what to be."""

import argparse
import json
import os
import signal
import sys
import time

import torch
import torch.nn.functional as F
from torch.utils.data import Dataset

import quartet_torch

torch.set_num_threads(1)


class Samples(Dataset):
    """Points around the centres of three classes; each sample carries its number."""

    def __init__(self, count):
        generator = torch.Generator().manual_seed(3)
        self.x = torch.randn(count, 10, generator=generator)
        weights = torch.randn(10, 3, generator=generator)
        self.y = (self.x @ weights + torch.randn(count, 3, generator=generator)).argmax(1)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i], i


def network(dropout):
    return torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Dropout(dropout), torch.nn.Linear(16, 3))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--samples", type=int, default=300)
    arguments.add_argument("--batch", type=int, default=32)
    arguments.add_argument("--epochs", type=int, default=2)
    arguments.add_argument("--rate", type=float, default=0.05)
    arguments.add_argument("--workers", type=int, default=0)
    arguments.add_argument("--pause", type=float, default=0.0, help="seconds that a pass takes longer")
    arguments.add_argument("--dropout", type=float, default=0.0)
    arguments.add_argument("--slow", default="", help="a file: as long as it is there, a pass takes --slow-seconds longer")
    arguments.add_argument("--slow-seconds", type=float, default=0.2)
    arguments.add_argument("--worlds", action="store_true")
    arguments.add_argument("--scaling", default="adascale")
    arguments.add_argument("--checkpoint-seconds", type=float, default=60)
    arguments.add_argument("--kill-at", type=int, default=0, help="the step at which replica --kill-rank kills itself")
    arguments.add_argument("--kill-rank", type=int, default=0)
    o = arguments.parse_args()

    job = quartet_torch.init(worlds=o.worlds, checkpoint_seconds=o.checkpoint_seconds, report_seconds=0.05, join_seconds=60)
    torch.manual_seed(0)
    dataset = Samples(o.samples)
    model = job.model(network(o.dropout))
    optimizer = job.optimizer(torch.optim.SGD(model.parameters(), o.rate), scaling=o.scaling)
    loader = job.loader(dataset, o.batch, num_workers=o.workers)

    def say(**what):
        sys.stdout.write(json.dumps({"rank": job.rank, "replicas": job.replicas, "step": job.step, **what}) + "\n")
        sys.stdout.flush()

    say(began=True, pid=os.getpid(), time=time.time())
    for epoch in job.epochs(o.epochs):
        say(epoch_began=epoch, progress=job.progress, at=job.samples)
        for x, y, i in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            weight = job.setting.factor
            optimizer.step()
            say(epoch=epoch, seen=i.tolist(), loss=loss.item(), factor=weight, time=time.time(), passes=job._pass[0].passes,
                shares=list(job._pass[0].shares), at=[job.step, job._pass[1]],
                parameters=sum(p.double().sum().item() for p in model.parameters()))
            job.metric("loss", loss.item())
            if o.pause:
                time.sleep(o.pause)
            until = time.monotonic() + o.slow_seconds
            while os.path.exists(o.slow) and time.monotonic() < until:
                time.sleep(0.01)
            if o.kill_at and job.step == o.kill_at and job.rank == o.kill_rank:
                os.kill(os.getpid(), signal.SIGKILL)
    with torch.no_grad():
        whole = F.cross_entropy(model.module(dataset.x), dataset.y).item()
    say(done=True, loss=whole, progress=job.progress, samples=job.samples, noise=job.noise_scale)


main()
