"""A callback for the Trainer of Lightning.

    from quartet_torch.lightning import QuartetCallback

    quartet = QuartetCallback(folder)
    trainer = Trainer(..., callbacks=[quartet])
    trainer.fit(model, loader, ckpt_path=quartet.last_checkpoint())

The Trainer keeps its loop and its batches: the job is resized by being stopped and started again. What is logged becomes metrics.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Optional

import torch
from lightning.pytorch import Callback

from quartet_torch import STOPPED, Reporter

FILE = "quartet.ckpt"


class QuartetCallback(Callback):
    """Reports step times, progress and what is logged. When the scheduler says stop, the Trainer saves into the folder, that of
    QUARTET_CHECKPOINT if none is named, and the process exits with STOPPED once the Trainer is through, unless exit is false: then
    stopped says so."""

    def __init__(self, folder: Optional[str] = None, batch_per_device: int = 0, report_seconds: float = 1.0, exit: bool = True) -> None:
        self._folder = os.environ.get("QUARTET_CHECKPOINT", "") if folder is None else folder
        self._batch, self._report_seconds, self._exit = batch_per_device, report_seconds, exit
        self._reporter: Optional[Reporter] = None
        self._step = -1
        self.stopped = False

    def last_checkpoint(self) -> Optional[str]:
        """The path for ckpt_path; None when there is none, and the training begins anew."""
        path = os.path.join(self._folder, FILE)
        return path if self._folder and os.path.exists(path) else None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._reporter, self.stopped, self._step = Reporter(self._report_seconds), False, trainer.global_step
        self._reporter.progress = float(trainer.global_step)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        assert self._reporter is not None
        self._reporter.begin_step()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        assert self._reporter is not None
        if trainer.global_step == self._step:  # a pass before the last of an accumulation
            return
        self._step = trainer.global_step
        for name, value in trainer.callback_metrics.items():
            if isinstance(value, torch.Tensor) and value.numel() == 1:
                self._reporter.metric(name, float(value), trainer.global_step)
        self._reporter.end_step(self._batch)
        if (self._reporter.stop or self._reporter.checkpoint) and self._folder:
            path = os.path.join(self._folder, FILE)
            trainer.save_checkpoint(path + ".new")
            if trainer.is_global_zero:
                os.replace(path + ".new", path)
            self._reporter.checkpointed()
        if self._reporter.stop:
            self.stopped = trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        assert self._reporter is not None
        if self.stopped:
            self._reporter.close()
        else:
            self._reporter.done()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if self.stopped and self._exit and stage == "fit":
            sys.exit(STOPPED)
