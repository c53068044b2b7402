"""A convolutional network learns handwritten digits, on a number of replicas."""

import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from parts import convolutional, digits
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, default=20)
    options.add_argument("--batch", type=int, default=32)
    options.add_argument("--rate", type=float, default=0.02)
    o = options.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    train, (images, labels) = digits()
    model = DistributedDataParallel(convolutional())
    optimizer = torch.optim.SGD(model.parameters(), lr=o.rate, momentum=0.9)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, o.batch // dist.get_world_size(), sampler=sampler)
    for epoch in range(o.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(images).argmax(1) == labels).float().mean().item()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {100 * accuracy:.2f} %", flush=True)


main()
