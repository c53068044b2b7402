"""Who the replicas are, and the process group that they form: at the start, and again when replicas join or leave."""

from __future__ import annotations

import datetime
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable, Optional

import torch
import torch.distributed as dist

from quartet_agent import Agent, Environment, Tuning, World

_POLL_SECONDS = 0.005
_STORE_SECONDS = 30.0  # for an answer of a store that is there
_PORT = 29500  # where MASTER_PORT says nothing
_PORTS = 1000  # a new world takes the next port, for the last one may not be free yet


class Stopped(Exception):
    """The job is to end while it waits for others."""


class Orders:
    """What the scheduler, or a signal, wants of this process and is not done yet."""

    def __init__(self, agent: Optional[Agent]) -> None:
        self._agent = agent
        self.tuning: Optional[Tuning] = None
        self.world: Optional[World] = None
        self.checkpoint = False
        self.stop = False
        self.terminated = False

    def poll(self) -> None:
        """Takes in what was received since the last call."""
        if self._agent is None:
            return
        told = self._agent.poll()
        self.tuning = told.tuning or self.tuning
        self.checkpoint = self.checkpoint or told.checkpoint
        self.stop = self.stop or told.stop
        if told.world and (self.world is None or told.world.generation > self.world.generation):
            self.world = told.world

    def heed_signals(self) -> Callable[[], None]:
        """Takes SIGTERM for an order to stop, if nobody else handles it. Returns what undoes that."""
        if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
            return lambda: None

        def terminate(number: int, frame: Any) -> None:
            self.terminated = True

        def undo() -> None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

        signal.signal(signal.SIGTERM, terminate)
        return undo


