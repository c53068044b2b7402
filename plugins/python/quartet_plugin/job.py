"""Jobs as the stages see them."""

from __future__ import annotations

import enum
import math
from typing import NamedTuple
from collections.abc import Sequence

from .cluster import Cluster, Resources, Seat
from .decisions import Reason, Tuning


class BatchSpec(NamedTuple):
    """Bounds of the batch size of a training job, in samples. All 0 for a job without batch elasticity."""

    requested: int = 0  # total batch the user asked for
    initial: int = 0  # total batch that the learning rate was tuned for
    max: int = 0  # largest total batch that still trains
    min_per_device: int = 0
    max_per_device: int = 0


_RIGID = BatchSpec()


class TypeTimes(NamedTuple):
    """The step times on one accelerator type."""

    accelerator: str
    one_node: Sequence[float]
    many_nodes: Sequence[float]


class AloneTime(NamedTuple):
    """How long one device of a type takes for a step with the whole batch."""

    accelerator: str
    seconds: float


class UnlikeTimes(NamedTuple):
    """How long a step takes on devices of different types, each with a part of the batch in proportion to its speed:
    1 / sum(1 / alone) seconds, and sync_seconds more."""

    alone: Sequence[AloneTime]
    sync_seconds: Sequence[float]  # by replicas, index r-1 for r


class StepTimes(NamedTuple):
    """The seconds of one optimizer step at a fixed total batch on consolidated placements. Index r-1 is r replicas;
    0 means not possible."""

    one_node: Sequence[float]  # on any type that types does not hold
    many_nodes: Sequence[float]  # nodes filled one after another, the last one partly
    types: Sequence[TypeTimes] = ()
    unlike: UnlikeTimes | None = None  # None for a job that does not mix types


class TypeBatch(NamedTuple):
    """The bounds of the batch per device on an accelerator type, whose memory may be larger or smaller than others'."""

    accelerator: str
    min_per_device: int
    max_per_device: int


class Measurement(NamedTuple):
    """What a job saw on one configuration: its replicas, on how many nodes, with which batch."""

    nodes: int
    replicas: int
    per_device: int  # samples on each device in a pass
    pass_seconds: float  # of a pass over them without synchronisation
    step_seconds: float  # of a pass with it
    accelerator: str = ""  # type of the devices; empty where types make no difference
    reports: int = 0  # it rests on so many; 0 stands for one
    spread: float = 0.0  # mean distance of the reports that disagree with it, over all, as a part of step_seconds

    def same_configuration(self, other: "Measurement") -> bool:
        """Whether both are of the same replicas, nodes, type and batch."""
        return (self.accelerator, *self[:3]) == (other.accelerator, *other[:3])


class Gradients(NamedTuple):
    """The statistics of a job's gradient at its initial batch."""

    square: float = 0.0  # squared norm of the expectation
    variance: float = 0.0  # trace of the covariance


_UNREPORTED = Gradients()


class Point(NamedTuple):
    """One value of a metric."""

    step: float  # of the training, in any unit that grows, such as epochs or optimizer steps; not negative
    value: float
    at_seconds: float


class Series(NamedTuple):
    """What a job reported of one metric, in the order in which it was reported. The last point is the latest."""

    metric: str
    points: Sequence[Point]  # at least one


class BatchSteps(NamedTuple):
    """How many optimizer steps a training takes at a total batch."""

    batch: int
    steps: float


class Truth(NamedTuple):
    """All that can be measured of an application."""

    measurements: Sequence[Measurement]
    gradients: Gradients  # at the start of training
    steps: Sequence[BatchSteps] = ()  # of the whole training by total batch, ascending; none when unknown


class Share(NamedTuple):
    """The part of a device that each replica of a job has. No two replicas of a job are on the same device."""

    milli: int  # compute, in thousandths of a device; with 0 a replica computes on CPUs alone, and takes nothing of its device
    profile: str = ""  # of its slice, where MIG divides devices: 1g, 2g, 3g, 4g or 7g; empty where it follows from milli


class Iteration(NamedTuple):
    """The seconds that an iteration of a job takes of each kind of resource alone, one after the other."""

    load: float = 0.0  # storage and CPUs
    compute: float = 0.0  # the devices
    sync: float = 0.0  # the network
    measured: float = 0.0  # a whole one, where that is not its stages together; 0 where it is, or nobody knows

    def seconds(self) -> float:
        """Those of all stages together."""
        return self.load + self.compute + self.sync


_UNKNOWN = Iteration()

# The compute slices of the slices that MIG divides a device into, of 7.
_COMPUTE = {"1g": 1, "2g": 2, "3g": 3, "4g": 4, "7g": 7}


class Sensitivity(NamedTuple):
    """How fast a job is by the CPUs and the memory of each replica, relative to base."""

    base: Resources  # with which the speed is 1
    ideal: Resources  # the least of the best speed
    speedup: float  # with the ideal
    iteration_seconds: float = 0.0  # of a unit of the job's work with base on the replicas it requests; 0 when unknown
    cpus: Sequence[float] = ()  # with which speeds were measured, ascending; none where only the ideal is known
    memory_gb: Sequence[float] = ()  # likewise
    speeds: Sequence[Sequence[float]] = ()  # by cpus, then memory


