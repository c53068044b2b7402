"""The certificate that a plugin shows to its host."""

from __future__ import annotations

import base64
import datetime
import os
import subprocess
import tempfile
from typing import NamedTuple

_LIFE = datetime.timedelta(days=3650)  # one certificate serves one process


class Certificate(NamedTuple):
    """A self-signed certificate of localhost and its key."""

    pem: bytes
    key_pem: bytes

    def handshake_field(self) -> str:
        """The certificate as the host expects it: DER in base64 without padding."""
        body = b"".join(line for line in self.pem.splitlines() if not line.startswith(b"-----"))
        return base64.b64encode(base64.b64decode(body)).decode().rstrip("=")


def new_certificate() -> Certificate:
    """Makes a certificate with the cryptography package, or with the openssl command where that is not installed."""
    try:
        return _with_cryptography()
    except ImportError:
        return _with_openssl()


def _with_cryptography() -> Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Certificate(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )


def _with_openssl() -> Certificate:
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = os.path.join(folder, "key.pem"), os.path.join(folder, "certificate.pem")
        subprocess.run(
            [
                "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-sha256",
                "-days", str(_LIFE.days), "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                "-keyout", key, "-out", certificate,
            ],
            check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        with open(certificate, "rb") as c, open(key, "rb") as k:
            return Certificate(c.read(), k.read())
