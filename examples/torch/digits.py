"""A convolutional network learns handwritten digits, on a number of replicas."""

import argparse

import torch
import torch.nn.functional as F
import quartet_torch
from parts import convolutional, digits


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, default=20)
    options.add_argument("--batch", type=int, default=32)
    options.add_argument("--rate", type=float, default=0.02)
    o = options.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    job = quartet_torch.init("gloo")
    train, (images, labels) = digits()
    model = job.model(convolutional())
    optimizer = job.optimizer(torch.optim.SGD(model.parameters(), lr=o.rate, momentum=0.9))
    loader = job.loader(train, o.batch)
    for epoch in job.epochs(o.epochs):
        model.train()
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(images).argmax(1) == labels).float().mean().item()
        job.metric("accuracy", accuracy)
        if job.rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {100 * accuracy:.2f} %", flush=True)


main()
