"""What a stage decides on."""

from __future__ import annotations

from typing import NamedTuple
from collections.abc import Sequence

from .cluster import Cluster
from .decisions import Response
from .job import Job


class View:
    """The state of the world. It is read-only, and valid only during the call: keep no reference into it."""

    __slots__ = (
        "active", "changed", "cluster", "devices", "health_changes", "interval_seconds", "jobs", "now_seconds", "on_events",
        "round", "waiting",
    )

    now_seconds: float  # since the start
    round: int  # 1 for the first round
    interval_seconds: float  # length of a round; 0 when rounds happen on events only
    on_events: bool  # a round happens at each event, such as a submission, too
    cluster: Cluster
    devices: int  # of ready nodes
    jobs: list[Job | None]  # each submitted job at its id; None once it has ended
    active: list[int]  # admitted jobs that have not ended, by id
    waiting: int  # how many of active hold no devices
    changed: Sequence[int]  # jobs that an event touched since the round before, by id, ended ones included
    health_changes: int  # how often the health of a node changed so far

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.now_seconds, self.round, self.interval_seconds = 0.0, 0, 0.0
        self.on_events = False
        self.cluster = cluster or Cluster()
        self.devices = self.cluster.usable_devices()
        self.jobs, self.active, self.changed = [], [], ()
        self.waiting = self.health_changes = 0

    def job(self, id: int) -> Job | None:
        """The job, or None when it is unknown or has ended."""
        return self.jobs[id] if 0 <= id < len(self.jobs) else None


class Candidate(NamedTuple):
    """An admitted job together with what it can do with accelerators."""

    job: Job
    response: Response