@dataclass(frozen=True)
class Member:
    """This replica among all."""

    rank: int = 0
    replicas: int = 1
    local_rank: int = 0
    nodes: int = 1
    generation: int = 0
    address: str = ""  # host where all find each other, as far as a scheduler said one
    torchrun: bool = False  # somebody else started the replicas, and says where they meet

    @classmethod
    def first(cls, environment: Environment, variables: Mapping[str, str] = os.environ) -> Member:
        """Who this is at the start: as torchrun says, or as Quartet does, or one replica that is alone."""
        if "RANK" in variables and "WORLD_SIZE" in variables:
            replicas, local = int(variables["WORLD_SIZE"]), max(int(variables.get("LOCAL_WORLD_SIZE", 1)), 1)
            return cls(int(variables["RANK"]), replicas, int(variables.get("LOCAL_RANK", 0)), max(replicas // local, 1),
                       torchrun=True)
        return cls(environment.rank, environment.replicas, 0, environment.nodes, address=variables.get("MASTER_ADDR", ""))

    def told(self, world: World) -> Member:
        """The member that this is in a world that it received."""
        return Member(world.rank + self.local_rank, world.replicas, self.local_rank, world.nodes, world.generation, world.address)


class Group:
    """The process group of the replicas that are there, which is torch's default one."""

    def __init__(self, backend: str, environment: Environment, orders: Orders, member: Member, join_seconds: float) -> None:
        self.member = member
        self._backend, self._environment, self._orders, self._limit = backend, environment, orders, join_seconds
        self._ours: set[str] = set()  # variables that nobody set before
        self._first_port = int(os.environ.get("MASTER_PORT", _PORT))
        cuda = backend == "nccl" or torch.cuda.is_available() and "nccl" in backend
        self.device = torch.device("cuda", member.local_rank) if cuda else torch.device("cpu")
        if cuda:
            torch.cuda.set_device(self.device)

    def form(self, worlds: bool) -> None:
        """Meets the others. With worlds it may receive another world on the way, and meets that one. RuntimeError when they do not
        come in time, Stopped when the job is to end first."""
        if self.member.torchrun:
            dist.init_process_group(self._backend, init_method="env://")
            return
        deadline = time.monotonic() + self._limit
        while True:
            store = self._meet(worlds, deadline)
            if store is not None:
                break
        dist.init_process_group(self._backend, store=dist.PrefixStore("quartet/group", store), rank=self.member.rank,
                                world_size=self.member.replicas, timeout=datetime.timedelta(minutes=30))
        # The store must outlive those that still read it, and whoever leaves does not wait for them.
        self._store = store

    def leave(self) -> None:
        """Ends the group; nobody waits for anybody."""
        if dist.is_initialized():
            dist.destroy_process_group()
        for name in self._ours:
            os.environ.pop(name, None)
        self._ours.clear()

    def _meet(self, worlds: bool, deadline: float) -> Optional[Any]:
        """The store in which all replicas are; None when the replicas are others by now."""
        member = self.member
        place = self._host() if self._hosts() else None
        while place is None:
            if self._overtaken(worlds, deadline, "the first replica does not say where it is"):
                return None
            place = self._guest()
        store, host, port = place
        came = store.add("quartet/joined", 1)
        theirs = int(store.get("quartet/replicas"))
        if theirs != member.replicas or came > member.replicas:  # it is another world's; this one joins later
            while not self._overtaken(worlds, deadline, f"{theirs} replicas are there without this one"):
                pass
            return None
        while store.add("quartet/joined", 0) < member.replicas:
            if self._overtaken(worlds, deadline, "not all replicas came"):
                return None
        self._tell_torch(host, port)
        return store

    def _overtaken(self, worlds: bool, deadline: float, why: str) -> bool:
        """Waits a little; true when the replica receives another world."""
        self._orders.poll()
        if self._orders.terminated or self._orders.stop:
            raise Stopped
        world = self._orders.world
        if worlds and world is not None and world.generation > self.member.generation:
            self.member = self.member.told(world)
            return True
        if time.monotonic() > deadline:
            raise RuntimeError(f"replica {self.member.rank} of {self.member.replicas} waited {self._limit:g} s: {why}")
        time.sleep(_POLL_SECONDS)
        return False

    def _hosts(self) -> bool:
        """Whether the others find each other at this replica."""
        address = self.member.address
        if self._environment.rendezvous or address in ("", "localhost", "127.0.0.1", "::1"):
            return self.member.rank == 0
        return self.member.local_rank == 0 and socket.gethostname().split(".")[0] == address.split(".")[0]

    def _file(self) -> str:
        return os.path.join(self._environment.rendezvous, f"store-{self.member.generation}.json")

    def _port(self) -> int:
        return self._first_port + self.member.generation % _PORTS

    def _host(self) -> Any:
        member, folder = self.member, self._environment.rendezvous
        alone = folder or member.replicas == 1
        host = _own_address() if member.nodes > 1 and folder else "127.0.0.1" if alone else member.address or "127.0.0.1"
        store = dist.TCPStore(host, 0 if alone else self._port(), is_master=True, wait_for_workers=False,
                              timeout=datetime.timedelta(seconds=max(self._limit, _STORE_SECONDS)))
        store.set("quartet/replicas", str(member.replicas))
        if folder:
            path = self._file()
            with open(path + ".new", "w") as file:
                json.dump({"host": host, "port": store.port}, file)
            os.replace(path + ".new", path)
        return store, host, store.port

    def _guest(self) -> Optional[Any]:
        if self._environment.rendezvous:
            try:
                with open(self._file()) as file:
                    told = json.load(file)
            except FileNotFoundError:
                return None
            host, port = str(told["host"]), int(told["port"])
        else:
            host, port = self.member.address or "127.0.0.1", self._port()
            try:
                socket.create_connection((host, port), 1).close()
            except OSError:
                return None
        store = dist.TCPStore(host, port, is_master=False, wait_for_workers=False,
                              timeout=datetime.timedelta(seconds=max(self._limit, _STORE_SECONDS)))
        return store, host, port

    def _tell_torch(self, host: str, port: int) -> None:
        """Sets the variables of torchrun that nobody else set."""
        member = self.member
        for name, value in (("RANK", member.rank), ("WORLD_SIZE", member.replicas), ("LOCAL_RANK", member.local_rank),
                            ("LOCAL_WORLD_SIZE", 1), ("MASTER_ADDR", host), ("MASTER_PORT", port)):
            if name in self._ours or name not in os.environ:
                self._ours.add(name)
                os.environ[name] = str(value)


def _own_address() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
