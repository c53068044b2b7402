"""What the stages answer with, and what they see of each other's answers."""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, NamedTuple
from collections.abc import Sequence

from .cluster import ANY_ACCELERATOR, Resources, Seat

if TYPE_CHECKING:
    from .view import Candidate


class Capability(str, enum.Enum):
    """Something beyond the plain view that a policy may need and not every backend can report."""

    REMAINING_WORK = "remaining_work"  # Job.total_work and Job.progress are known
    STEP_TIMES = "step_times"  # Job.step_times and Job.steps_left are the truth
    MEASUREMENTS = "measurements"  # Job.truth is known
    SHARES = "shares"  # jobs can share devices
    PAIR_RATES = "pair_rates"  # Job.pairs is the truth
    SCALE_CLUSTER = "scale_cluster"  # nodes can be added and removed


class Code(enum.IntEnum):
    """The answer a verdict gives. DEFER asks again next round; REJECT is final. END ends an admitted job, as completed: an answer of
    AdmissionPolicy.review only."""

    ADMIT = 0
    DEFER = 1
    REJECT = 2
    END = 3


class Reason(str, enum.Enum):
    """Why a job does not run. The list is closed; when several hold, the earlier one is shown."""

    NONE = "none"
    EXCEEDS_CLUSTER = "exceeds_cluster"  # the job needs more devices than the cluster will ever have
    ACCELERATOR_MISSING = "accelerator_missing"  # no node carries a type that the job can run on
    QUOTA_EXCEEDED = "quota_exceeded"  # its tenant is at its limit
    LOAD_LIMIT = "load_limit"  # admission holds jobs back while the cluster is loaded
    WAITING_FOR_DEVICES = "waiting_for_devices"  # others come first and nothing is left
    BLOCKED_BY_EARLIER = "blocked_by_earlier"  # an earlier job that does not fit keeps its turn
    FRAGMENTED = "fragmented"  # enough devices are free, but not in a shape the placement accepts
    PREEMPTED_BY_PRIORITY = "preempted_by_priority"  # its devices went to a job that comes first
    NODE_UNAVAILABLE = "node_unavailable"  # the node it ran on failed or is draining
    POLICY_DECISION = "policy_decision"  # a reason of the policy's own; see the message
    INTERRUPTED = "interrupted"  # its processes were killed or never began; it is to start again
    AWAITING_NODES = "awaiting_nodes"  # it waits for nodes that come, or is too large for those that there are and more may join
    SUSPENDED = "suspended"  # its owner holds it back
    DEADLINE_UNREACHABLE = "deadline_unreachable"  # its deadline cannot be met, or not without breaking what was promised to others
    CONVERGED = "converged"  # it hardly got better any more, and was ended
    PRUNED = "pruned"  # others of its search are better, and it was ended
    AWAITING_RESULTS = "awaiting_results"  # it waits for what others of its search report


class Verdict(NamedTuple):
    """A decision about one job that is not a placement: it is data, never an exception."""

    job: int
    code: Code
    reason: Reason = Reason.NONE
    wanted: float = 0.0  # the counted evidence, in unit; both 0 when there is none
    available: float = 0.0
    unit: str = ""  # such as "devices" or "jobs"
    message: str = ""  # one sentence of the policy's own
    expected_seconds: float = 0.0  # of AWAITING_NODES: when nodes should be ready; 0 when nobody knows


class Grant(NamedTuple):
    """A number of devices given to a job."""

    job: int
    replicas: int
    accelerator: int = ANY_ACCELERATOR
    blocking: bool = False  # if it does not fit, nothing new is seated after it on a type it could use
    proposed: Sequence[Seat] = ()  # seating of a policy that decides jointly; may be ignored
    group: int = 0  # number of the group that shares devices, where jobs take turns; 0 for alone. See group_of


