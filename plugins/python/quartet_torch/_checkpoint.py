"""Checkpoints: whole or not there at all, and known by what is in them.

A file is a line of JSON, which says what it is of, and what torch.save wrote. It is read without running code: torch's weights_only.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from typing import Any, Optional

import torch

FILE = "quartet.pt"
_FORMAT, _VERSION, _LONGEST = "quartet_torch", 1, 64 << 20


class CheckpointError(RuntimeError):
    """A checkpoint is damaged, or of another training, or cannot be written. The message says which and why."""


def save(folder: str, identity: dict[str, Any], state: dict[str, Any]) -> None:
    """Writes a checkpoint in place of the one before, which stays whole until the new one is on disk."""
    path = os.path.join(folder, FILE)
    try:
        buffer = io.BytesIO()
        torch.save(state, buffer)
        content = buffer.getbuffer()
        head = {"format": _FORMAT, "version": _VERSION, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(),
                "of": identity}
        os.makedirs(folder, exist_ok=True)
        try:
            with open(path + ".new", "wb") as file:
                file.write(json.dumps(head).encode() + b"\n")
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(path + ".new", path)
        except OSError:
            if os.path.exists(path + ".new"):
                os.remove(path + ".new")
            raise
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as wrong:
        raise CheckpointError(f"write checkpoint {path!r}: {wrong}") from wrong


def load(folder: str, identity: dict[str, Any]) -> Optional[dict[str, Any]]:
    """The state that was saved last; None where there is none. A CheckpointError says why one is refused."""
    path = os.path.join(folder, FILE)
    try:
        with open(path, "rb") as file:
            head, content = _read(file.readline(_LONGEST), file.read())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as wrong:
        raise CheckpointError(f"read checkpoint {path!r}: {wrong}; remove it to begin anew") from wrong
    differences = _differences(head.get("of"), json.loads(json.dumps(identity)))
    if differences:
        raise CheckpointError(f"read checkpoint {path!r}: it is of another training: {'; '.join(differences)}; "
                              "remove it to begin anew")
    try:
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as wrong:  # whatever unpickling raises
        raise CheckpointError(f"read checkpoint {path!r}: {wrong}; remove it to begin anew") from wrong
    if not isinstance(state, dict):
        raise CheckpointError(f"read checkpoint {path!r}: it holds no state; remove it to begin anew")
    return state


def _read(line: bytes, content: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        head = json.loads(line)
        if head["format"] != _FORMAT:
            raise KeyError
        version, size, sha = head["version"], head["bytes"], head["sha256"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("it is not a checkpoint of quartet_torch") from None
    if version != _VERSION:
        raise ValueError(f"it is of version {version}, this is version {_VERSION}")
    if len(content) != size:
        raise ValueError(f"it is damaged: {len(content)} bytes of {size}")
    if hashlib.sha256(content).hexdigest() != sha:
        raise ValueError("it is damaged: its checksum is another")
    return head, content


def _differences(theirs: Any, ours: dict[str, Any]) -> list[str]:
    """What differs between two trainings, in words; five things at most."""
    if not isinstance(theirs, dict):
        return ["it does not say of which"]
    found = []
    for name, value in ours.items():
        other = theirs.get(name)
        if other == value:
            continue
        if isinstance(value, dict) and isinstance(other, dict):
            for key in sorted(set(value) | set(other)):
                if value.get(key) != other.get(key):
                    found.append(f"{name} {key!r} is {other.get(key, 'absent')}, here {value.get(key, 'absent')}")
        else:
            found.append(f"{name} is {other}, here {value}")
    return found[:5] + (["and more"] if len(found) > 5 else [])
