"""Accuracy of the digits network at a larger batch, at the same progress: a measurement for docs/results/pytorch.md.

PYTHONPATH=plugins/python python3 plugins/python/tests/torch_accuracy.py --seeds 10
"""

import argparse
import os
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.utils.data import TensorDataset

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../examples/torch"))

import parts  # noqa: E402

import quartet_torch  # noqa: E402
from quartet_agent import Tuning  # noqa: E402


def trained(seed, times, scaling, o):
    """Accuracy in percent, steps and samples when a training has come as far as was asked, with a batch so many times the initial one."""
    train, (images, labels) = parts.digits()
    job = quartet_torch.init()
    torch.manual_seed(seed)
    model = job.model(parts.convolutional())
    optimizer = job.optimizer(torch.optim.SGD(model.parameters(), o.rate, momentum=0.9), scaling=scaling)
    loader = job.loader(TensorDataset(*train.tensors), o.batch, seed=seed)
    job._orders.tuning = Tuning(batch_per_device=o.batch * times // 2, accumulation_steps=1)
    for _ in job.epochs(1000):
        for inputs, targets in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            if job.progress >= o.progress:
                break
        if job.progress >= o.progress:
            break
    model.eval()
    with torch.no_grad():
        accuracy = 100 * (model(images).argmax(1) == labels).float().mean().item()
    steps, samples = job.step, job.samples
    job.done()
    return accuracy, steps, samples


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--batch", type=int, default=32)
    options.add_argument("--times", type=int, default=4)
    options.add_argument("--rate", type=float, default=0.02)
    options.add_argument("--progress", type=float, default=1350, help="iterations at the initial batch")
    o = options.parse_args()
    torch.set_num_threads(1)
    means = {}
    for name, times, scaling in (("small", 1, "adascale"), ("large", o.times, "adascale"), ("square root", o.times, "square_root"),
                                 ("linear", o.times, "linear"), ("unscaled", o.times, "none")):
        found = [trained(seed, times, scaling, o) for seed in range(o.seeds)]
        accuracies = [a for a, _, _ in found]
        means[name] = statistics.mean(accuracies)
        print(f"{name:12} batch {o.batch * times:4}: accuracy {means[name]:.2f} % (from {min(accuracies):.2f} to {max(accuracies):.2f}), "
              f"{statistics.mean(s for _, s, _ in found):.0f} steps, {statistics.mean(n for _, _, n in found):.0f} samples", flush=True)
    print(f"large against small: {means['large'] - means['small']:+.2f} points")


main()