def group_of(grants: Sequence[Grant], first: int) -> int:
    """How many grants from the one at an index on are of its group: 1 for one without a group.

    Grants of a group follow one another, are of as many replicas and of the same type, at most Cluster.max_owners of them, and
    numbers ascend. Those of a group that are seated are seated on the same devices."""
    end = first + 1
    while end < len(grants) and grants[first].group != 0 and grants[end].group == grants[first].group:
        end += 1
    return end - first


class Placement(NamedTuple):
    """The seats of a grant."""

    job: int
    seats: Sequence[Seat]  # in the order that the job sees its replicas
    evicted: bool = False  # the job lost its devices on the way to these, even if they are the same ones
    resources: Resources | None = None  # of each replica, by a policy that divides CPUs and memory; None for what the job asks for


class Seating(NamedTuple):
    """The answer of a placement policy: each grant is placed or unseated."""

    placed: Sequence[Placement]
    unseated: Sequence[Verdict]  # with Code.DEFER


class Tuning(NamedTuple):
    """The batch setting of a job. All 0 leaves everything to the job."""

    job: int
    batch_per_device: int = 0
    accumulation_steps: int = 0  # extra passes per step
    learning_rate_factor: float = 0.0
    batch_by_replica: Sequence[int] = ()  # in the order of the seats and of their devices; none for an even split


class Curve(NamedTuple):
    """The rate of a job in work per second by number of replicas, index r-1 for r. 0 means it cannot run so."""

    one_node: Sequence[float]  # all replicas on one node
    many_nodes: Sequence[float]  # consolidated over as few nodes as possible, at least two


class UnlikeRates(NamedTuple):
    """The rate of a job on devices of different types, each with a part of the batch in proportion to its speed: a unit of
    work takes 1 / sum(alone) seconds, and sync_seconds more."""

    alone: Sequence[float]  # work per second of one device, by accelerator type; 0 where it cannot run
    sync_seconds: Sequence[float]  # by replicas, index r-1 for r; its length bounds the replicas


class Response(NamedTuple):
    """A job's elastic range and what it gains from more devices."""

    job: int
    min_replicas: int  # at least 1
    max_replicas: int
    curves: Sequence[Curve] = ()  # by accelerator type, the last one for all further types
    remaining_work: float = math.nan  # in the unit of the curves; NaN when unknown
    unlike: UnlikeRates | None = None  # None for a job that does not mix types, or when unknown
    alone: float = 0.0  # rate on one device at the best batch, where the curves are of a single one; 0 when they give it

    def rate(self, accelerator: int, replicas: int, devices_per_node: int) -> float:
        """Work per second on a consolidated placement; 0 when the job cannot run so, or nothing is known."""
        if not self.curves or replicas < 1:
            return 0.0
        curve = self.curves[min(max(accelerator, 0), len(self.curves) - 1)]
        rates = curve.one_node if replicas <= devices_per_node else curve.many_nodes
        return rates[replicas - 1] if replicas <= len(rates) else 0.0


class Plan(NamedTuple):
    """The outcome of the stages of one round, before it is compared with what runs."""

    grants: Sequence[Grant]
    placements: Sequence[Placement]
    tunings: Sequence[Tuning]
    candidates: Sequence[Candidate] = ()  # those that devices were divided among, by job


class PoolTarget(NamedTuple):
    """How many nodes a pool is to have, those on their way included."""

    pool: str
    nodes: int  # within the bounds of the pool
    remove: Sequence[int] = ()  # ids of nodes that go when there are too many, first ones first; a hint
    message: str = ""  # why, in one sentence


class Guarantees(NamedTuple):
    """The parts of the device time they request that jobs of each tier are guaranteed, from 0 to 1."""

    premium: float
    standard: float
    basic: float = 0.0


class Standing(NamedTuple):
    """How long an answer stands while no event comes."""

    until_seconds: float  # asking again before would change nothing; math.inf for ever
    if_seated: int = 0  # allocation: holds if the first so many grants run after the round


FOR_EVER = Standing(math.inf)
"""Of an answer that only an event can change."""
