"""What a scheduler does for the trainings of tests: starts replicas, listens to them, and tells them things."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE = 240  # seconds; a busy machine takes long to import torch
HERE = os.path.dirname(os.path.abspath(__file__))


class Scheduler:
    """A socket of the agent protocol. Everything that was said is kept, with the rank that said it."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "agent.sock")
        self.said = []
        self.connections = {}  # by rank of the hello, the latest
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._listen, args=(connection,), daemon=True).start()

    def _listen(self, connection):
        rank = None
        with connection, connection.makefile("r") as lines:
            try:
                for line in lines:
                    told = json.loads(line)
                    if "hello" in told:
                        rank = told["hello"]["rank"]
                        self.connections[rank] = connection
                    self.said.extend((rank, kind, content) for kind, content in told.items())
            except OSError:
                pass

    def tell(self, rank, **message):
        until(lambda: rank in self.connections, f"replica {rank} to connect")
        self.connections[rank].sendall(json.dumps(message).encode() + b"\n")

    def heard(self, kind):
        return [content for _, k, content in self.said if k == kind]

    def close(self):
        self._listener.close()
        self.folder.cleanup()


class Run:
    """Replicas of one run of a job."""

    def __init__(self, replicas, *arguments, scheduler=None, checkpoint="", first=0, of=None, rendezvous=None, program=None, extra=None):
        self.meeting = tempfile.TemporaryDirectory()
        self.rendezvous = rendezvous or self.meeting.name
        self.processes = []
        for rank in range(first, first + replicas):
            environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
            environment.update({
                "QUARTET_JOB": "train", "QUARTET_RANK": str(rank), "QUARTET_REPLICAS": str(of or replicas),
                "QUARTET_RENDEZVOUS": self.rendezvous, "QUARTET_CHECKPOINT": checkpoint, "OMP_NUM_THREADS": "1",
                "PYTHONPATH": os.path.dirname(HERE), **(extra or {}),
            })
            if scheduler is not None:
                environment["QUARTET_AGENT"] = scheduler.path
            command = [sys.executable, program or os.path.join(HERE, "torch_training.py"), *map(str, arguments)]
            self.processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        self.lines = [[] for _ in self.processes]
        self.errors = [[] for _ in self.processes]
        self._threads = []
        for process, lines, errors in zip(self.processes, self.lines, self.errors):
            for stream, into in ((process.stdout, lines), (process.stderr, errors)):
                thread = threading.Thread(target=self._read, args=(stream, into), daemon=True)
                thread.start()
                self._threads.append(thread)

    @staticmethod
    def _read(stream, into):
        for line in stream:
            if line.startswith("{"):
                line = json.loads(line)
            into.append(line)

    def wait(self, patience=0):
        """The exit codes of all replicas. Those that take longer than an own patience are killed, without being a problem."""
        deadline = time.monotonic() + (patience or PATIENCE)
        codes = []
        try:
            for p in self.processes:
                try:
                    codes.append(p.wait(max(deadline - time.monotonic(), 0.1)))
                except subprocess.TimeoutExpired:
                    if not patience:
                        raise
                    p.kill()
                    codes.append(p.wait())
        finally:
            self.kill()
        for thread in self._threads:
            thread.join(5)
        return codes

    def kill(self):
        for p in self.processes:
            if p.poll() is None:
                p.kill()
                p.wait()

    def problems(self):
        return "\n".join("".join(map(str, e)) for e in self.errors)

    def all(self, key):
        return [line for lines in self.lines for line in lines if isinstance(line, dict) and key in line]


def until(ask, what):
    deadline = time.monotonic() + PATIENCE
    while not (answer := ask()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(0.01)
    return answer
