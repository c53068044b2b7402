"""The agent against a scheduler made of a plain socket, or of TLS."""

import json
import os
import socket
import ssl
import struct
import tempfile
import time

import pytest

from quartet_agent import Agent, Environment, Received, Tuning, World
from quartet_plugin import _tls

PATIENCE = 10


@pytest.fixture(params=["unix", "tls"])
def place(request):
    with tempfile.TemporaryDirectory() as folder:  # pytest's may be too long a path for a socket
        yield (Unix if request.param == "unix" else Tls)(folder)


class Unix:
    """Where a scheduler is found, one after the other."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "agent.sock")
        self.hello = {"protocol": 1, "job": "train", "rank": 0}

    def listen(self):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        return listener

    def leave(self, listener):
        listener.close()
        os.remove(self.path)

    def secure(self, connection):
        return connection

    def started(self, worlds=False):
        return Agent(Environment(job="train", rank=0, agent=self.path), worlds)


class Tls:
    def __init__(self, folder):
        certificate, keys = _tls.new_certificate(), os.path.join(folder, "keys.pem")
        with open(keys, "wb") as file:
            file.write(certificate.pem + certificate.key_pem)
        self.ca = certificate.pem.decode()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(keys)
        self.token = os.path.join(folder, "token")
        self.write("one")
        self.hello = {"protocol": 1, "job": "train", "rank": 0, "token": "one"}
        with socket.socket() as probe:
            probe.bind(("localhost", 0))
            self.port = probe.getsockname()[1]

    def write(self, token):
        with open(self.token, "w") as file:
            file.write(token + "\n")

    def listen(self):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("localhost", self.port))
        return listener

    def leave(self, listener):
        listener.close()

    def secure(self, connection):
        return self.context.wrap_socket(connection, server_side=True, suppress_ragged_eofs=True)

    def environment(self, **changes):
        fields = {"job": "train", "agent": f"tls://localhost:{self.port}", "agent_ca": self.ca, "agent_token": self.token}
        return Environment(**{**fields, **changes})

    def started(self, worlds=False):
        return Agent(self.environment(), worlds)


class Scheduler:
    def __init__(self, place):
        self.place, self.socket = place, place.listen()
        self.socket.listen()
        self.socket.settimeout(PATIENCE)

    def accept(self):
        connection, _ = self.socket.accept()
        connection.settimeout(PATIENCE)
        connection = self.place.secure(connection)
        return connection, connection.makefile("r")


def told(agent, want):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if want(got := agent.poll()):
            return got
        time.sleep(0.002)
    raise AssertionError("the job was told nothing")


def until(lines, kind):
    while True:
        line = json.loads(lines.readline())
        if kind in line:
            return line[kind]


def test_conversation(place):
    scheduler = Scheduler(place)
    agent = place.started()
    connection, lines = scheduler.accept()
    assert until(lines, "hello") == place.hello
    agent.report(batch_per_device=32, step_seconds=0.5, progress=7)
    assert until(lines, "report") == {
        "replicas": 1, "nodes": 1, "batch_per_device": 32, "pass_seconds": 0.0, "step_seconds": 0.5, "gradient_square": 0.0,
        "gradient_variance": 0.0, "progress": 7.0,
    }
    connection.sendall(b'{"tuning": {"batch_per_device": 16, "colour": "red"}, "song": {}}\n{"checkpoint": {}}\n')
    world = {"generation": 4, "rank": 1, "replicas": 3, "nodes": 2, "address": "train-0.train"}
    connection.sendall(json.dumps({"world": {**world, "song": 1}}).encode() + b"\n")
    connection.sendall(b'{"stop": {"grace_seconds": 3}}\n')
    seen = []
    told(agent, lambda t: seen.append(t) or t.stop)
    assert [t.tuning for t in seen if t.tuning] == [Tuning(batch_per_device=16)]
    assert [t.world for t in seen if t.world] == [World(**world)]
    assert any(t.checkpoint for t in seen) and seen[-1].grace_seconds == 3
    agent.checkpointed(8)
    agent.done()
    agent.close()
    rest = [json.loads(line) for line in lines]
    assert any(line.get("checkpointed") == {"progress": 8.0} for line in rest) and rest[-1].get("done") == {}
    connection.close()


def test_metrics(place):
    scheduler = Scheduler(place)
    agent = place.started()
    connection, lines = scheduler.accept()
    agent.metric("loss", -0.5, 12)
    assert until(lines, "metrics") == [{"name": "loss", "step": 12.0, "value": -0.5}]
    for step in range(300):
        agent.metric("accuracy", step, step)
    heard = []
    while not heard or heard[-1]["step"] < 299:
        heard += until(lines, "metrics")
    steps = [m["step"] for m in heard]
    assert steps == sorted(set(steps)) and {m["name"] for m in heard} == {"accuracy"}
    for name, value, step, wrong in (
        ("loss", None, 0, "value of 'loss' is missing"), ("loss", 1, float("nan"), "step of 'loss' is nan"), ("", 1, 0, "name '' must have from 1 to 128 bytes"),
        ("a\nb", 1, 0, "no control characters"), ("x" * 129, 1, 0, "from 1 to 128 bytes"), ("loss", 1, -1, "step of 'loss' is -1"),
    ):
        with pytest.raises(ValueError, match=wrong):
            agent.metric(name, value, step)
    for value in (float("nan"), float("inf"), -float("inf"), 1e31):
        agent.metric("diverged", value, 1)
        assert until(lines, "metrics") == [{"name": "diverged", "step": 1.0, "value": None}]
    lines.close()
    connection.close()
    connection, lines = scheduler.accept()
    again = until(lines, "metrics")  # the last of each metric, and the latest of the rest
    assert again == [{"name": "loss", "step": 12.0, "value": -0.5}] + [
        {"name": "accuracy", "step": float(n), "value": float(n)} for n in range(174, 300)] + [{"name": "diverged", "step": 1.0, "value": None}]
    agent.close()
    connection.close()


@pytest.mark.parametrize("worlds", [False, True])
def test_takes_worlds(place, worlds):
    scheduler = Scheduler(place)
    agent = place.started(worlds)
    connection, lines = scheduler.accept()
    assert until(lines, "hello").get("worlds", False) == worlds
    connection.close()
    agent.close()


def test_scheduler_restarts(place):
    first = Scheduler(place)
    agent = place.started()
    connection, lines = first.accept()
    agent.checkpointed(3)
    until(lines, "checkpointed")
    place.leave(first.socket)
    second = Scheduler(place)
    lines.close()
    connection.close()
    connection, lines = second.accept()
    line = json.loads(lines.readline())
    assert line["hello"]["job"] == "train" and line["checkpointed"] == {"progress": 3.0}
    assert agent.error
    agent.close()
    connection.close()


@pytest.mark.parametrize("answer, want", [
    (b'{"refused": {"message": "job is not expected"}}\n', "the scheduler refused: job is not expected"),
    (b"HTTP/1.1 400\n", "read line: "),
    (b"[]\n", "read line: "),
    (b'{"tuning": {"batch_per_device": "many"}}\n', "read line: invalid literal"),
    (b'{"world": {"rank": 2, "replicas": 2, "nodes": 1}}\n', "makes no sense"),
    (b'{"world": 3}\n', "read line: "),
    (b"x" * 70_000, "longer than 65536 bytes"),
])
def test_garbage(place, answer, want):
    scheduler = Scheduler(place)
    agent = place.started()
    connection, _ = scheduler.accept()
    connection.sendall(answer)
    deadline = time.monotonic() + PATIENCE
    while not (agent.error and want in agent.error) and time.monotonic() < deadline:
        time.sleep(0.002)
    assert want in agent.error
    place.leave(scheduler.socket)
    connection.close()
    agent.close()


def test_without_scheduler():
    agent = Agent(Environment())
    agent.report(progress=1)
    agent.done()
    assert agent.poll() == Received()
    agent.close()


def test_scheduler_that_never_comes(place):
    agent = place.started()
    agent.done()
    agent.close()
    assert agent.error


def test_reports_that_make_no_sense():
    agent = Agent(Environment())
    with pytest.raises(ValueError, match="report: step_seconds is -1.0.*\nreport: progress is nan"):
        agent.report(step_seconds=-1, progress=float("nan"))


def test_environment():
    set_ = {"QUARTET_JOB": "a", "QUARTET_RANK": "1", "QUARTET_REPLICAS": "2", "QUARTET_RENDEZVOUS": "/r", "QUARTET_AGENT": "/s"}
    assert Environment.read(set_) == Environment(job="a", rank=1, replicas=2, rendezvous="/r", agent="/s")
    assert Environment.read({}) == Environment()
    with pytest.raises(ValueError, match="QUARTET_RANK: '2' is not.*0 to 1\nQUARTET_RENDEZVOUS: is not set"):
        Environment.read({"QUARTET_RANK": "2", "QUARTET_REPLICAS": "2"})


@pytest.fixture
def tls():
    with tempfile.TemporaryDirectory() as folder:
        yield Tls(folder)


def fails_with(agent, want):
    deadline = time.monotonic() + PATIENCE
    while not (agent.error and want in agent.error) and time.monotonic() < deadline:
        time.sleep(0.002)
    assert want in (agent.error or "")


def test_token_is_read_anew(tls):
    scheduler = Scheduler(tls)
    agent = tls.started()
    connection, lines = scheduler.accept()
    assert until(lines, "hello")["token"] == "one"
    os.remove(tls.token)
    lines.close()
    connection.close()
    fails_with(agent, "No such file")
    tls.write("two")
    connection, lines = scheduler.accept()
    assert until(lines, "hello")["token"] == "two"
    connection.close()
    agent.close()


@pytest.mark.parametrize("change, want", [
    ({"agent_ca": "/etc/ca.pem"}, "holds no certificate in PEM"),
    ({"agent_token": "/nowhere/token"}, "No such file"),
    ({"agent": "tcp://localhost:1"}, "there is no scheme 'tcp', only tls"),
])
def test_environment_that_makes_no_sense(tls, change, want):
    Scheduler(tls)
    agent = Agent(tls.environment(**change))
    fails_with(agent, want)
    agent.close()


def test_server_that_is_not_trusted(tls):
    scheduler = Scheduler(tls)
    agent = Agent(tls.environment(agent_ca=_tls.new_certificate().pem.decode()))
    with pytest.raises(ssl.SSLError):
        scheduler.accept()
    fails_with(agent, "certificate verify failed")
    agent.close()


def test_last_words_arrive(tls):
    """Also when the agent hangs up at once, with something in its ear that it does not read any more."""
    scheduler = Scheduler(tls)
    for _ in range(20):
        agent = tls.started()
        connection, lines = scheduler.accept()
        until(lines, "hello")
        for _ in range(50):
            connection.sendall(b'{"checkpoint": {}}\n')
        agent.done()
        with agent._lock:
            agent._closing = True
        agent._nudge()
        assert until(lines, "done") == {}
        assert lines.readline() == ""
        lines.close()
        connection.close()
        agent.close()


def test_half_a_record_holds_up_no_report(tls):
    """A part of a message of TLS can be read, and nothing in it yet: what there is to say is said meanwhile."""
    scheduler = Scheduler(tls)
    agent = tls.started()
    connection, lines = scheduler.accept()
    until(lines, "hello")
    raw = socket.socket(fileno=os.dup(connection.fileno()))
    raw.sendall(struct.pack("!BHH", 23, 0x0303, 100))  # the head of a record of 100 bytes
    agent.report(progress=3)
    assert until(lines, "report")["progress"] == 3.0
    raw.close()
    connection.close()
    agent.close()


def test_environment_of_another_machine(tls):
    set_ = {"QUARTET_JOB": "a", "QUARTET_RANK": "1", "QUARTET_REPLICAS": "2", "QUARTET_AGENT": "tls://[::1]:9443",
            "QUARTET_AGENT_CA": tls.ca, "QUARTET_AGENT_TOKEN": tls.token}
    want = Environment(job="a", rank=1, replicas=2, agent="tls://[::1]:9443", agent_ca=tls.ca, agent_token=tls.token)
    assert Environment.read(set_) == want
    with pytest.raises(ValueError, match="QUARTET_AGENT: 'tls://host' is not tls://HOST:PORT\nQUARTET_AGENT_CA: is not set.*\n"
                                         "QUARTET_AGENT_TOKEN: is not set, but QUARTET_AGENT is an address"):
        Environment.read({"QUARTET_JOB": "a", "QUARTET_AGENT": "tls://host"})
    for port in ("0", "65536", "x"):
        with pytest.raises(ValueError, match="is not tls://HOST:PORT"):
            Environment.read({**set_, "QUARTET_AGENT": "tls://host:" + port})
    tls.write("two words")
    with pytest.raises(ValueError, match="QUARTET_AGENT_TOKEN: read token: .* holds something else than a token"):
        Environment.read(set_)
