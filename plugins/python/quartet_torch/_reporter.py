"""For loops that own their model, optimizer and batches: reports, and orders that all replicas obey alike."""

from __future__ import annotations

from typing import Optional

import torch
import torch.distributed as dist

from quartet_agent import Agent, Environment
from quartet_torch._report import Window
from quartet_torch._plan import Setting
from quartet_torch._statistics import Gradients
from quartet_torch._world import Member, Orders


class Reporter:
    """Reports to the scheduler on a training whose loop belongs to another library, and passes on what the scheduler wants.

        reporter = Reporter()
        for batch in loader:
            reporter.begin_step()
            ...
            reporter.end_step(batch_per_device=32)
            if reporter.stop or reporter.checkpoint:
                save(path)
                reporter.checkpointed()
            if reporter.stop:
                reporter.close()
                sys.exit(quartet_torch.STOPPED)
        reporter.done()

    Its jobs are stopped and started again to be resized, and keep their batch. progress counts steps, and is set by whoever goes on
    from a checkpoint. stop and checkpoint are what all replicas agreed on after the last step, by one small exchange.
    """

    def __init__(self, report_seconds: float = 1.0, environment: Optional[Environment] = None) -> None:
        environment = environment or Environment.read()
        self._member = Member.first(environment)
        speaks = self._member.local_rank == 0 and environment.rank == 0 if self._member.torchrun else self._member.rank == 0
        self._agent = Agent(environment) if environment.agent and speaks else None
        self._orders = Orders(self._agent)
        self._undo = self._orders.heed_signals()
        self._window = Window(report_seconds, torch.device("cpu"))
        self._per_device = 0
        self.progress, self.stop, self.checkpoint = 0.0, False, False

    def begin_step(self) -> None:
        """A step begins, with its data to come."""
        self._window.begin()

    def end_step(self, batch_per_device: int = 0) -> None:
        """A step of so many samples of each replica has ended: reports when it is time, and sets stop and checkpoint."""
        if batch_per_device != self._per_device:
            self._per_device = batch_per_device
            self._window.begin_world(self._member, Setting((batch_per_device,)))
        self._window.computed()  # where the pass ends and synchronisation begins is not known
        self._window.end()
        self.progress += 1
        self._orders.poll()
        told = [float(self._orders.stop or self._orders.terminated), float(self._orders.checkpoint)]
        if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            device = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")
            vector = torch.tensor(told, device=device)
            dist.all_reduce(vector)
            told = vector.tolist()
        self.stop, self.checkpoint = told[0] > 0, told[1] > 0
        self._orders.checkpoint = False
        if self._agent is not None and (self.stop or self._window.due()):
            self._window.report(self._agent, Gradients(), self.progress)

    def metric(self, name: str, value: float, step: Optional[int] = None) -> None:
        """As Job.metric."""
        self._window.metric(name, float(value), int(self.progress) if step is None else step)

    def checkpointed(self) -> None:
        """A checkpoint of what was done up to now is complete."""
        if self._agent is not None:
            self._agent.checkpointed(self.progress)

    def done(self) -> None:
        """All work is done."""
        if self._agent is not None:
            self._window.report(self._agent, Gradients(), self.progress)
            self._agent.done()
        self.close()

    def close(self) -> None:
        """Ends the connection, once what was said is said."""
        if self._agent is not None:
            self._agent.close()
        self._undo()
