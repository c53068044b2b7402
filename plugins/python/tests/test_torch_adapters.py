"""The callbacks within the Trainers that they are for; each test skips where its library is not installed."""

import pytest

torch = pytest.importorskip("torch", reason="quartet_torch needs PyTorch: python3-torch, or QUARTET_TORCH names a Python that has it")

from torch_scheduler import Scheduler  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture
def scheduler(monkeypatch):
    s = Scheduler()
    monkeypatch.setenv("QUARTET_JOB", "train")
    monkeypatch.setenv("QUARTET_AGENT", s.path)
    for name in ("QUARTET_RANK", "QUARTET_REPLICAS", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    yield s
    s.close()


class Points(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        x = torch.full((4,), float(i % 7))
        return {"x": x, "labels": torch.tensor(i % 2)}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)

    def forward(self, x, labels):
        logits = self.linear(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def stops_and_goes_on(scheduler, fit):
    """fit trains for some steps, and returns those taken in all; the first time it is told to stop after the fourth."""
    stopped = fit(lambda step: step == 4 and scheduler.tell(0, stop={"grace_seconds": 5}))
    assert 4 <= stopped < 16
    assert [c["progress"] for c in scheduler.heard("checkpointed")][-1] == stopped
    assert not scheduler.heard("done")
    assert fit(lambda step: None) == 16
    assert scheduler.heard("done") == [{}]
    reports = scheduler.heard("report")
    assert reports[-1]["progress"] == 16 and reports[-1]["step_seconds"] >= 0


def test_hugging_face(scheduler, tmp_path):
    transformers = pytest.importorskip("transformers", reason="the callback of Hugging Face: transformers is not installed")
    pytest.importorskip("accelerate", reason="the callback of Hugging Face: accelerate is not installed")
    from quartet_torch.hf import QuartetCallback, last_checkpoint

    def fit(then):
        class Then(transformers.TrainerCallback):
            def on_step_begin(self, args, state, control, **kwargs):
                then(state.global_step)
                import time
                time.sleep(0.02)

        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path / "out"), num_train_epochs=2, per_device_train_batch_size=8, logging_steps=1, report_to=[],
            save_strategy="no", use_cpu=True, disable_tqdm=True,
        )
        quartet = QuartetCallback(report_seconds=0.0, exit=False)
        trainer = transformers.Trainer(model=Net(), args=arguments, train_dataset=Points(), callbacks=[Then(), quartet])
        trainer.train(resume_from_checkpoint=last_checkpoint(arguments))
        assert quartet.stopped == (trainer.state.global_step < 16)
        return trainer.state.global_step

    stops_and_goes_on(scheduler, fit)
    assert any(m["name"] == "loss" for metrics in scheduler.heard("metrics") for m in metrics)


def test_lightning(scheduler, tmp_path):
    pytest.importorskip("lightning", reason="the callback of Lightning: lightning is not installed")
    import lightning.pytorch as lightning

    from quartet_torch.lightning import QuartetCallback

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def training_step(self, batch, index):
            loss = self.net(**batch)["loss"]
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    def fit(then):
        class Then(lightning.Callback):
            def on_train_batch_start(self, trainer, module, batch, index):
                then(trainer.global_step)
                import time
                time.sleep(0.02)

        quartet = QuartetCallback(str(tmp_path), batch_per_device=8, report_seconds=0.0, exit=False)
        trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                    enable_model_summary=False, callbacks=[Then(), quartet])
        trainer.fit(Module(), torch.utils.data.DataLoader(Points(), 8), ckpt_path=quartet.last_checkpoint())
        assert quartet.stopped == (trainer.global_step < 16)
        return trainer.global_step

    stops_and_goes_on(scheduler, fit)
    assert any(m["name"] == "loss" for metrics in scheduler.heard("metrics") for m in metrics)


def test_adapters_are_not_imported_by_default():
    import subprocess
    import sys
    code = "import sys, quartet_torch; sys.exit(any(m in sys.modules for m in ('transformers', 'lightning', 'accelerate')))"
    assert subprocess.run([sys.executable, "-c", code], cwd=".").returncode == 0
