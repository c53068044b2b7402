"""A trial of tune.yaml: a convolutional network learns handwritten digits, with the hyper-parameters that it is given."""

import argparse
import time

import torch
import torch.nn.functional as F
import quartet_torch
from parts import convolutional, digits


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, default=20)
    options.add_argument("--batch", type=int, default=32)
    options.add_argument("--rate", type=float, default=0.02)
    options.add_argument("--momentum", type=float, default=0.9)
    options.add_argument("--width", type=int, default=16, help="channels of the first layer")
    options.add_argument("--sample-seconds", type=float, default=0.0, help="that a sample takes a device at least: what is missing is waited for")
    o = options.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    job = quartet_torch.init("gloo")
    train, (images, labels) = digits()
    model = job.model(convolutional(o.width))
    optimizer = job.optimizer(torch.optim.SGD(model.parameters(), lr=o.rate, momentum=o.momentum))
    loader = job.loader(train, o.batch)
    for epoch in job.epochs(o.epochs):
        model.train()
        loss = torch.tensor(float("nan"))  # of an epoch all of which was learned before a restart
        for inputs, targets in loader:
            began = time.monotonic()
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), targets)
            time.sleep(max(began + len(targets) * o.sample_seconds - time.monotonic(), 0))
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(images).argmax(1) == labels).float().mean().item()
        job.metric("accuracy", accuracy, epoch + 1)
        if job.rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {100 * accuracy:.2f} %", flush=True)


main()
