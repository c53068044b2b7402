"""How replicas end that are not done: what they and the others say, and how they exit."""

import pytest

pytest.importorskip("torch", reason="quartet_torch needs PyTorch: python3-torch, or QUARTET_TORCH names a Python that has it")

from torch_scheduler import Run, Scheduler  # noqa: E402

TRAINING = """
import contextlib, sys
import torch
import quartet_torch

how, context, rank = sys.argv[1], sys.argv[2] == "context", int(sys.argv[3])
torch.set_num_threads(1)
made = quartet_torch.init()
with made if context else contextlib.nullcontext() as job:
    job = made
    model = job.model(torch.nn.Linear(4, 2))
    optimizer = job.optimizer(torch.optim.SGD(model.parameters(), 0.05))
    loader = job.loader(torch.utils.data.TensorDataset(torch.randn(300, 4), torch.randint(2, (300,))), 30)
    for epoch in job.epochs(2):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            if job.step == 5 and job.rank == rank or rank < 0 and job.step == 5:
                if how == "raise":
                    raise ValueError("the data are odd")
                if how == "exit":
                    sys.exit(3)
                if how == "kill":
                    import os; os.kill(os.getpid(), 9)
                break
            optimizer.step()
        else:
            continue
        break
"""

ABORTS = ("terminate called", "core dumped", "Fatal Python error")


@pytest.fixture
def scheduler():
    s = Scheduler()
    yield s
    s.close()


def ended(tmp_path, scheduler, *arguments):
    program = tmp_path / "training.py"
    program.write_text(TRAINING)
    run = Run(2, *arguments, program=str(program), scheduler=scheduler)
    codes = run.wait(60)
    said = ["".join(map(str, errors)) for errors in run.errors]
    assert not any(abort in text for abort in ABORTS for text in said), said
    return codes, said


@pytest.mark.parametrize("context", ["context", "plain"])
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("how, code, says", [
    ("raise", 1, "ValueError: the data are odd"), ("exit", 3, "ended at step 5 before it was done"), ("kill", -9, ""),
])
def test_one_ends(tmp_path, scheduler, context, rank, how, code, says):
    """The other one says in a line that it is not to blame, and exits with 1; so does a scheduler learn who is."""
    codes, said = ended(tmp_path, scheduler, how, context, rank)
    assert codes[rank] == code and codes[1 - rank] == 1, said
    assert (says in said[rank]) == (context == "plain" or how != "exit"), said
    assert f"replica {1 - rank} of 2 lost another one at step" in said[1 - rank], said
    if context == "plain":
        assert said[1 - rank].count("\n") == 1 and "Traceback" not in said[1 - rank], said
    assert not scheduler.heard("done")


def test_all_end_early(tmp_path, scheduler):
    codes, said = ended(tmp_path, scheduler, "break", "plain", -1)
    assert codes == [0, 0]
    for rank in range(2):
        assert f"replica {rank} of 2 ended at step 5 before it was done" in said[rank]
    assert not scheduler.heard("done")


def test_a_block_ends(tmp_path, scheduler):
    """What is left early in a block was wanted so."""
    codes, said = ended(tmp_path, scheduler, "break", "context", -1)
    assert codes == [0, 0] and said == ["", ""]
    assert scheduler.heard("done") == [{}]
