"""The policies of the stages. A plugin's author derives from one of them."""

from __future__ import annotations

import dataclasses
import logging
import random
from typing import Any, ClassVar
from collections.abc import Iterable, Sequence

from .cluster import Sharing
from .decisions import Capability, Grant, Guarantees, Placement, Plan, PoolTarget, Response, Seating, Standing, Tuning, Verdict
from .job import Job
from .view import Candidate, View


class Policy:
    """What the policies of all stages have in common.

    A policy is created for one component of a run. It may keep what it likes between calls, except parts of a view.
    """

    type: ClassVar[str] = ""  # name in configs, lower_snake_case
    summary: ClassVar[str] = ""  # one line
    description: ClassVar[str] = ""  # idea, deviations from the source, limits
    source: ClassVar[str] = ""  # paper, section or equation
    capabilities: ClassVar[Sequence[Capability]] = ()  # needed whatever the config
    one_type: ClassVar[bool] = False  # of an allocator: grants a job devices of one type, even one that mixes types
    counts: ClassVar[bool] = False  # of a placement policy: counts CPUs and memory; no other is taken where they are counted
    divides: ClassVar[bool] = False  # of a placement policy: decides the CPUs and the memory of jobs; the cluster has to count them
    # Of a placement policy the ways of sharing in which it seats jobs: no other is taken where devices are shared. Of an allocation
    # policy the ways of which it needs one; none for one that needs no sharing.
    sharing: ClassVar[Sequence[Sharing]] = ()

    @dataclasses.dataclass
    class Config:
        """The settings, a dataclass whose fields are made by field(). This one has none."""

    id: str  # component id: stage/type, such as "admission/deadline"
    config: Any  # an instance of Config
    random: random.Random  # the component's own stream; the only source of randomness
    log: logging.LoggerAdapter[logging.Logger]  # writes to the host's log

    def setup(self) -> None:
        """Called once, after the attributes above are set. A ValueError is a problem in the settings."""

    def standing(self) -> Standing | None:
        """How long the last answer stands while no event comes. None to be asked again every round."""
        return None


class AdmissionPolicy(Policy):
    """Decides which submitted jobs may compete for devices. A policy defines admit or admit_candidates. One that also looks at jobs as they
    go on, to end those that are good enough or to hold others back, defines review."""

    promises: ClassVar[bool] = False  # admits a job with a deadline only if the deadline will be met

    def admit(self, view: View, waiting: Sequence[Job]) -> Iterable[Verdict] | None:
        """Answers for waiting jobs, in the order of their ids; a job without a verdict is admitted. Jobs already
        admitted are not asked about again. Deferred ones come back next round."""
        raise NotImplementedError

    def admit_candidates(
        self, view: View, admitted: Sequence[Candidate], waiting: Sequence[Candidate]
    ) -> Iterable[Verdict] | None:
        """Answers as admit does, for a policy that looks at what jobs do with accelerators. Admitted are the jobs admitted
        already, and waiting those that it is asked about, both in the order of their ids."""
        raise NotImplementedError

    def review(self, view: View, reported: Sequence[Job]) -> Iterable[Verdict] | None:
        """Answers for admitted jobs, in the order of their ids; one without a verdict goes on. It is asked before the other stages of a
        round, when admitted jobs reported metrics since the round before: reported are these. Code.END ends a job, which counts as
        completed. Code.DEFER takes its devices and its admission: admit is asked about it from the next round on."""
        raise NotImplementedError


class AllocationPolicy(Policy):
    """Decides how many devices of which type each job gets."""

    def allocate(self, view: View, candidates: Sequence[Candidate]) -> Iterable[Grant] | None:
        """Answers with grants in seating order, at most one per candidate. Candidates are the admitted jobs by id,
        running ones included; a running job without a grant is preempted. Grants may exceed capacity. None grants
        nothing, as an empty list does, so that every running job is preempted."""
        raise NotImplementedError

    def gap_ratio(self) -> float | None:
        """What a better answer than the last one could still gain, as a part of the bound on the objective: 0 when it is
        proven best. None when nothing is known."""
        return None

    def guarantees(self) -> Guarantees | None:
        """The parts of the device time they request that jobs of each tier are guaranteed, by which a run is judged. Asked
        once, after setup. None for the usual ones."""
        return None


class PlacementPolicy(Policy):
    """Decides which devices a grant is seated on."""

    def place(self, view: View, grants: Sequence[Grant]) -> Seating:
        """Seats grants in their order. It skips a grant that does not fit, unless it is blocking: then it places
        nothing that does not already run. Every grant ends in placed or unseated."""
        raise NotImplementedError


class ElasticityPolicy(Policy):
    """Says what a job does with accelerators, and tunes it to those it got."""

    follows_reports: ClassVar[bool] = False  # answers otherwise once a job has reported: reports then call for rounds

    def respond(self, view: View, jobs: Sequence[Job]) -> Iterable[Response]:
        """Answers for each of jobs, in their order. It is asked about a job when it is submitted and whenever an event
        touched it; otherwise the last response stands."""
        raise NotImplementedError

    def tune(self, view: View, placements: Sequence[Placement]) -> Iterable[Tuning] | None:
        """Answers for those placements whose batch settings change; the others keep theirs."""
        return None


class ScalerPolicy(Policy):
    """Decides how many nodes the cluster, or each of its pools, should have."""

    def scale(self, view: View, plan: Plan) -> int | Iterable[PoolTarget] | None:
        """The sizes that pools should have, at most one of each; a pool without one stays as it is. Or the number of nodes in all,
        for a cluster with one pool; 0, as None, for no opinion."""
        raise NotImplementedError
