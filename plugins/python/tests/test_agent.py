"""The agent against a scheduler made of a plain socket."""

import json
import os
import socket
import tempfile
import time

import pytest

from quartet_agent import Agent, Environment, Told, Tuning

PATIENCE = 10


@pytest.fixture
def path():
    with tempfile.TemporaryDirectory() as folder:  # pytest's may be too long a path for a socket
        yield os.path.join(folder, "agent.sock")


class Scheduler:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen()
        self.socket.settimeout(PATIENCE)

    def accept(self):
        connection, _ = self.socket.accept()
        connection.settimeout(PATIENCE)
        return connection, connection.makefile("r")


def started(path):
    return Agent(Environment(job="train", rank=0, agent=path))


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


def test_conversation(path):
    scheduler = Scheduler(path)
    agent = started(path)
    connection, lines = scheduler.accept()
    assert until(lines, "hello") == {"protocol": 1, "job": "train", "rank": 0}
    agent.report(batch_per_device=32, step_seconds=0.5, progress=7)
    assert until(lines, "report") == {
        "replicas": 1, "nodes": 1, "batch_per_device": 32, "pass_seconds": 0.0, "step_seconds": 0.5, "gradient_square": 0.0,
        "gradient_variance": 0.0, "progress": 7.0,
    }
    connection.sendall(b'{"tuning": {"batch_per_device": 16, "colour": "red"}, "song": {}}\n{"checkpoint": {}}\n')
    connection.sendall(b'{"stop": {"grace_seconds": 3}}\n')
    seen = []
    told(agent, lambda t: seen.append(t) or t.stop)
    assert [t.tuning for t in seen if t.tuning] == [Tuning(batch_per_device=16)]
    assert any(t.checkpoint for t in seen) and seen[-1].grace_seconds == 3
    agent.checkpointed(8)
    agent.done()
    agent.close()
    rest = [json.loads(line) for line in lines]
    assert any(line.get("checkpointed") == {"progress": 8.0} for line in rest) and rest[-1].get("done") == {}
    connection.close()


def test_scheduler_restarts(path):
    first = Scheduler(path)
    agent = started(path)
    connection, lines = first.accept()
    agent.checkpointed(3)
    until(lines, "checkpointed")
    first.socket.close()
    os.remove(path)
    second = Scheduler(path)
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
    (b"x" * 70_000, "longer than 65536 bytes"),
])
def test_garbage(path, answer, want):
    scheduler = Scheduler(path)
    agent = started(path)
    connection, _ = scheduler.accept()
    connection.sendall(answer)
    deadline = time.monotonic() + PATIENCE
    while not (agent.error and want in agent.error) and time.monotonic() < deadline:
        time.sleep(0.002)
    assert want in agent.error
    connection.close()
    agent.close()


def test_without_scheduler():
    agent = Agent(Environment())
    agent.report(progress=1)
    agent.done()
    assert agent.poll() == Told()
    agent.close()


def test_scheduler_that_never_comes(path):
    agent = started(path)
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
