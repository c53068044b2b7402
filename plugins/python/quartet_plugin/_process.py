"""The life of a plugin process: handshake, service, and an end that follows the host's."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from concurrent import futures
from typing import TextIO

import grpc

from ._log import log_to_stderr
from ._server import PROTOCOL, Server
from ._tls import new_certificate
from .policy import Policy

_COOKIE = ("QUARTET_PLUGIN", "d0a1d3f3-9d5f-4f6b-8f0c-4f9c5a1e7b52")
_CORE_PROTOCOL = 1  # of the handshake itself
_MAX_MESSAGE = 64 << 20
_POLL_HOST_SECONDS = 0.5
_WORKERS = 8  # one answers for the policy, or waits on an exchange; the others report its health to the host


def main(*policies: type[Policy], name: str | None = None, version: str = "v0.0.0-devel") -> None:
    """Serves policies until the host is done, and does not return. Started by hand it says what it is.

    The name is by default that of the script, "deadline" for deadline.py. What the policies print goes to stderr.
    """
    try:
        server = Server(name or _name(), version, policies)
    except TypeError as e:
        print(e, file=sys.stderr)
        sys.exit(2)
    if os.environ.get(_COOKIE[0]) != _COOKIE[1]:
        _help(server)
        sys.exit(0)
    host = os.getppid()
    out = _guard_stdout()
    log_to_stderr()
    sys.exit(_serve(server, out, host))


def _name() -> str:
    file, _ = os.path.splitext(os.path.basename(sys.argv[0]))
    installed = "quartet-plugin-"  # quartet-plugin-<name>_<version>_...
    return file[len(installed):].partition("_")[0] if file.startswith(installed) else file


def _help(server: Server) -> None:
    """What a person sees who starts a plugin."""
    print(f"{server.name} {server.version} is a plugin of Quartet, which starts it. It serves:")
    for component in server.components:
        print(f"  {component.name}: {component.policy.summary}")
    file = os.path.basename(sys.argv[0])
    print(f"Try it:    quartet plugin test ./{file}")
    print(f"Install:   quartet plugin install ./{file}")


def _guard_stdout() -> TextIO:
    """Sends what is printed from now on, and what was printed and not yet written, to stderr. Returns the real stdout:
    the handshake is written there, and a stray line before it would make the plugin unreadable."""
    out = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    sys.stdout.flush()
    sys.stdout = sys.stderr
    return out


def _serve(policies: Server, out: TextIO, host: int) -> int:
    done = threading.Event()
    # Ctrl-C on a terminal reaches the whole process group, and the host then ends its plugins in its own time.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=_WORKERS),
        handlers=[*policies.handlers(), *_go_plugin(done)],
        options=[
            ("grpc.max_receive_message_length", _MAX_MESSAGE),
            ("grpc.max_send_message_length", _MAX_MESSAGE),
            ("grpc.http2.bdp_probe", 0),  # a ping for each message would double the wake-ups of a call
        ],
    )
    socket = _socket_path()
    try:
        server_certificate = _listen(server, socket)
        server.start()
        print(f"{_CORE_PROTOCOL}|{PROTOCOL}|unix|{socket}|grpc|{server_certificate}", file=out, flush=True)
        status = 0
        while not done.wait(_POLL_HOST_SECONDS):
            if os.getppid() != host:
                status = 1
                break
        # The answer to Shutdown goes out; a policy that does not return is not waited for.
        server.stop(grace=0.2).wait(1.0)
    finally:
        _remove(socket)
    sys.stderr.flush()
    os._exit(status)


def _socket_path() -> str:
    folder = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.gettempdir()
    return os.path.join(folder, f"plugin{os.getpid()}")


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # the server already did


def _listen(server: grpc.Server, socket: str) -> str:
    """Binds the socket, with TLS if the host sent a certificate, and returns ours as the handshake wants it."""
    _remove(socket)
    host_certificate = os.environ.get("PLUGIN_CLIENT_CERT")
    if not host_certificate:
        server.add_insecure_port(f"unix:{socket}")
        return ""
    ours = new_certificate()
    credentials = grpc.ssl_server_credentials(
        [(ours.key_pem, ours.pem)], root_certificates=host_certificate.encode(), require_client_auth=True
    )
    server.add_secure_port(f"unix:{socket}", credentials)
    return ours.handshake_field()


def _go_plugin(done: threading.Event) -> list[grpc.GenericRpcHandler]:
    """The services that the host's plugin library asks of every plugin. Their messages are too small to generate."""
    serving = b"\x08\x01"  # grpc.health.v1.HealthCheckResponse{status: SERVING}

    def shutdown(request: bytes, context: grpc.ServicerContext) -> bytes:
        context.add_callback(done.set)  # once the answer is out
        return b""

    def service(name: str, **methods: object) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            name, {method: grpc.unary_unary_rpc_method_handler(answer) for method, answer in methods.items()}
        )

    return [
        service("grpc.health.v1.Health", Check=lambda request, context: serving),
        service("plugin.GRPCController", Shutdown=shutdown),
    ]
