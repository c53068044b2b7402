"""Makes a PyTorch training elastic: Quartet resizes and retunes it while it keeps its progress.

    job = quartet_torch.init("gloo")                                    # was: torch.distributed.init_process_group("gloo")
    model = job.model(Net())                                            # was: DistributedDataParallel(Net())
    optimizer = job.optimizer(torch.optim.SGD(model.parameters(), 0.1))
    loader = job.loader(dataset, batch_size=64)                         # was: DataLoader with a DistributedSampler
    for epoch in job.epochs(10):                                        # was: range(10)
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = loss_of(model(inputs), targets)
            loss.backward()
            optimizer.step()
        job.metric("loss", loss.item())

The same script runs under `quartet run`, under torchrun, and alone. docs/train-with-pytorch.md of Quartet describes all of it.
"""

from __future__ import annotations

from typing import Optional

from quartet_agent import STOPPED, Environment
from quartet_torch._checkpoint import CheckpointError
from quartet_torch._end import ReplicaLost
from quartet_torch._job import ElasticModel, Job
from quartet_torch._loader import Loader
from quartet_torch._reporter import Reporter
from quartet_torch._statistics import Gradients

__all__ = ["STOPPED", "CheckpointError", "ElasticModel", "Gradients", "Job", "Loader", "ReplicaLost", "Reporter", "init"]


def init(backend: str = "gloo", *, checkpoint: Optional[str] = None, checkpoint_seconds: float = 60.0, report_seconds: float = 1.0,
         worlds: bool = False, observe_every: Optional[int] = None, join_seconds: float = 120.0) -> Job:
    """Joins the other replicas, and returns the job that they are.

    backend: of torch.distributed. checkpoint: a folder in place of QUARTET_CHECKPOINT; without either nothing is kept.
    checkpoint_seconds: how often a checkpoint is made at least, besides those that the scheduler asks for. report_seconds: how often
    the scheduler learns of the job at most. worlds: declare to the scheduler that replicas may join and leave while it runs.
    observe_every: take gradient statistics in every so many steps; a lone replica with one pass takes two of them. If nothing is said,
    in each of the first 800, and more and more seldom up to every 10th from 4,000 on. join_seconds: how long to wait for the other
    replicas.

    A ValueError names what is wrong with the environment or the arguments; a RuntimeError says that others did not come. A job that is
    asked to stop while it waits exits with STOPPED.
    """
    for name, value, least in (("checkpoint_seconds", checkpoint_seconds, 0), ("report_seconds", report_seconds, 0),
                               ("join_seconds", join_seconds, 0), ("observe_every", 1 if observe_every is None else observe_every, 1)):
        if not value >= least:
            raise ValueError(f"{name}: {value} is below {least}")
    return Job(backend, Environment.read(), checkpoint, checkpoint_seconds, report_seconds, worlds, observe_every, join_seconds)
