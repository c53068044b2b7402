"""The examples, and the page that says how a plain script becomes elastic."""

import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

pytest.importorskip("torch", reason="quartet_torch needs PyTorch: python3-torch, or QUARTET_TORCH names a Python that has it")

from torch_scheduler import Run  # noqa: E402

ROOT = pathlib.Path(__file__).parents[3]
EXAMPLES = ROOT / "examples/torch"


def page_diff():
    """The difference that the page shows."""
    found = re.findall(r"```diff\n(.*?)```", (ROOT / "docs/train-with-pytorch.md").read_text(), re.S)
    assert len(found) == 1
    return found[0]


def patched(tmp_path):
    """The plain script with the difference of the page applied, in a folder with what it imports."""
    plain = (EXAMPLES / "digits_plain.py").read_text()
    (tmp_path / "parts.py").write_text((EXAMPLES / "parts.py").read_text())
    (tmp_path / "digits.py").write_text(plain)
    done = subprocess.run(["patch", "-s", "digits.py"], input=page_diff(), cwd=tmp_path, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path / "digits.py"


@pytest.mark.skipif(subprocess.run(["sh", "-c", "command -v patch"], capture_output=True).returncode != 0, reason="there is no patch")
def test_the_page_makes_the_elastic_script(tmp_path):
    assert patched(tmp_path).read_text() == (EXAMPLES / "digits.py").read_text()
    for text in (page_diff(), difference("text")):
        added = [line for line in text.splitlines() if line.startswith("+") and not line.startswith("+++")]
        assert 1 <= len(added) <= 10, added


def difference(name):
    return subprocess.run(["diff", "-u", f"{name}_plain.py", f"{name}.py"], cwd=EXAMPLES, capture_output=True, text=True).stdout


@pytest.mark.skipif(subprocess.run(["sh", "-c", "command -v patch"], capture_output=True).returncode != 0, reason="there is no patch")
def test_what_the_page_makes_runs(tmp_path):
    """On two replicas, then from its checkpoint on one."""
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn, which is not installed")
    script = str(patched(tmp_path))
    checkpoint = str(tmp_path / "checkpoint")
    for replicas, epochs in ((2, 3), (1, 6)):
        run = Run(replicas, "--epochs", epochs, program=script, checkpoint=checkpoint)
        assert run.wait() == [0] * replicas, run.problems()
        said = [re.fullmatch(r"epoch (\d+): loss ([\d.]+), accuracy ([\d.]+) %\n", line) for line in run.lines[0]]
        assert [int(s[1]) for s in said] == list(range(epochs - 3, epochs))
    assert float(said[-1][3]) > 90


def test_the_plain_script_runs():
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn, which is not installed")
    code = f"import runpy, torch, sys; sys.argv = ['digits_plain.py', '--epochs', '1']; runpy.run_path({str(EXAMPLES / 'digits_plain.py')!r})"
    meeting = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "0", "PYTHONPATH": str(EXAMPLES)}
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **meeting}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("epoch 0: loss "), done.stderr


def test_the_transformer_learns(tmp_path):
    for n in range(2):
        (tmp_path / f"{n}.md").write_text("The pipeline places jobs on devices. " * 25)
    run = Run(2, "--epochs", 6, "--block", 16, "--text", str(tmp_path), program=str(EXAMPLES / "text.py"))
    assert run.wait() == [0, 0], run.problems()
    losses = [float(line.rsplit(" ", 1)[1]) for line in run.lines[0]]
    assert losses[0] > 2 * losses[-1]


def test_without_scikit_learn(tmp_path):
    """The example says what is missing."""
    (tmp_path / "sklearn.py").write_text("raise ImportError('not here')\n")
    run = Run(1, program=str(EXAMPLES / "digits.py"), extra={"PYTHONPATH": f"{tmp_path}:{ROOT / 'plugins/python'}"})
    assert run.wait() == [1]
    assert "the digits come with scikit-learn, which is not installed" in run.problems()


def test_a_paced_training_takes_its_time(tmp_path):
    """As long as its profile says, at least; and it is done by its progress, on two replicas and then on one from their checkpoint."""
    profile = tmp_path / "profile.yaml"
    profile.write_text("alpha_grad: 0.02\nbeta_grad: 0.001\nalpha_node: 1\nbeta_node: 1\nalpha_local: 0.03\nbeta_local: 1\ngamma: 1.0\n")
    checkpoint, done = str(tmp_path / "checkpoint"), 0
    for replicas, iterations, seconds in ((2, 20, 0.066), (1, 30, 0.052)):
        began = time.monotonic()
        run = Run(replicas, "--profile", profile, "--iterations", iterations, "--start-up", 1, program=str(EXAMPLES / "paced.py"), checkpoint=checkpoint)
        assert run.wait() == [0] * replicas, run.problems()
        assert time.monotonic() - began >= 1 + (iterations - done - 1) * seconds
        said = re.fullmatch(r"progress ([\d.]+), noise scale [\d.]+\n", run.lines[0][0])
        assert float(said[1]) == iterations
        done = iterations


def test_a_profile_without_times(tmp_path):
    profile = tmp_path / "profile.yaml"
    profile.write_text("alpha_grad: 0.02\n")
    run = Run(1, "--profile", profile, "--iterations", 3, program=str(EXAMPLES / "paced.py"))
    assert run.wait() == [1] and f"{profile} has no beta_grad" in run.problems()
