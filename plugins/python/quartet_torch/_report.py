"""What a report is made of: times of steps of one setting, and metrics."""

from __future__ import annotations

import logging
import time

import torch

from quartet_agent import Agent
from quartet_torch._plan import Setting
from quartet_torch._statistics import Gradients
from quartet_torch._world import Member

log = logging.getLogger("quartet_torch")

_ENOUGH, _PATIENCE = 3, 10  # steps of a report, one of which others may have disturbed; fewer where steps are long
MOST_METRICS, LONGEST_NAME = 64, 100


class Window:
    """The steps since the last report. Reports have medians, for others may disturb a step."""

    def __init__(self, every_seconds: float, device: torch.device) -> None:
        self._every, self._device, self._cuda = every_seconds, device, device.type == "cuda"
        self._member, self._setting = Member(), Setting((1,))
        self._last = (0.0, 0.0)  # medians of the setting that were reported last
        self._metrics: dict[str, tuple[float, float]] = {}  # values and their steps, not reported yet
        self._named: set[str] = set()
        self._warned: set[str] = set()
        self.clear()

    def clear(self) -> None:
        """Begins anew: a report has times of one setting. The first step is left out, for it waits for others."""
        self._since, self._skipped = time.monotonic(), False
        self._passes: list[float] = []
        self._steps: list[float] = []
        self._began = self._done = self._sync = 0.0

    def begin_world(self, member: Member, setting: Setting) -> None:
        self._member = member
        self.tuned(setting)

    def begin(self) -> None:
        """A pass begins, with its data to come."""
        self._began, self._done, self._sync = self.now(), 0.0, 0.0

    def computed(self) -> None:
        """The gradient of this replica is complete."""
        self._done = self.now()

    def synchronised(self, since: float = 0.0) -> None:
        """The replicas have the gradient of all, or what else they exchanged since a moment."""
        self._sync += self.now() - (since or self._done)

    def end(self) -> None:
        """A step has ended."""
        seconds = self.now() - self._began
        if self._skipped and self._done > self._began > 0:
            self._passes.append(max(seconds - self._sync, 0.0))
            self._steps.append(seconds)
        self._skipped = True

    def tuned(self, setting: Setting) -> None:
        self._setting, self._last = setting, (0.0, 0.0)
        self.clear()

    def metric(self, name: str, value: float, step: int) -> None:
        wrong = ""
        if not name or len(name) > LONGEST_NAME:
            wrong = f"has a name of {len(name)} characters, not of 1 to {LONGEST_NAME}"
        elif name not in self._named and len(self._named) >= MOST_METRICS:
            wrong = f"is one more than {MOST_METRICS}"
        if wrong:
            if name not in self._warned:
                self._warned.add(name)
                log.warning("metric %r %s: left out", name, wrong)
            return
        self._named.add(name)
        self._metrics[name] = value, step

    def due(self) -> bool:
        """Whether it is time to report."""
        long = time.monotonic() - self._since
        return len(self._steps) >= _ENOUGH and long >= self._every or bool(self._steps) and long >= _PATIENCE * self._every

    def report(self, agent: Agent, gradients: Gradients, progress: float) -> None:
        """Reports."""
        if self._steps:
            self._last = _median(self._passes), _median(self._steps)
        agent.report(
            replicas=self._member.replicas, nodes=self._member.nodes, batch_per_device=self._setting.per_device,
            pass_seconds=self._last[0], step_seconds=self._last[1], gradient_square=gradients.square,
            gradient_variance=gradients.variance, progress=progress,
        )
        for name, (value, step) in self._metrics.items():
            agent.metric(name, value, step)
        self._metrics.clear()
        self.clear()
        self._skipped = True  # the next step is as good as any

    def now(self) -> float:
        """Seconds; of a device, once it has done its work."""
        if self._cuda:
            torch.cuda.synchronize(self._device)
        return time.perf_counter()


def _median(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) // 2]
