"""What a training job and its scheduler exchange while it runs: docs/agent.md of Quartet, in Python.

    agent = Agent()
    for step in range(start, steps):
        ...
        agent.report(replicas=4, batch_per_device=32, step_seconds=0.2, progress=step)
        received = agent.poll()
        if received.tuning:
            batch = received.tuning.batch_per_device
        if received.stop:
            save(step)
            agent.checkpointed(step)
            agent.close()
            sys.exit(STOPPED)
    agent.done()
    agent.close()

After received.world the replicas form anew with those that are there now. Without a scheduler it does nothing. Nothing but
close waits: of what could not be said yet the latest of each kind is kept, and what was last said is repeated when the
scheduler restarts.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import select
import socket
import ssl
import threading
import time
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

__all__ = ["STOPPED", "Agent", "Environment", "Received", "Tuning", "World"]

PROTOCOL = 1
MAX_LINE = 64 << 10  # bytes, the end included
STOPPED = 75  # exit code of a job that can go on later

MAX_TOKEN = 16 << 10  # bytes
MAX_METRIC = 128  # bytes of a name

_MOST_METRICS, _MOST_AMOUNT = 128, 1e30
_LAST_WORDS = ".quartet-last-words"  # file in the rendezvous folder
_FIRST_WAIT, _LONG_WAIT, _FLUSH_LIMIT = 0.05, 5.0, 1.0  # seconds
_DIAL_LIMIT, _PROBE_AFTER, _PROBES = 10.0, 5, 3  # seconds, for a scheduler on another machine


@dataclass(frozen=True)
class Environment:
    """What a replica finds in its environment when it starts. The defaults are those of a job that runs alone."""

    job: str = ""
    rank: int = 0
    replicas: int = 1
    nodes: int = 1
    rendezvous: str = ""
    checkpoint: str = ""
    agent: str = ""  # path of a socket, or tls://HOST:PORT
    agent_ca: str = ""  # PEM text; with TLS only
    agent_token: str = ""  # file; with TLS only

    @classmethod
    def read(cls, variables: Mapping[str, str] = os.environ) -> Environment:
        """Reads the variables; a ValueError names all that are wrong."""
        problems = []

        def number(name: str, absent: int, least: int, most: float) -> int:
            text = variables.get("QUARTET_" + name, "")
            if not text:
                return absent
            if text.isascii() and text.isdigit() and least <= int(text) <= most:
                return int(text)
            problems.append(f"QUARTET_{name}: {text!r} is not a whole number from {least} to {most}")
            return absent

        texts = {name: variables.get("QUARTET_" + name.upper(), "") for name in
                 ("job", "rendezvous", "checkpoint", "agent", "agent_ca", "agent_token")}
        replicas = number("REPLICAS", 1, 1, 1_000_000)
        rank, nodes = number("RANK", 0, 0, replicas - 1), number("NODES", 1, 1, replicas)
        remote = _is_address(texts["agent"])
        if replicas > 1 and not texts["rendezvous"] and not remote:  # those on several machines find each other by address
            problems.append(f"QUARTET_RENDEZVOUS: is not set, but there are {replicas} replicas")
        if texts["agent"] and not texts["job"]:
            problems.append("QUARTET_JOB: is not set, but QUARTET_AGENT is")
        if remote:
            for name, check in (("agent", _address), ("agent_ca", _context), ("agent_token", _token)):
                try:
                    if not texts[name]:
                        raise ValueError("is not set, but QUARTET_AGENT is an address")
                    check(texts[name])
                except (OSError, ValueError) as wrong:
                    problems.append(f"QUARTET_{name.upper()}: {wrong}")
        if problems:
            raise ValueError("\n".join(problems))
        return cls(rank=rank, replicas=replicas, nodes=nodes, **texts)


@dataclass(frozen=True)
class Tuning:
    """The batch setting to go on with. What is 0 or empty is left to the job."""

    batch_per_device: int = 0
    accumulation_steps: int = 0
    learning_rate_factor: float = 0.0
    batch_by_replica: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class World:
    """Who the replicas are after some joined or left while the job runs. Those that stay form anew at the end of a step."""

    generation: int = 0  # of a run: the larger one holds
    rank: int = 0  # of the first replica of this process or pod
    replicas: int = 1
    nodes: int = 1
    address: str = ""  # host where all find each other


@dataclass(frozen=True)
class Received:
    """What the job received since it last asked."""

    tuning: Optional[Tuning] = None
    checkpoint: bool = False
    stop: bool = False
    grace_seconds: float = 0.0
    world: Optional[World] = None


class Agent:
    """The job's side. It may be used from any thread. With worlds the job takes another world while it runs."""

    def __init__(self, environment: Optional[Environment] = None, worlds: bool = False) -> None:
        self.environment = environment or Environment.read()
        self._worlds = worlds
        self.error: Optional[str] = None  # what last went wrong with the connection
        self._lock = threading.Lock()
        self._say: dict[str, Any] = {}  # the latest of each kind, but of metrics a list
        self._said: dict[str, Any] = {}
        self._received = Received()
        self._closing = False
        self._thread: Optional[threading.Thread] = None
        if self.environment.agent:
            self._waker, self._wake = socket.socketpair()
            self._waker.setblocking(False)
            self._thread = threading.Thread(target=self._run, name="quartet-agent", daemon=True)
            self._thread.start()

    def report(self, *, replicas: int = 0, nodes: int = 0, batch_per_device: int = 0, pass_seconds: float = 0.0,
               step_seconds: float = 0.0, gradient_square: float = 0.0, gradient_variance: float = 0.0,
               progress: float = 0.0) -> None:
        """Says how the job does. What is not known is left out."""
        counts = {"replicas": replicas or self.environment.replicas, "nodes": nodes or self.environment.nodes,
                  "batch_per_device": batch_per_device}
        amounts = {"pass_seconds": pass_seconds, "step_seconds": step_seconds, "gradient_square": gradient_square,
                   "gradient_variance": gradient_variance, "progress": progress}
        self._put("report", {**{k: int(v) for k, v in counts.items()}, **{k: float(v) for k, v in amounts.items()}})

    def metric(self, name: str, value: float, step: float = 0.0) -> None:
        """Says what a metric has become, such as the loss, as of a step of the training. A value that is not finite says that the training
        diverged, which is worse than any number. Values are said in their order; of more than 128 that could not be said yet, the oldest
        are dropped."""
        problems = []
        if not 1 <= len(name.encode()) <= MAX_METRIC or any(unicodedata.category(c) == "Cc" for c in name):
            problems.append(f"metric: name {name!r} must have from 1 to {MAX_METRIC} bytes, and no control characters")
        if not (math.isfinite(step) and 0 <= step <= _MOST_AMOUNT):
            problems.append(f"metric: step of {name!r} is {step}, must be a number from 0 to {_MOST_AMOUNT}")
        if value is None:
            problems.append(f"metric: value of {name!r} is missing, must be a number")
        if problems:
            raise ValueError("\n".join(problems))
        if self._thread:
            with self._lock:
                metrics = self._say.get("metrics", [])
                self._say["metrics"] = [*metrics, {"name": name, "step": float(step), "value": _measured(float(value))}][-_MOST_METRICS:]
            self._nudge()

    def checkpointed(self, progress: float) -> None:
        """Says that a checkpoint is complete."""
        self._put("checkpointed", {"progress": float(progress)})

    def done(self) -> None:
        """Says that all work is done."""
        self._put("done", {})

    def poll(self) -> Received:
        """What the job received since the last call, the latest of each kind. A training loop asks once a step."""
        with self._lock:
            received, self._received = self._received, Received()
        return received

    def close(self) -> None:
        """Ends the connection once what was said is written, or a second has passed."""
        with self._lock:
            self._closing = True
        if self._thread:
            self._nudge()
            self._thread.join(_FLUSH_LIMIT + 0.5)
            self._waker.close()
            self._leave_words()

    def _leave_words(self) -> None:
        """Leaves what was said last for a scheduler that was not there, or was killed before it had recorded it."""
        if self.environment.rank != 0 or not self.environment.rendezvous:
            return
        with self._lock:
            words = {**self._said, **self._say}
            metrics = _ascending([*self._said.get("metrics", []), *self._say.get("metrics", [])])
        words.pop("hello", None)
        if metrics:
            words["metrics"] = metrics
        path = os.path.join(self.environment.rendezvous, _LAST_WORDS)
        try:
            with open(path + ".new", "w", encoding="utf-8") as file:
                file.write(json.dumps(words) + "\n")
            os.replace(path + ".new", path)
        except OSError as failed:
            self.error = str(failed)

    def _put(self, kind: str, message: dict[str, Any]) -> None:
        wrong = [f"{kind}: {name} is {value}, must be a number from 0" for name, value in message.items()
                 if not (math.isfinite(value) and value >= 0)]
        if wrong:
            raise ValueError("\n".join(wrong))
        if self._thread:
            with self._lock:
                self._say[kind] = message
            self._nudge()

    def _nudge(self) -> None:
        try:
            self._waker.send(b"x")
        except OSError:  # it was nudged often enough, or is gone
            pass

    def _run(self) -> None:
        wait, last = _FIRST_WAIT, False
        while True:
            heard, error = False, None
            try:
                hello = self._hello()
                with self._connect() as connection:
                    heard = self._talk(connection, hello)
                    return
            except _Ended as end:
                heard, error = end.heard, str(end)
            except (OSError, ValueError) as failed:  # no TLS without a certificate and a token that make sense
                error = str(failed)
            self.error = error
            if last:
                return
            wait = _FIRST_WAIT if heard else min(2 * wait, _LONG_WAIT)
            pause = wait
            if _is_address(self.environment.agent):
                pause *= random.uniform(0.5, 1)  # many lose the same scheduler at once
            deadline = time.monotonic() + pause
            while not self._closing and (left := deadline - time.monotonic()) > 0:
                if select.select([self._wake], [], [], left)[0]:
                    self._wake.recv(4096)
            last = self._closing

    def _hello(self) -> dict[str, Any]:
        hello: dict[str, Any] = {"protocol": PROTOCOL, "job": self.environment.job, "rank": self.environment.rank}
        if _is_address(self.environment.agent):
            hello["token"] = _token(self.environment.agent_token)
        if self._worlds:
            hello["worlds"] = True
        return hello

    def _connect(self) -> socket.socket:
        if not _is_address(self.environment.agent):
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.settimeout(_LONG_WAIT)
                connection.connect(self.environment.agent)
            except BaseException:
                connection.close()
                raise
            return connection
        host, port = _address(self.environment.agent)
        context = _context(self.environment.agent_ca)
        connection = socket.create_connection((host, port), _DIAL_LIMIT)
        try:
            _notice(connection)
            return context.wrap_socket(connection, server_hostname=host)
        except BaseException:
            connection.close()
            raise

    def _talk(self, connection: socket.socket, hello: dict[str, Any]) -> bool:
        """Talks until the agent is closed and all is said; _Ended or OSError when the connection ends before."""
        with self._lock:
            metrics = _ascending([*self._said.get("metrics", []), *self._say.get("metrics", [])])
            self._say = {"hello": hello, **self._said, **self._say, **({"metrics": metrics} if metrics else {})}
        read, heard = b"", False
        while True:
            with self._lock:
                line, self._say = self._say, {}
                self._said.update((k, v) for k, v in line.items() if k not in ("hello", "metrics"))
                if "metrics" in line:  # they are repeated to the next scheduler
                    self._said["metrics"] = _ascending([*self._said.get("metrics", []), *line["metrics"]])
                closing = self._closing
            if line:
                connection.settimeout(_FLUSH_LIMIT if closing else None)
                try:
                    connection.sendall(json.dumps(line).encode() + b"\n")
                except BrokenPipeError:  # whoever hung up may have said why
                    pass
                else:
                    continue
            elif closing:
                _end_writing(connection)
                return heard
            ready, _, _ = select.select([connection, self._wake], [], [])
            if self._wake in ready:
                self._wake.recv(4096)
            if connection in ready:
                connection.settimeout(0)  # with TLS there may be something to read, and nothing that was said
                try:
                    chunk = connection.recv(MAX_LINE)
                    while isinstance(connection, ssl.SSLSocket) and connection.pending():
                        chunk += connection.recv(connection.pending())
                except (ssl.SSLWantReadError, BlockingIOError):
                    continue
                if not chunk:
                    raise _Ended("the scheduler ended the connection", heard)
                *lines, read = (read + chunk).split(b"\n")
                for text in lines:
                    self._hear(text, heard)
                    heard = True
                if len(read) >= MAX_LINE:
                    raise _Ended(f"read line: longer than {MAX_LINE} bytes", heard)

    def _hear(self, text: bytes, heard: bool) -> None:
        try:
            line = json.loads(text)
            refused = line.get("refused")
            tuning, stop, world, of_world = line.get("tuning"), line.get("stop"), line.get("world"), None
            new = None
            if tuning is not None:
                new = Tuning(
                    int(tuning.get("batch_per_device", 0)), int(tuning.get("accumulation_steps", 0)),
                    float(tuning.get("learning_rate_factor", 0)), [int(b) for b in tuning.get("batch_by_replica") or ()],
                )
            if world is not None:
                generation, rank, replicas, nodes = (int(world.get(k, 0)) for k in ("generation", "rank", "replicas", "nodes"))
                of_world = World(generation, rank, replicas, nodes, str(world.get("address", "")))
                if not 0 <= of_world.rank < of_world.replicas or not 1 <= of_world.nodes <= of_world.replicas:
                    raise ValueError(f"{of_world} makes no sense")
            grace = float(stop.get("grace_seconds", 0)) if stop is not None else 0.0
            message = str(refused["message"]) if refused else ""
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as wrong:
            raise _Ended(f"read line: {wrong}", heard) from None
        if message:
            raise _Ended(f"the scheduler refused: {message}", heard)
        with self._lock:
            before = self._received
            self._received = Received(
                tuning=new or before.tuning, checkpoint=before.checkpoint or line.get("checkpoint") is not None,
                stop=before.stop or stop is not None, grace_seconds=grace if stop is not None else before.grace_seconds,
                world=of_world or before.world,
            )


