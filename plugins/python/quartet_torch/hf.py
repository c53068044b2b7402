"""A callback for the Trainer of Hugging Face transformers.

    from quartet_torch.hf import QuartetCallback, last_checkpoint

    trainer = Trainer(..., callbacks=[QuartetCallback()])
    trainer.train(resume_from_checkpoint=last_checkpoint(trainer.args))

The Trainer keeps its loop, batches and checkpoints: the job is resized by being stopped and started again, and keeps the batch that its
arguments give it. What the Trainer logs becomes metrics. A loop written with Accelerate uses quartet_torch.Reporter.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Optional

from transformers import TrainerCallback
from transformers.trainer_utils import get_last_checkpoint

from quartet_torch import STOPPED, Reporter


class QuartetCallback(TrainerCallback):
    """Reports step times, progress and what is logged. When the scheduler says stop, the Trainer saves, and the process exits with
    STOPPED once the Trainer is through, unless exit is false: then stopped says so."""

    def __init__(self, report_seconds: float = 1.0, exit: bool = True) -> None:
        self._report_seconds, self._exit = report_seconds, exit
        self._reporter: Optional[Reporter] = None
        self.stopped = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._reporter, self.stopped = Reporter(self._report_seconds), False
        self._reporter.progress = float(state.global_step)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        assert self._reporter is not None
        self._reporter.begin_step()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        assert self._reporter is not None
        self._reporter.end_step(args.per_device_train_batch_size)
        if self._reporter.stop:
            self.stopped = control.should_training_stop = control.should_save = True
        if self._reporter.checkpoint:
            control.should_save = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._reporter is not None:
            self._reporter.checkpointed()

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[dict[str, Any]] = None, **kwargs: Any) -> None:
        for name, value in (logs or {}).items():
            if self._reporter is not None and isinstance(value, (int, float)):
                self._reporter.metric(name, value, state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        assert self._reporter is not None
        if not self.stopped:
            self._reporter.done()
            return
        self._reporter.close()
        if self._exit:
            sys.exit(STOPPED)


def last_checkpoint(args: Any) -> Optional[str]:
    """The folder of the Trainer's last checkpoint; None when there is none, and the training begins anew."""
    return get_last_checkpoint(args.output_dir) if os.path.isdir(args.output_dir) else None
