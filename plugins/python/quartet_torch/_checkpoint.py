"""Checkpoints: whole or not there at all, and known by what is in them.

A file is a line of JSON, which says what it is of, a line of JSON with the state, and what torch.save wrote of its tensors. It is read
without running code: torch's weights_only.
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
        tensors: list[torch.Tensor] = []
        buffer = io.BytesIO()
        buffer.write(json.dumps(_flat(state, "", tensors)).encode() + b"\n")
        torch.save(tensors, buffer)
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
    except (OSError, TypeError) as wrong:
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
        shape, _, tensors = content.partition(b"\n")
        state = _deep(json.loads(shape), torch.load(io.BytesIO(tensors), map_location="cpu", weights_only=True))
        if not isinstance(state, dict):
            raise ValueError("it holds no state")
        return state
    except Exception as wrong:  # whatever unpickling raises
        raise CheckpointError(f"read checkpoint {path!r}: {wrong}; remove it to begin anew") from wrong


def _flat(value: Any, where: str, tensors: list[torch.Tensor]) -> Any:
    """A value as JSON, its tensors set aside. A TypeError says where something is that is not kept."""
    if isinstance(value, torch.Tensor):
        tensors.append(value.detach())
        return {"tensor": len(tensors) - 1}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        keys = [k for k in value if not isinstance(k, (str, int))]
        if keys:
            raise TypeError(f"state{where}: the key {keys[0]!r} is neither a text nor a whole number")
        return {"dict": [[k, _flat(v, f"{where}[{k!r}]", tensors)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__ if type(value) is tuple else "list":
                [_flat(v, f"{where}[{i}]", tensors) for i, v in enumerate(value)]}
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return value.item()
    raise TypeError(f"state{where}: {type(value).__name__} is not kept; tensors, numbers, texts, lists, tuples and dicts are")


def _deep(value: Any, tensors: list[torch.Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    (kind, content), = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {k: _deep(v, tensors) for k, v in content}
    return (tuple if kind == "tuple" else list)(_deep(v, tensors) for v in content)


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
