"""The life of a plugin process, without a host."""

import base64
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import grpc
import pytest

from quartet_plugin import _convert, _server, _tls
from quartet_plugin._log import ComponentLog, Formatter, logger
from quartet_plugin._process import _COOKIE
from quartet_plugin._server import new_random

HERE = os.path.dirname(os.path.abspath(__file__))
POLICIES = os.path.join(HERE, "policies.py")


def environment(folder, **more):
    keep = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**keep, "PYTHONPATH": os.path.dirname(HERE), "PLUGIN_UNIX_SOCKET_DIR": str(folder), **more}


@pytest.fixture
def plugin(tmp_path):
    process = subprocess.Popen(
        [sys.executable, POLICIES], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(tmp_path, **dict([_COOKIE])),
    )
    yield process
    process.kill()
    process.communicate()


def test_started_by_hand_it_says_what_it_is(tmp_path):
    done = subprocess.run([sys.executable, POLICIES], env=environment(tmp_path), capture_output=True, text=True)
    assert done.returncode == 0
    assert "policies v1.2.3 is a plugin of Quartet" in done.stdout
    assert "admission/accept_all: admits every job" in done.stdout
    assert os.listdir(tmp_path) == []


def test_it_shakes_hands_and_cleans_up(plugin, tmp_path):
    core, app, network, path, protocol, certificate = plugin.stdout.readline().rstrip("\n").split("|")
    assert (core, app, network, protocol, certificate) == ("1", "1", "unix", "grpc", "")
    assert os.path.dirname(path) == str(tmp_path)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
    plugin.send_signal(signal.SIGINT)  # that is for the host
    time.sleep(0.1)
    assert plugin.poll() is None
    plugin.terminate()
    assert plugin.wait(5) == 0
    assert os.listdir(tmp_path) == []
    assert plugin.stdout.read() == ""


def test_it_ends_with_its_host(tmp_path):
    host = (
        "import os, subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, sys.argv[1]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)\n"
        "p.stdout.readline()\n"
        "print(p.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    started = subprocess.run(
        [sys.executable, "-c", host, POLICIES], env=environment(tmp_path, **dict([_COOKIE])), stdout=subprocess.PIPE, text=True
    )
    pid = int(started.stdout)
    until = time.monotonic() + 3
    while os.path.exists(f"/proc/{pid}/fd") and state(pid) != "Z":
        assert time.monotonic() < until, "the plugin outlives its host"
        time.sleep(0.05)
    assert os.listdir(tmp_path) == []


def state(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.mark.parametrize("make", [_tls._with_cryptography, _tls._with_openssl])
def test_certificates(make, tmp_path):
    if make is _tls._with_openssl and not shutil.which("openssl"):
        pytest.skip("the command openssl is not here; install OpenSSL")
    if make is _tls._with_cryptography:
        pytest.importorskip("cryptography")
    certificate = make()
    field = certificate.handshake_field()
    assert "=" not in field and "\n" not in field
    der = base64.b64decode(field + "=" * (-len(field) % 4))
    assert der[:1] == b"0" and b"localhost" in der
    assert b"PRIVATE KEY" in certificate.key_pem


def test_log_lines_are_read_by_the_host():
    log = ComponentLog(logger, {"component": "admission/x"})
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(json.loads(Formatter().format(record)))
    logger.addHandler(handler)
    try:
        log.warning("held back %d", 3, extra={"jobs": [1, 2]})
        try:
            raise RuntimeError("bug")
        except RuntimeError:
            log.exception("failed")
    finally:
        logger.removeHandler(handler)
    assert lines[0].pop("@timestamp")
    assert lines[0] == {"@level": "warn", "@message": "held back 3", "component": "admission/x", "jobs": [1, 2]}
    assert lines[1]["@level"] == "error" and "RuntimeError: bug" in lines[1]["stack"]


@pytest.mark.parametrize("raised", [SystemExit(3), RuntimeError("bug")])
def test_the_stack_of_an_exception_is_for_debugging(raised):
    class Context:
        def abort(self, code, text):
            return code, text

    def fail(message):
        raise raised

    records = []
    handler = logging.Handler()
    handler.emit = records.append
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        code, text = _server._call(fail, _server.stages_pb2.ScaleRequest)(b"", Context())
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
    assert code is grpc.StatusCode.INTERNAL and text == f"the policy raised {type(raised).__name__}: {raised}"
    assert [(r.levelno, r.getMessage()) for r in records] == [(logging.DEBUG, "the policy raised")]
    assert "in fail" in json.loads(Formatter().format(records[0]))["stack"]


def test_no_answer_is_the_empty_list():
    assert _convert.owned_grants(None) == []


def test_random_streams():
    def stream(seed, id):
        r = new_random(seed, id)
        return [r.random() for _ in range(5)]

    assert stream(42, "admission/a") == stream(42, "admission/a")
    assert stream(42, "admission/a") != stream(43, "admission/a")
    assert stream(42, "admission/a") != stream(42, "admission/b")