class Pair(NamedTuple):
    """What was measured of two jobs with as many replicas on the same devices."""

    accelerator: str
    applications: tuple[str, str]
    replicas: int
    parts: tuple[float, float]  # of its speed alone that each keeps; 0 for both where they do not fit


class PairTable:
    """How fast jobs are in pairs on the same devices. A job is known by its application and the replicas it requested."""

    pairs: Sequence[Pair]  # by accelerator, applications and replicas

    __slots__ = ("_parts", "pairs")

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.pairs = tuple(pairs)
        self._parts: dict[tuple[str, str, str, int], float] = {}
        for p in self.pairs:
            self._parts[p.accelerator, p.applications[0], p.applications[1], p.replicas] = p.parts[0]
            self._parts[p.accelerator, p.applications[1], p.applications[0], p.replicas] = p.parts[1]

    def part(self, accelerator: str, job: "Job", other: "Job") -> float | None:
        """The part of its speed alone that a job keeps beside another on devices of a type: 0 where they do not fit, None where nobody
        measured it."""
        if job.requested != other.requested:
            return None
        return self._parts.get((accelerator, job.application, other.application, job.requested))


class JobState(enum.IntEnum):
    """PENDING awaits admission, WAITING awaits devices."""

    PENDING = 0
    WAITING = 1
    RUNNING = 2


