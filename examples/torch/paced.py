"""A training whose steps take the time that a profile says, so that a small machine shows the schedule of a large one.

It computes little, and waits for the rest of each pass. Gradients, statistics, progress, checkpoints and resizes are those of any training
with quartet_torch; docs/profiles.md says what a profile holds.
"""

import os
import time

BEGAN = os.stat(os.environ["QUARTET_RENDEZVOUS"]).st_mtime if os.environ.get("QUARTET_RENDEZVOUS") else time.time()  # before torch is imported

import argparse  # noqa: E402
import re  # noqa: E402

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import quartet_torch  # noqa: E402

SAMPLES, FEATURES, CLASSES = 4096, 32, 4
CATCH_UP = 1.0  # how late, in seconds, a training may be and still make up for it


class Pace:
    """The times of a profile, which are those of core/goodput."""

    def __init__(self, file, nodes):
        text = open(file).read()
        self.nodes, self.due = nodes, 0.0
        for name in ("alpha_grad", "beta_grad", "alpha_node", "beta_node", "alpha_local", "beta_local", "gamma"):
            found = re.search(rf"^ *{name}: *([0-9.e+-]+)", text, re.M)
            if not found:
                raise SystemExit(f"{file} has no {name}")
            setattr(self, name, float(found[1]))

    def gradient(self, batch):
        """Seconds of a pass of a device."""
        return self.alpha_grad + self.beta_grad * batch

    def step(self, replicas, batch):
        """Seconds of a pass that ends with an exchange."""
        further = max(replicas - 2, 0)
        alpha, beta = (self.alpha_node, self.beta_node) if self.nodes > 1 else (self.alpha_local, self.beta_local)
        exchange = alpha + beta * further if replicas > 1 else 0.0
        return (self.gradient(batch) ** self.gamma + exchange ** self.gamma) ** (1 / self.gamma)

    def wait(self, job):
        """Waits until the gradient of a pass may be complete. The first replica has it in time; what an exchange takes, it waits for the others."""
        batch = max(job.setting.shares)
        whole = self.step(job.replicas, batch) if job.last_pass else self.gradient(batch)
        now = time.monotonic()
        began = self.due if now - self.due < CATCH_UP else now
        self.due = began + whole
        time.sleep(max(began + (self.gradient(batch) if job.rank == 0 else whole) - now, 0))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--profile", required=True)
    options.add_argument("--iterations", type=float, required=True, help="work to do, in steps at the initial batch")
    options.add_argument("--batch", type=int, default=32)
    options.add_argument("--rate", type=float, default=1e-4)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--start-up", type=float, default=0.0, help="seconds from the start of the replicas to the first step")
    o = options.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(o.seed)
    generator = torch.Generator().manual_seed(o.seed)
    inputs = torch.randn(SAMPLES, FEATURES, generator=generator)
    labels = (inputs @ torch.randn(FEATURES, CLASSES, generator=generator) / 2 + torch.randn(SAMPLES, CLASSES, generator=generator)).argmax(1)

    with quartet_torch.init("gloo") as job:
        model = job.model(torch.nn.Linear(FEATURES, CLASSES))
        optimizer = job.optimizer(torch.optim.SGD(model.parameters(), lr=o.rate))
        loader = job.loader(torch.utils.data.TensorDataset(inputs, labels), o.batch)
        pace = Pace(o.profile, int(os.environ.get("QUARTET_NODES", 1)))
        job.begin()
        if job.rank == 0:
            time.sleep(max(BEGAN + o.start_up - time.time(), 0))
        for _ in job.epochs(1 << 40):
            for x, y in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                pace.wait(job)
                loss.backward()
                optimizer.step()
                if job.progress >= o.iterations:
                    break
            job.metric("loss", loss.item())
            if job.progress >= o.iterations:
                break
    if job.rank == 0:
        print(f"progress {job.progress:.1f}, noise scale {job.noise_scale:.1f}", flush=True)


main()
