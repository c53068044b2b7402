"""How replicas find each other without a folder: by the address of one of them, as on a cluster of machines."""

import os
import socket

import pytest

torch = pytest.importorskip("torch", reason="quartet_torch needs PyTorch: python3-torch, or QUARTET_TORCH names a Python that has it")

import torch.multiprocessing  # noqa: E402, F811

from quartet_agent import Environment, World  # noqa: E402
from quartet_torch._world import Group, Member, Orders  # noqa: E402


def meets(rank, port, into):
    """Two replicas form a world, and the next one in which they change places. A port that the user set stays in the variable."""
    torch.set_num_threads(1)
    os.environ["MASTER_PORT"] = str(port)
    orders = Orders(None)
    group = Group("gloo", Environment(job="x", rank=rank, replicas=2), orders, Member(rank, 2, address="127.0.0.1"), 60)
    sums = []
    for generation in (0, 3):
        if generation:
            group.member = group.member.told(World(generation, 1 - rank, 2, 1, "127.0.0.1"))
        group.form(True)
        mine = torch.tensor([float(10 ** torch.distributed.get_rank()), float(rank)])
        torch.distributed.all_reduce(mine)
        sums += mine.tolist() + [torch.distributed.get_rank(), int(os.environ["RANK"]), int(os.environ["MASTER_PORT"]) - port]
        group.leave()
    torch.save(sums, f"{into}-{rank}")


def test_by_address(tmp_path):
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    torch.multiprocessing.spawn(meets, (port, str(tmp_path / "out")), 2)
    for rank in range(2):
        assert torch.load(str(tmp_path / f"out-{rank}")) == [11, 1, rank, rank, 0, 11, 1, 1 - rank, 1 - rank, 0]


def test_who_hosts():
    """The replica whose host is the address, or the first one where that says nothing."""
    here = socket.gethostname()
    for address, member, want in (
        ("", Member(0, 2), True), ("", Member(1, 2), False), ("localhost", Member(0, 2), True), (f"{here}.train", Member(1, 2), True),
        (f"{here}.train", Member(1, 2, local_rank=1), False), ("another.train", Member(0, 2), False),
    ):
        member = Member(member.rank, member.replicas, member.local_rank, address=address)
        assert Group("gloo", Environment(), Orders(None), member, 1)._hosts() == want, (address, member)


def test_others_that_do_not_come(tmp_path):
    environment = Environment(job="x", rank=0, replicas=2, rendezvous=str(tmp_path))
    with pytest.raises(RuntimeError, match="replica 0 of 2 waited 0.1 s: not all replicas came"):
        Group("gloo", environment, Orders(None), Member(0, 2), 0.1).form(False)
    with pytest.raises(RuntimeError, match="replica 1 of 2 waited 0.1 s: the first replica does not say where it is"):
        Group("gloo", environment, Orders(None), Member(1, 2, generation=1), 0.1).form(False)
    with pytest.raises(RuntimeError, match="replica 2 of 3 waited 5 s: 2 replicas are there without this one"):
        host = Group("gloo", environment, Orders(None), Member(0, 2), 0.1)
        place = host._host()
        Group("gloo", environment, Orders(None), Member(2, 3), 5).form(False)
        assert place


def test_who_torchrun_says():
    variables = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
    assert Member.first(Environment(rank=4, replicas=8), variables) == Member(5, 8, 1, 2, torchrun=True)
    assert Member.first(Environment(rank=1, replicas=2, nodes=2), {"MASTER_ADDR": "a"}) == Member(1, 2, 0, 2, address="a")