class Job:
    """A submitted job that has not ended.

    What changes with time is kept as a value at a moment and a slope: ask the methods. Everything is read-only.
    """

    # What is known when it is submitted.
    id: int  # rank in submission order; breaks ties everywhere
    name: str
    tenant: str
    application: str
    experiment: str  # the search that it is a trial of; empty for none
    weight: float  # share of the job against others, 1 unless stated
    submit_seconds: float
    requested: int  # replicas the user asked for
    min_replicas: int  # least the job can run with
    max_replicas: int  # most the job can use
    pinned: bool  # keeps the devices that it gets first until it ends
    suspended: bool  # its owner holds it back
    deadline_seconds: float  # how long after its submission it is to be done; 0 for whenever
    best_effort: bool  # it takes what the others leave, and is promised nothing
    tier: str  # premium, standard or basic: the service that it is guaranteed; empty for none, as basic
    accelerators: Sequence[str]  # types the job can run on; empty for all
    mixes_types: bool  # its replicas may run on devices of different types at once
    batch: BatchSpec
    batch_by_type: Sequence[TypeBatch]  # bounds of the batch per device on single types, instead of those of batch
    cpus: float  # per replica
    memory_gb: float  # per replica
    share: Share | None  # None for whole devices; always where no device is shared
    utilisation: float  # of a device by a replica that has it alone, 0 to 1; 0 when unknown
    device_memory_gb: float  # of its device that each replica needs; 0 when unknown
    slowdown_tolerance: float  # the part of its speed alone that its owner lets go for sharing, 0 to 1; 0 when unknown
    iteration: Iteration  # all 0 when unknown
    sensitivity: Sensitivity | None  # None when CPUs and memory make no difference, or nobody knows
    command: Sequence[str]
    total_work: float  # in the unit of progress; 0 when unknown. Needs Capability.REMAINING_WORK
    step_times: StepTimes | None  # true step times at the requested batch. Needs Capability.STEP_TIMES
    pairs: PairTable | None  # how fast jobs are on the same devices. Needs Capability.PAIR_RATES
    truth: Truth | None  # what it would measure on every configuration. Needs Capability.MEASUREMENTS

    # What changes.
    state: JobState
    waiting_reason: Reason  # why it waits, as last decided
    seats: Sequence[Seat]  # devices held, in the order the placement stage chose
    held: int  # number of devices in seats
    tuning: Tuning
    as_of_seconds: float  # moment at which executed and attained were brought up to date
    executed: float
    attained: float
    progress: float  # work done at progress_as_of
    progress_rate: float  # work per second from then on
    progress_as_of: float  # lies ahead during a restart pause
    steps_left: float  # true optimizer steps left at the requested batch; NaN when unknown
    first_start: float  # seconds; NaN until the job first gets devices
    last_change: float  # seconds of the last start, stop or move; of the submission before the first
    restarts: int  # starts and moves after the first start
    preemptions: int  # times its devices were taken away before it ended
    measured: Sequence[Measurement]  # what it reported, one for each configuration it ran on, as first seen; later reports correct it
    gradients: Gradients  # latest statistics reported; zero before the first report
    reported: Sequence[Series]  # what it reported of its metrics, such as its loss, in the order in which they were first reported
    starting: bool  # some of its replicas do not run yet
    slices: Sequence[int]  # where its slices of devices begin, device by device in the order of seats, under Sharing.MIG; 255 where not known
    resources: Resources | None  # of each replica, as placement gave them; None for what it asks for

    __slots__ = (
        "accelerators", "application", "as_of_seconds", "attained", "batch", "batch_by_type", "best_effort", "command", "cpus", "deadline_seconds", "device_memory_gb", "executed", "experiment",
        "first_start", "gradients", "held", "id", "iteration", "last_change", "max_replicas", "measured", "memory_gb", "min_replicas",
        "mixes_types", "name", "pairs", "pinned", "preemptions", "progress", "progress_as_of", "progress_rate", "reported", "requested", "resources", "restarts",
        "seats", "sensitivity", "share", "slices", "slowdown_tolerance", "starting", "state", "step_times", "steps_left", "submit_seconds", "suspended", "tenant", "tier", "total_work", "truth", "tuning", "utilisation", "waiting_reason", "weight",
    )

    def __init__(
        self, id: int, name: str = "", *, tenant: str = "", application: str = "", weight: float = 1.0,
        submit_seconds: float = 0.0, requested: int = 1, min_replicas: int = 1, max_replicas: int = 1,
        accelerators: Sequence[str] = (), batch: BatchSpec = _RIGID, cpus: float = 0.0, memory_gb: float = 0.0,
        command: Sequence[str] = (), total_work: float = 0.0, step_times: StepTimes | None = None,
        truth: Truth | None = None, pinned: bool = False, suspended: bool = False, mixes_types: bool = False,
        batch_by_type: Sequence[TypeBatch] = (), deadline_seconds: float = 0.0, best_effort: bool = False,
        tier: str = "", share: Share | None = None, utilisation: float = 0.0, device_memory_gb: float = 0.0,
        slowdown_tolerance: float = 0.0, iteration: Iteration = _UNKNOWN, sensitivity: Sensitivity | None = None,
        pairs: PairTable | None = None, experiment: str = "",
    ) -> None:
        """A job that was just submitted."""
        self.id, self.name, self.tenant, self.application, self.experiment = id, name, tenant, application, experiment
        self.weight, self.submit_seconds = weight, submit_seconds
        self.requested, self.min_replicas, self.max_replicas = requested, min_replicas, max_replicas
        self.accelerators, self.batch, self.cpus, self.memory_gb = accelerators, batch, cpus, memory_gb
        self.command, self.total_work, self.step_times, self.truth = command, total_work, step_times, truth
        self.pinned, self.mixes_types, self.batch_by_type = pinned, mixes_types, batch_by_type
        self.suspended, self.starting = suspended, False
        self.deadline_seconds, self.best_effort, self.tier = deadline_seconds, best_effort, tier
        self.share, self.utilisation, self.device_memory_gb = share, utilisation, device_memory_gb
        self.slowdown_tolerance, self.iteration = slowdown_tolerance, iteration
        self.sensitivity, self.pairs, self.resources = sensitivity, pairs, None
        self.state, self.waiting_reason = JobState.PENDING, Reason.NONE
        self.seats, self.slices, self.held, self.tuning = (), (), 0, Tuning(id)
        self.as_of_seconds = self.progress_as_of = self.last_change = submit_seconds
        self.executed = self.attained = self.progress = self.progress_rate = 0.0
        self.steps_left = self.first_start = math.nan
        self.restarts = self.preemptions = 0
        self.measured, self.gradients, self.reported = (), _UNREPORTED, ()

    def series(self, metric: str) -> Series | None:
        """What the job reported of a metric; None when it reported nothing of it."""
        return next((s for s in self.reported if s.metric == metric), None)

    # The accounts follow core/job.go operation by operation, so that both languages decide on the same numbers.

    def executed_seconds(self, now: float) -> float:
        """The time for which the job held devices up to now, restart pauses included."""
        if self.held == 0:
            return self.executed
        return self.executed + (now - self.as_of_seconds)

    def attained_service(self, now: float) -> float:
        """The device-seconds the job received up to now, restart pauses included, of shared devices its part."""
        if self.held == 0:
            return self.attained
        return self.attained + (now - self.as_of_seconds) * self.held * self.part()

    def part(self) -> float:
        """The compute of a device that a replica of the job has, 0 to 1."""
        if self.share is None:
            return 1.0
        if not self.share.profile or self.share.milli <= 0:
            return self.share.milli / 1000
        slices = _COMPUTE.get(self.share.profile)
        if slices is None:
            slices = next((n for n in _COMPUTE.values() if n * 1000 >= self.share.milli * 7), 7)
        return slices / 7

    def has(self) -> Resources:
        """The CPUs and the memory of each replica: what placement gave it, else what it asks for."""
        return Resources(self.cpus, self.memory_gb) if self.resources is None else self.resources

    def work_done(self, now: float) -> float:
        """The progress at now, in the unit of total_work."""
        if self.progress_rate == 0 or now <= self.progress_as_of:
            return self.progress
        return self.progress + (now - self.progress_as_of) * self.progress_rate

    def remaining_work(self, now: float) -> float:
        """The declared work not yet done, never negative, in the unit of total_work."""
        return max(self.total_work - self.work_done(now), 0.0)

    def can_run_on(self, cluster: Cluster, accelerator: int) -> bool:
        """Whether the job allows an accelerator type of the cluster. Whether its nodes have the CPUs and the memory is not looked at."""
        return not self.accelerators or cluster.accelerators[accelerator] in self.accelerators
