"""A tiny transformer learns to write like the decisions of Quartet, on a number of replicas."""

import argparse
import pathlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from parts import Text, Transformer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, default=5)
    options.add_argument("--batch", type=int, default=16)
    options.add_argument("--rate", type=float, default=0.002)
    options.add_argument("--block", type=int, default=64)
    options.add_argument("--text", default=pathlib.Path(__file__).parents[2] / "docs/adr")
    o = options.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    text = Text(o.text, o.block)
    model = DistributedDataParallel(Transformer(o.block))
    optimizer = torch.optim.Adam(model.parameters(), lr=o.rate)
    sampler = DistributedSampler(text)
    loader = DataLoader(text, o.batch // dist.get_world_size(), sampler=sampler)
    for epoch in range(o.epochs):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)


main()
