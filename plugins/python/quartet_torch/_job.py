"""An elastic training: one object that wraps what a plain script has."""

from __future__ import annotations

import gc
import logging
import sys
import time
from collections.abc import Iterator
from types import MethodType
from typing import Any, Callable, Optional, Union

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from quartet_agent import STOPPED, Agent, Environment
from quartet_torch import _checkpoint
from quartet_torch._end import Ending
from quartet_torch._gradients import Observer
from quartet_torch._loader import Loader
from quartet_torch._plan import Setting, tuned
from quartet_torch._random import random_state, set_random
from quartet_torch._report import Window
from quartet_torch._statistics import Gradients, Pace, Rule, Tracker, rule_of, summed
from quartet_torch._world import Group, Member, Orders, Stopped

log = logging.getLogger("quartet_torch")

# What all replicas learn at the end of a step: the values of the one that speaks for the job, sums of the others. The norms of parameter
# groups come behind, and then three for each replica: its share in a new tuning, whether it is to stop, and which world it received.
_TERMINATED, _CHECKPOINT, _TUNED, _BATCH, _ACCUMULATION, _FACTOR, _APART, _SLOTS = range(8)

_NOTHING = {"checkpoint": False, "stop": False}  # is due

_HEARING = 0.1  # seconds that an order may wait for an exchange
_MOST_APART = 64  # steps


class ElasticModel(nn.Module):
    """A module that trains as DistributedDataParallel does, on whatever replicas there are. Its parameters and state are those of
    DistributedDataParallel, with the module's own in `module`."""

    def __init__(self, job: Job, module: nn.Module, options: dict[str, Any]) -> None:
        super().__init__()
        self.module = module
        self._job, self._options = job, options
        self._parallel: list[DistributedDataParallel] = []  # in a list, so that its parameters are not those of this module again

    def forward(self, *inputs: Any, **named: Any) -> Any:
        model: nn.Module = self._parallel[0] if self._parallel and self.training else self.module
        return model(*inputs, **named)

    def _join(self) -> None:
        parallel = DistributedDataParallel(self.module, **self._options)
        parallel.register_comm_hook(None, self._job._observer.hook)
        self._parallel = [parallel]

    def _part(self) -> None:
        self._parallel = []
        gc.collect()  # what it hung on the parameters goes with it

    def _quiet(self) -> Any:
        return self._parallel[0].no_sync()


