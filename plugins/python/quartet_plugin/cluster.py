"""The machines of a cluster, sets of their devices, and a ledger of the free ones."""

from __future__ import annotations

import enum
from typing import NamedTuple
from collections.abc import Iterable, Sequence

ANY_ACCELERATOR = -1
"""Leaves the accelerator type to the placement stage."""

MAX_DEVICES_PER_NODE = 64


class Health(enum.IntEnum):
    """Whether a node takes part in placement. A draining node is up, but nothing may be placed or left on it. One that is
    being provisioned is to become ready; one that is gone never comes back."""

    READY = 0
    DRAINING = 1
    DOWN = 2
    PROVISIONING = 3
    GONE = 4


class Resources(NamedTuple):
    """CPUs and memory."""

    cpus: float = 0.0
    memory_gb: float = 0.0


class Sharing(enum.IntEnum):
    """Who may be on a device together. EXCLUSIVE gives each device to one job at a time. FRACTIONAL gives jobs their shares, together at
    most the device; one that asks for whole devices shares none. TIME_SLICE lets jobs have whole devices together, Cluster.max_owners
    of them at most: they take turns, or compute at the same time. MIG divides each device into slices, and every replica has one."""

    OTHER = -1  # a way that this version does not know
    EXCLUSIVE = 0
    FRACTIONAL = 1
    TIME_SLICE = 2
    MIG = 3


# A set of devices of one node is an int whose bit i stands for device i.


def first_devices(count: int) -> int:
    """The set {0, ..., count-1}."""
    return (1 << min(count, MAX_DEVICES_PER_NODE)) - 1


def count_devices(devices: int) -> int:
    """The number of devices in a set."""
    return bin(devices).count("1")


def lowest_devices(devices: int, count: int) -> int:
    """The subset of the lowest devices, or the whole set when it holds fewer."""
    rest = devices
    while count > 0 and rest:
        rest &= rest - 1
        count -= 1
    return devices & ~rest


def list_devices(devices: int) -> list[int]:
    """The device indices of a set in ascending order."""
    return [i for i in range(devices.bit_length()) if devices >> i & 1]


class Seat(NamedTuple):
    """The devices that a job holds on one node."""

    node: int
    devices: int


def replicas(seats: Iterable[Seat]) -> int:
    """The number of devices over all seats; one replica runs on one device."""
    return sum(count_devices(seat.devices) for seat in seats)


class Node:
    """One machine with devices of a single accelerator type."""

    __slots__ = (
        "accelerator", "cpus", "device_memory_gb", "devices", "expected_seconds", "health", "id", "memory_gb", "name", "pool", "rack",
        "unusable",
    )

    id: int  # index in Cluster.nodes
    name: str
    accelerator: int  # index in Cluster.accelerators
    devices: int
    cpus: float
    memory_gb: float
    rack: str
    health: Health
    unusable: int  # set of devices that are broken, or held by others
    pool: str  # that it belongs to; empty for none
    expected_seconds: float  # when one that is being provisioned should be ready; 0 when nobody knows
    device_memory_gb: float  # of each device; 0 when unknown

    def __init__(
        self, id: int, name: str, accelerator: int, devices: int, *,
        cpus: float = 0.0, memory_gb: float = 0.0, rack: str = "", health: Health = Health.READY, unusable: int = 0,
        pool: str = "", expected_seconds: float = 0.0, device_memory_gb: float = 0.0,
    ) -> None:
        self.id, self.name, self.accelerator, self.devices = id, name, accelerator, devices
        self.cpus, self.memory_gb, self.rack, self.health = cpus, memory_gb, rack, health
        self.unusable, self.pool, self.expected_seconds = unusable, pool, expected_seconds
        self.device_memory_gb = device_memory_gb

    def usable(self) -> int:
        """The set of devices that may be placed on now: none of a node that is not ready."""
        return first_devices(self.devices) & ~self.unusable if self.health is Health.READY else 0


class Price(NamedTuple):
    """What a node costs by the hour from a moment on."""

    from_seconds: float
    per_hour: float