def _measured(value: float) -> Optional[float]:
    """The value of a metric; None, which is null in JSON, where it is not finite or larger than anything that is measured."""
    return value if abs(value) <= _MOST_AMOUNT else None


def _ascending(metrics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Values without those that were reported again: of each metric, those of steps that grow up to the last. Of too many, the last of each metric and the latest of the rest."""
    kept: list[dict[str, Any]] = []
    least: dict[str, float] = {}
    room = _MOST_METRICS - len({m["name"] for m in metrics})
    for m in reversed(metrics):
        first = m["name"] not in least
        if first or m["step"] < least[m["name"]] and room > 0:
            room -= not first
            kept.append(m)
        least[m["name"]] = min(m["step"], least.get(m["name"], math.inf))
    return kept[::-1]


class _Ended(Exception):
    def __init__(self, why: str, heard: bool) -> None:
        super().__init__(why)
        self.heard = heard


def _is_address(agent: str) -> bool:
    name, found, _ = agent.partition("://")
    return bool(found) and "/" not in name


def _address(agent: str) -> tuple[str, int]:
    """The host and the port of tls://HOST:PORT."""
    scheme = agent.partition("://")[0]
    if scheme != "tls":
        raise ValueError(f"{agent!r}: there is no scheme {scheme!r}, only tls")
    parts = re.fullmatch(r"tls://(\[[^]/]+\]|[^:/]+):([0-9]{1,5})", agent)
    if not parts or not 0 < int(parts[2]) < 1 << 16:
        raise ValueError(f"{agent!r} is not tls://HOST:PORT")
    return parts[1].strip("[]"), int(parts[2])


def _context(ca: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which checks the name of the server
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_verify_locations(cadata=ca)
    except (ValueError, ssl.SSLError):
        raise ValueError("holds no certificate in PEM") from None
    return context


def _token(path: str) -> str:
    """The token of a file. It is read at each connect: it is written anew before it expires."""
    with open(path, "rb") as file:
        token = file.read(2 * MAX_TOKEN).strip()
    if not 0 < len(token) <= MAX_TOKEN:
        raise ValueError(f"read token: {path!r} has {len(token)} bytes, must have from 1 to {MAX_TOKEN}")
    if not re.fullmatch(rb"[A-Za-z0-9._~+/=-]+", token):  # RFC 6750, section 2.1
        raise ValueError(f"read token: {path!r} holds something else than a token")
    return token.decode()


def _notice(connection: socket.socket) -> None:
    """Lets a connection fail when the machine at its other end is gone. Systems that cannot say so notice it later."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", _PROBE_AFTER), ("TCP_KEEPINTVL", _PROBE_AFTER), ("TCP_KEEPCNT", _PROBES),
                        ("TCP_USER_TIMEOUT", 1000 * _PROBE_AFTER * (1 + _PROBES))):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _end_writing(connection: socket.socket) -> None:
    """Waits until the other side has read everything. To close TCP at once could take from it what it has not read yet."""
    if not isinstance(connection, ssl.SSLSocket):
        return
    deadline = time.monotonic() + _FLUSH_LIMIT
    try:
        connection.shutdown(socket.SHUT_WR)  # from here on it is a plain socket, of which nothing is wanted but its end
        connection.settimeout(_FLUSH_LIMIT)
        while connection.recv(MAX_LINE) and time.monotonic() < deadline:
            pass
    except OSError:  # it is gone
        pass