class Job:
    """A training that Quartet resizes and retunes. Made by quartet_torch.init, one in a process.

    rank, replicas: of this replica, as of now. step, samples: optimizer steps taken and samples seen by all replicas. progress: in
    iterations at the initial batch. state: values of the user's own, which checkpoints keep: numbers, texts, tensors, lists and dicts.

    As a context, `with quartet_torch.init() as job:`, it is done when the block ends, and leaves the others when something is raised.
    """

    def __init__(self, backend: str, environment: Environment, checkpoint: Optional[str], checkpoint_seconds: float,
                 report_seconds: float, worlds: bool, observe_every: Optional[int], join_seconds: float) -> None:
        self._member = Member.first(environment)
        first = self._member.local_rank == 0 and environment.rank == 0 if self._member.torchrun else self._member.rank == 0
        self._agent: Optional[Agent] = None
        if environment.agent and (first or worlds):
            self._agent = Agent(environment, worlds)
        self._worlds = worlds and self._agent is not None
        self._speaks = first
        self._orders = Orders(self._agent)
        self._undo_signals = self._orders.heed_signals()
        self._group = Group(backend, environment, self._orders, self._member, join_seconds)
        self._folder = environment.checkpoint if checkpoint is None else checkpoint
        self._checkpoint_seconds, self._pace = checkpoint_seconds, Pace(observe_every)

        self.step, self.samples, self.progress = 0, 0, 0.0
        self.state: dict[str, Any] = {}
        self._epoch = 0
        self._observer = Observer()
        self._window = Window(report_seconds, self._group.device)
        self._ending = Ending(lambda what: f"replica {self.rank} of {self.replicas} {what} at step {self.step}", self._leave)
        self._observer.computed, self._observer.reduced = self._computed, self._window.synchronised
        self._observer.failed, self._observer.carried = self._ending.lost, self._carried
        self._trackers: list[Tracker] = [Tracker()]
        self._model: Optional[ElasticModel] = None
        self._optimizer: Optional[torch.optim.Optimizer] = None
        self._loader: Optional[Loader] = None
        self._kept: dict[str, Any] = {}
        self._rule: Rule = rule_of("adascale")
        self._scaler: Any = None
        self._begun = self._ended = False
        self._due = _NOTHING
        self._generation = 0  # of the world that the replicas go over to after the step at hand
        self._checkpointed = time.monotonic()
        self._pass = (Setting((1,)), 0)
        self._stepped = self._called = self._exchanged = True
        self._quieted: Any = None
        self._launched: Optional[tuple[torch.Tensor, Any]] = None
        self._exchange_at = 0  # step of the next exchange
        self._exchange_last = (0, 0.0)  # step and moment of the last one
        try:
            self._group.form(self._worlds)
        except Stopped:
            self._exit()
        self._take_place()
        self._ending.watch()
        self.setting = Setting((1,) * self.replicas)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], problem: Optional[BaseException], trace: Any) -> None:
        if problem is None:
            self.done()
            return
        lost = self._ending.explain(problem)
        self._leave()
        if lost is not None:
            raise lost from None

    # What a script wraps.

    def model(self, module: nn.Module, **options: Any) -> ElasticModel:
        """Wraps a module in place of DistributedDataParallel, whose options these are."""
        if self._model is not None:
            raise RuntimeError("a job has one model; put several into one module")
        self._model = ElasticModel(self, module.to(self._group.device), options)
        return self._model

    def optimizer(self, optimizer: torch.optim.Optimizer, scaling: Union[str, Rule] = "adascale", scaler: Any = None,
                  precondition: bool = False) -> torch.optim.Optimizer:
        """Has an optimizer follow the batch: its learning rates are taken times a factor in each step. Returns the same optimizer.

        scaling: "adascale", the gain of each parameter group; "adamscale", its square root, for Adam; "square_root" and "linear" in
        the batch; "none"; or a function of the batch over the initial one, and the group's Gradients. A factor that the scheduler
        sends comes first. scaler: the GradScaler of mixed precision, whose scale is taken out of the statistics. precondition: take
        gradients as Adam does, divided by its denominator, for the statistics.
        """
        if self._optimizer is not None:
            raise RuntimeError("a job has one optimizer; parameter groups do what several would")
        if precondition and not all("betas" in g and "eps" in g for g in optimizer.param_groups):
            raise ValueError(f"precondition: {type(optimizer).__name__} has no betas and eps as Adam has")
        self._optimizer, self._rule, self._scaler = optimizer, rule_of(scaling), scaler
        self._observer.follow(optimizer, precondition)
        self._trackers = [Tracker() for _ in optimizer.param_groups]
        really, clear = optimizer.step, optimizer.zero_grad

        def step(of: torch.optim.Optimizer, *args: Any, **named: Any) -> Any:
            return self._step(really, *args, **named)

        def zero_grad(of: torch.optim.Optimizer, *args: Any, **named: Any) -> None:
            if self._stepped or self._pass[1] == 0 and not self._called:
                clear(*args, **named)

        optimizer.step = MethodType(step, optimizer)
        optimizer.zero_grad = MethodType(zero_grad, optimizer)
        return optimizer

    def loader(self, dataset: Any, batch_size: int, *, seed: int = 0, shuffle: bool = True, **options: Any) -> Loader:
        """Loads the samples of a dataset with a length, each once an epoch, in an order that depends on seed and epoch alone.

        batch_size is the initial one, of all replicas together: that for which the learning rate was tuned. The options are those of
        torch's DataLoader, workers included.
        """
        if self._loader is not None:
            raise RuntimeError("a job has one training loader; load what it is validated on with a DataLoader")
        if batch_size < 1:
            raise ValueError(f"batch_size: {batch_size} is not at least 1")
        if len(dataset) < 1:
            raise ValueError("dataset: it is empty")
        wrong = [name for name in ("sampler", "batch_sampler", "drop_last") if name in options]
        if wrong:
            raise ValueError(f"loader: {', '.join(wrong)}: the loader decides on its own who sees which sample when")
        self._loader = Loader(self, dataset, batch_size, seed, shuffle, options)
        self.setting = tuned(batch_size, self.replicas)
        return self._loader

    def keep(self, **objects: Any) -> None:
        """Has checkpoints keep objects with state_dict and load_state_dict, by name: a learning rate's scheduler, a GradScaler."""
        for name, value in objects.items():
            if not (hasattr(value, "state_dict") and hasattr(value, "load_state_dict")):
                raise TypeError(f"keep: {name} has no state_dict and load_state_dict; put plain values into state")
        self._kept.update(objects)

    def epochs(self, count: int) -> Iterator[int]:
        """The epochs that are left of so many, after those of the checkpoint. When they are over the job is done."""
        self.begin()
        while self._epoch < count:
            yield self._epoch
            self._epoch += 1
            if self._loader is not None:
                self._loader.batches.epoch, self._loader.batches.position = self._epoch, 0
        self.done()

    def metric(self, name: str, value: float, step: Optional[int] = None) -> None:
        """Reports a loss, an accuracy or any other metric to the scheduler, with the next report; step is the job's own if nothing is said. A value
        that is not finite says that the training diverged. What has no name is left out with a warning, as is what comes after 64 names."""
        self._window.metric(name, float(value), self.step if step is None else step)

    def done(self) -> None:
        """All work is done: makes the last checkpoint, and says so. Called at the end of epochs."""
        if self._ended:
            return
        if self._begun:
            self._save()
        if self._agent is not None and self._speaks:
            self._report(True)
            self._agent.done()
        self._leave()

    @property
    def device(self) -> torch.device:
        """Where the model is, and its inputs belong."""
        return self._group.device

    @property
    def last_pass(self) -> bool:
        """Whether the pass at hand ends a step. With a GradScaler: `if job.last_pass: scaler.step(optimizer); scaler.update()`."""
        return self._pass[1] == self._pass[0].passes - 1

    @property
    def gradients(self) -> Gradients:
        """The gradient statistics so far, at the initial batch; zero before they are known."""
        return summed(self._trackers)

    @property
    def noise_scale(self) -> float:
        """The batch at which noise and gradient are as large, in samples; 0 before it is known."""
        g = self.gradients
        return g.variance / g.square * self._initial if g.square > 0 else 0.0

    # What the loader drives.

    def begin(self) -> None:
        """Goes on from the checkpoint, or from what the replicas have in memory. Called by epochs and the loader."""
        if self._begun:
            return
        if self._model is None or self._optimizer is None or self._loader is None:
            raise RuntimeError("a job begins with its model, its optimizer and its loader")
        self._gather()

    def begin_pass(self, step: Setting, number: int) -> None:
        assert self._model is not None
        self._end_quiet()
        if number == 0:
            lone = self.replicas == 1 and step.passes == 1  # it compares two steps that follow each other
            if not lone and self._trackers[0].successive and self._parts() > 1:
                self._pace.since = self.step
            observe = self._pace.takes(self.step, lone)
            self._observer.begin(step, self.rank, observe)
            self._exchanged = False
        self._pass, self._stepped, self._called = (step, number), False, False
        self._window.begin()
        if not self.last_pass:
            self._quieted = self._model._quiet()
            self._quieted.__enter__()

    def end_step(self) -> bool:
        """Called once the script is through with a step; true when batches are others from now on."""
        self._end_quiet()
        if not self._exchanged:  # the script skipped the step, as a GradScaler does when gradients are not finite
            self._exchange()
        self.samples += self._pass[0].batch
        self.step += 1
        self._window.end()
        self._report(False)
        return self._obey()

    def abandon(self) -> None:
        self._end_quiet()

    # The inside.

    @property
    def rank(self) -> int:
        return self._group.member.rank

    @property
    def replicas(self) -> int:
        return self._group.member.replicas

    @property
    def _initial(self) -> int:
        return self._loader.batch_size if self._loader is not None else 1

    def _take_place(self) -> None:
        member = self._group.member
        self._generation = member.generation
        if self._worlds and member.generation:
            self._speaks = member.rank == 0

    def _parts(self) -> int:
        """How many parts of a step are compared as it is set now: replicas, or the passes of one."""
        return sum(1 for s in self.setting.shares if s > 0) if self.replicas > 1 else self.setting.passes

    def _end_quiet(self) -> None:
        if self._quieted is not None:
            self._quieted.__exit__(None, None, None)
            self._quieted = None

    def _step(self, really: Callable[..., Any], *args: Any, **named: Any) -> Any:
        assert self._optimizer is not None
        self._called = True
        if not self.last_pass or self._stepped or not self._begun:
            return None if self._begun else really(*args, **named)
        self._exchange()
        self._stepped = True
        scale = self._pass[0].batch / self._initial
        base = [group["lr"] for group in self._optimizer.param_groups]
        for group, tracker in zip(self._optimizer.param_groups, self._trackers):
            group["lr"] = group["lr"] * (self.setting.factor or self._rule(scale, tracker.gradients()))
        try:
            return really(*args, **named)
        finally:
            for group, rate in zip(self._optimizer.param_groups, base):
                group["lr"] = rate
            self.progress += self.gradients.gain(scale)

    def _computed(self, room: bool) -> Optional[torch.Tensor]:
        """The gradient of this replica is complete: what is to be exchanged goes on its way in the last bucket, or else beside it."""
        self._window.computed()
        if self.replicas > 1 and self._begun and not self._exchanged and self._launched is None and self._exchanges():
            if room:
                return self._numbers()
            self._launch()
        return None

    def _carried(self, sums: torch.Tensor) -> None:
        self._launched = sums, None

    def _exchanges(self) -> bool:
        """Whether replicas exchange what they know in the step at hand. All decide alike."""
        return self._observer.observes or self.step >= self._exchange_at

    def _apart(self) -> int:
        """How many steps from now the next exchange may be: as many as last as long as an order may wait."""
        (step, moment), now = self._exchange_last, time.monotonic()
        self._exchange_last = self.step, now
        seconds = (now - moment) / max(self.step - step, 1)
        hearing = min(_HEARING, self._checkpoint_seconds / 10) if self._folder else _HEARING
        return max(min(int(hearing / seconds), _MOST_APART), 1) if seconds > 0 else 1

    def _known(self) -> list[float]:
        """What this replica knows of the step and receives, in its places among those of all. The norms are left out."""
        self._orders.poll()
        orders, replicas, groups = self._orders, self.replicas, self._observer.groups
        own = [0.0] * (_SLOTS + groups + 3 * replicas)
        if orders.terminated or orders.stop and self._speaks and not self._worlds:
            own[_TERMINATED] = 1.0
        if self.rank == 0 and self._folder and time.monotonic() - self._checkpointed >= self._checkpoint_seconds:
            own[_CHECKPOINT] = 1.0
        if self.rank == 0:
            own[_APART] = self._apart()
        shares = _SLOTS + groups
        if self._speaks:
            own[_CHECKPOINT] += orders.checkpoint
            t, orders.tuning, orders.checkpoint = orders.tuning, None, False
            if t is not None:
                own[_TUNED], own[_BATCH], own[_ACCUMULATION] = 1.0, t.batch_per_device, t.accumulation_steps
                own[_FACTOR] = t.learning_rate_factor
                for r, b in enumerate(t.batch_by_replica[:replicas]):
                    own[shares + r] = b
                if len(t.batch_by_replica) not in (0, replicas):
                    own[shares:shares + replicas] = [0.0] * replicas
        own[shares + replicas + self.rank] = float(orders.stop)
        own[shares + 2 * replicas + self.rank] = orders.world.generation if orders.world is not None and self._worlds else 0
        return own

    def _numbers(self) -> torch.Tensor:
        """What this replica knows, norms and all."""
        vector = torch.tensor(self._known(), dtype=torch.float64, device=self._group.device)
        for g, norm in enumerate(self._observer.local()):
            vector[_SLOTS + g] = norm
        return vector

    def _launch(self) -> None:
        """Begins to sum what the replicas know."""
        vector = self._numbers()
        self._launched = vector, dist.all_reduce(vector, async_op=True)

    def _exchange(self) -> None:
        """All replicas learn what is known of the step, and wanted of them."""
        self._exchanged = True
        if self.replicas == 1:
            told = self._known()
            for g, norm in enumerate(self._observer.local()):
                told[_SLOTS + g] = float(norm)
        elif self._launched is None and not self._exchanges():
            self._tuning, self._due = self.setting, _NOTHING
            return
        else:
            told = self._sums()
        self._exchange_at = self.step + int(told[_APART])
        replicas, shares = self.replicas, _SLOTS + self._observer.groups
        scale = float(self._scaler.get_scale()) if self._scaler is not None else 1.0
        for tracker, (scatter, successive) in zip(self._trackers, self._observer.scatters(told[_SLOTS:shares], self._initial, scale)):
            tracker.take(scatter, successive)
        if told[_TUNED]:
            self._tuning = tuned(self._initial, replicas, int(told[_BATCH]), int(told[_ACCUMULATION]), told[_FACTOR],
                                 [int(b) for b in told[shares:shares + replicas]])
        else:
            self._tuning = self.setting
        stops = told[shares + replicas:shares + 2 * replicas]
        self._due = {"checkpoint": told[_CHECKPOINT] > 0, "stop": told[_TERMINATED] > 0 or all(stops)}
        self._generation = max(self._generation, int(max(told[shares + 2 * replicas:])))

    def _sums(self) -> list[float]:
        """The sums over all replicas of what each knows."""
        began = self._window.now()
        if self._launched is None:
            self._launch()
        assert self._launched is not None
        (vector, work), self._launched = self._launched, None
        if work is not None:
            with self._ending.together():
                work.wait()
        told: list[float] = vector.tolist()
        self._window.synchronised(began)
        return told

    def _obey(self) -> bool:
        """Does what was asked for with the last step. True when batches are others from now on."""
        due, before = self._due, self.setting
        self.setting = self._tuning
        if due["stop"]:
            self._save()
            self._report(True)
            self._exit()
        if due["checkpoint"]:
            self._save()
        if self._generation > self._group.member.generation:
            self._change_world()
            return True
        if self.setting != before:
            self._window.tuned(self.setting)
            return True
        return False

    def _change_world(self) -> None:
        """The replicas that stay meet those that came; what they have in memory goes on."""
        assert self._model is not None
        self._model._part()
        self._observer.forget()
        deadline = time.monotonic() + 60
        while self._orders.world is None or self._orders.world.generation < self._generation:
            self._orders.poll()
            if self._orders.stop or self._orders.terminated or time.monotonic() > deadline:  # this one leaves
                self._exit()
            time.sleep(0.002)
        self._group.leave()
        self._group.member = self._group.member.told(self._orders.world)
        try:
            self._group.form(True)
        except Stopped:
            self._exit()
        self._take_place()
        self._gather()

    def _gather(self) -> None:
        """All replicas take over what one of them has: the first that trained before, or the first, from its checkpoint."""
        assert self._model is not None and self._loader is not None
        told: list[Any] = [None] * self.replicas
        with self._ending.together():
            dist.all_gather_object(told, bool(self._begun))
        source = told.index(True) if True in told else 0
        state: Optional[dict[str, Any]] = None
        problem: Optional[str] = None
        try:
            if self.rank == source:
                if self._begun:
                    state = self._snapshot([]) if not all(told) else None
                elif self._folder:
                    state = _checkpoint.load(self._folder, self._identity())
        except _checkpoint.CheckpointError as refused:
            problem = str(refused)
        box: list[Any] = [state, problem]
        with self._ending.together():
            dist.broadcast_object_list(box, src=source)
        state, problem = box
        if problem:
            self._leave()
            raise _checkpoint.CheckpointError(problem)
        if state is not None and not self._begun:
            self._restore(state)
        with self._ending.together():
            self._model._join()
        self.setting = tuned(self._initial, self.replicas) if len(self.setting.shares) != self.replicas else self.setting
        if not self._begun:
            self._observer.begin(self.setting, self.rank, False)
            self._checkpointed = time.monotonic()
        self._begun = True
        self._exchange_at = self.step
        self._exchange()  # a tuning may have arrived meanwhile
        self.setting = self._tuning
        self._window.begin_world(self._group.member, self.setting)

    def _identity(self) -> dict[str, Any]:
        """What a checkpoint must agree in with the training that goes on from it."""
        assert self._model is not None and self._loader is not None
        batches = self._loader.batches
        return {"samples": batches.samples, "seed": batches.seed, "shuffle": batches.shuffle, "batch_size": self._initial,
                "parameters": {name: list(p.shape) for name, p in self._model.module.named_parameters()}}

    def _snapshot(self, generators: list[Any]) -> dict[str, Any]:
        assert self._model is not None and self._optimizer is not None and self._loader is not None
        return {
            "model": self._model.module.state_dict(), "optimizer": self._optimizer.state_dict(),
            "statistics": [t.state_dict() for t in self._trackers], "statistics_since": self._pace.since, "step": self.step, "samples": self.samples,
            "progress": self.progress, "epoch": self._epoch, "position": self._loader.batches.position,
            "kept": {name: value.state_dict() for name, value in self._kept.items()}, "state": self.state,
            "random": generators,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        assert self._model is not None and self._optimizer is not None and self._loader is not None
        try:
            self._model.module.load_state_dict(state["model"])
            self._optimizer.load_state_dict(state["optimizer"])
            if len(state["statistics"]) != len(self._trackers):
                raise ValueError(f"it has {len(state['statistics'])} parameter groups, here are {len(self._trackers)}")
            for tracker, kept in zip(self._trackers, state["statistics"]):
                tracker.load_state_dict(kept)
            self._pace.since = int(state.get("statistics_since", 0))  # not in checkpoints of before
            self.step, self.samples, self.progress = int(state["step"]), int(state["samples"]), float(state["progress"])
            self._epoch = self._loader.batches.epoch = int(state["epoch"])
            self._loader.batches.position = int(state["position"])
            missing = sorted(set(self._kept) - set(state["kept"]))
            if missing:
                raise ValueError(f"it keeps no {', '.join(missing)}")
            for name, value in self._kept.items():
                value.load_state_dict(state["kept"][name])
            self.state.update(state["state"])
        except (KeyError, ValueError, RuntimeError, TypeError, AttributeError) as wrong:
            raise _checkpoint.CheckpointError(f"take over a state: {wrong}") from wrong
        set_random(state["random"], self.rank, (self._loader.batches.seed * 1_000_003 + self.step) % (1 << 60))

    def _save(self) -> None:
        """A checkpoint, which all replicas agreed on. Rank 0 writes it; the others wait, so that nobody is gone before it is whole."""
        if not self._folder:
            return
        generators: list[Any] = [None] * self.replicas
        with self._ending.together():
            dist.all_gather_object(generators, random_state(self._group.device))
        box: list[Any] = [None]
        if self.rank == 0:
            try:
                _checkpoint.save(self._folder, self._identity(), self._snapshot(generators))
            except _checkpoint.CheckpointError as failed:
                box = [str(failed)]
        with self._ending.together():
            dist.broadcast_object_list(box, src=0)
        self._checkpointed = time.monotonic()
        if box[0] is not None:
            if self.rank == 0:
                log.warning("%s; the training goes on from memory, with the checkpoint before", box[0])
            return
        if self._speaks and self._agent is not None:
            self._agent.checkpointed(self.progress)

    def _report(self, now: bool) -> None:
        if self._speaks and self._agent is not None and (now or self._window.due()):
            self._window.report(self._agent, self.gradients, self.progress)

    def _leave(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._ending.over()
        if self._agent is not None:
            self._agent.close()
        self._undo_signals()
        if self._model is not None:
            self._model._part()
        self._group.leave()

    def _exit(self) -> None:
        self._leave()
        sys.exit(STOPPED)