class Pool(NamedTuple):
    """Equal nodes that come and go as a scaler decides, within bounds."""

    name: str
    accelerator: int  # index in Cluster.accelerators
    devices: int  # of each node
    cpus: float = 0.0
    memory_gb: float = 0.0
    min_nodes: int = 0
    max_nodes: int = 0
    price_per_hour: float = 0.0  # of a node, until the first of prices
    prices: Sequence[Price] = ()  # in order of their moments
    up_cooldown_seconds: float = 0.0  # least time between two changes upwards; the host sees to it
    down_cooldown_seconds: float = 0.0  # least time from any change to one downwards
    provisioning_seconds: float = 0.0  # how long a node takes to come as a rule; 0 when nobody knows
    spot: bool = False  # nodes may be taken away
    device_memory_gb: float = 0.0  # of each device; 0 when unknown

    def price_at(self, seconds: float) -> float:
        """What a node costs by the hour at a moment."""
        price = self.price_per_hour
        for later in self.prices:
            if later.from_seconds <= seconds:
                price = later.per_hour
        return price


class Cluster:
    """The machines and the accelerator types they carry."""

    __slots__ = ("accelerators", "counts_resources", "max_owners", "may_grow", "nodes", "oversubscribes_memory", "pools", "sharing")

    accelerators: Sequence[str]
    nodes: list[Node]
    may_grow: bool  # nodes may still join
    pools: Sequence[Pool]  # nodes that come and go
    sharing: Sharing  # who may be on a device together
    max_owners: int  # how many jobs may be on a device, where they take turns
    oversubscribes_memory: bool  # jobs that take turns need not be in the memory of the device together
    counts_resources: bool  # no node gives more CPUs and memory than it has

    def __init__(
        self, accelerators: Sequence[str] = (), nodes: Iterable[Node] = (), *, may_grow: bool = False, pools: Iterable[Pool] = (),
        sharing: Sharing = Sharing.EXCLUSIVE, max_owners: int = 0, oversubscribes_memory: bool = False, counts_resources: bool = False,
    ) -> None:
        self.accelerators, self.nodes, self.may_grow, self.pools = tuple(accelerators), list(nodes), may_grow, tuple(pools)
        self.sharing, self.max_owners = sharing, max_owners
        self.oversubscribes_memory, self.counts_resources = oversubscribes_memory, counts_resources

    def pool(self, name: str) -> Pool | None:
        """The pool of a name; None for none."""
        return next((pool for pool in self.pools if pool.name == name), None)

    def pool_size(self, name: str) -> int:
        """How many nodes a pool has or gets: ready, down, or being provisioned, and not those that leave."""
        return sum(node.pool == name and node.health not in (Health.GONE, Health.DRAINING) for node in self.nodes)

    def devices(self) -> int:
        """Every device, whatever the health of its node, unless that is gone."""
        return sum(node.devices for node in self.nodes if node.health is not Health.GONE)

    def usable_devices(self) -> int:
        """The usable devices of ready nodes."""
        return sum(count_devices(node.usable()) for node in self.nodes)

    def largest_node(self) -> int:
        """The greatest number of devices on one node."""
        return max((node.devices for node in self.nodes if node.health is not Health.GONE), default=0)


class Ledger:
    """Keeps the free devices of every node while a policy seats jobs on whole ones."""

    __slots__ = ("_free", "total")

    total: int  # free devices in the cluster

    def __init__(self, cluster: Cluster) -> None:
        """Every usable device is free."""
        self._free = [node.usable() for node in cluster.nodes]
        self.total = sum(count_devices(devices) for devices in self._free)

    def free(self, node: int) -> int:
        """The number of free devices on a node."""
        return count_devices(self._free[node])

    def free_devices(self, node: int) -> int:
        """The set of free devices on a node."""
        return self._free[node]

    def occupy(self, seats: Sequence[Seat]) -> bool:
        """Takes exactly these devices. False, and nothing is taken, if one of them is not free or does not exist."""
        free = self._free
        for i, (node, devices) in enumerate(seats):
            if not 0 <= node < len(free) or free[node] & devices != devices:
                self.release(seats[:i])
                return False
            free[node] &= ~devices
            self.total -= count_devices(devices)
        return True

    def release(self, seats: Iterable[Seat]) -> None:
        """Gives devices back."""
        for node, devices in seats:
            self.total += count_devices(devices & ~self._free[node])
            self._free[node] |= devices

    def take(self, node: int, count: int) -> Seat:
        """Seats up to count replicas on the lowest free devices of a node."""
        taken = lowest_devices(self._free[node], count)
        self._free[node] &= ~taken
        self.total -= count_devices(taken)
        return Seat(node, taken)
