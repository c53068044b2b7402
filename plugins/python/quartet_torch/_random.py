"""The random numbers of a replica, as checkpoints keep them."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch


def random_state(device: torch.device) -> dict[str, Any]:
    """The random numbers ahead of this replica."""
    version, words, gauss = random.getstate()
    state = {"torch": torch.get_rng_state(), "python": [version, list(words), gauss]}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        name, keys, at, has, cached = numpy.random.get_state()
        state["numpy"] = [str(name), [int(k) for k in keys], int(at), int(has), float(cached)]
    return state


def set_random(states: list[Any], rank: int, seed: int) -> None:
    """Goes on with the random numbers of a replica; one that there was not before gets new ones."""
    if rank >= len(states):
        torch.manual_seed(seed + rank)
        random.seed(seed + rank)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed((seed + rank) % (1 << 32))
        return
    state = states[rank]
    torch.set_rng_state(state["torch"])
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
    if "numpy" in state and "numpy" in sys.modules:
        sys.modules["numpy"].random.set_state(tuple(state["numpy"]))
