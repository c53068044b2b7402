"""Norms of gradients, taken where DistributedDataParallel hands its buckets over: a communication hook sees the gradient of this replica
before it is summed, and that of all afterwards."""

# No annotations from __future__ here: torch looks at those of a communication hook.

from collections.abc import Iterator, Sequence
from typing import Any, Callable, Optional

import torch
import torch.distributed as dist
from torch import Tensor

from quartet_torch._plan import Setting
from quartet_torch._statistics import Scatter

_ROW = 1024
_WARM_STEPS = 5  # after which the denominator of Adam is taken for what it will be


def _square(x: Tensor) -> Tensor:
    """The squared norm: of rows of 1,024 values in float32, which is right to 8 digits and a tenth of the work, and in float64 of all rows."""
    flat = x.reshape(-1)
    whole = flat.numel() // _ROW * _ROW
    if not whole:
        return torch.linalg.vector_norm(flat, dtype=torch.float64).square()
    exact = flat.dtype == torch.float64
    norms = torch.linalg.vector_norm(flat[:whole].view(-1, _ROW), dim=1, dtype=None if exact else torch.float32)
    norms = norms.double()
    square = torch.dot(norms, norms)
    return square if whole == flat.numel() else square + torch.linalg.vector_norm(flat[whole:], dtype=torch.float64).square()


class Observer:
    """Watches the gradients of one step after the other.

    The gradient of a step is the mean over its samples, whatever the shares of replicas: the hook weighs them. Norms are kept by
    parameter group of the optimizer. With several replicas each is a part of the batch; one replica has its passes for parts, or, with
    one pass, the step before.
    """

    def __init__(self) -> None:
        self._group_of: dict[int, int] = {}  # by id of the parameter
        self._groups = 1
        self._parameters: list[Tensor] = []
        self._optimizer: Optional[torch.optim.Optimizer] = None
        self._precondition = False
        self._handles: list[Any] = []
        # By bucket: of which parameters, their gradient, and its squared norms.
        self._previous: dict[int, tuple[tuple[int, ...], Tensor, list[tuple[int, Tensor]]]] = {}
        self._previous_scale = (0.0, 0.0)  # of the batch, and of the loss
        self._before: dict[int, tuple[tuple[int, ...], Tensor, list[tuple[int, Tensor]]]] = {}
        # Called when the gradient of this replica is complete, with whether its last bucket has room for numbers to be summed, too; it returns
        # them. carried is called with their sums.
        self.computed: Callable[[bool], Optional[Tensor]] = lambda room: None
        self.carried: Callable[[Tensor], None] = lambda sums: None
        # By bucket: memory for its gradient and the numbers, and views of the gradient, of the numbers, and of either of their parts.
        self._carriers: dict[int, tuple[Tensor, Tensor, Tensor, Tensor, Tensor]] = {}
        self.reduced: Callable[[], None] = lambda: None  # called when that of all is
        self.failed: Callable[[BaseException], None] = lambda problem: None  # called when that of all does not come
        self._step, self._rank = Setting(()), 0
        self.begin(Setting((1,)), 0, True)

    def follow(self, optimizer: torch.optim.Optimizer, precondition: bool) -> None:
        """Takes the groups from an optimizer. To precondition is to divide gradients, element by element, by the denominator of Adam."""
        self._optimizer, self._precondition = optimizer, precondition
        self._groups = len(optimizer.param_groups)
        self._parameters = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
        self._group_of = {id(p): g for g, group in enumerate(optimizer.param_groups) for p in group["params"]}

    @property
    def groups(self) -> int:
        return self._groups

    @property
    def observes(self) -> bool:
        """Whether norms are taken in the step at hand."""
        return self._observe

    def begin(self, step: Setting, rank: int, observe: bool) -> None:
        """Begins a step of so many samples of each replica."""
        if (step, rank) != (self._step, self._rank):
            self._step, self._rank = step, rank
            one = sum(step.shares)
            self._share = step.shares[rank] / one if one else 0.0
            self._weight = self._share / step.passes
            self._alone = len(step.shares) == 1
        self._observe = observe
        if observe:
            self._local: list[list[Tensor]] = [[] for _ in range(self._groups)]
            self._total: list[list[Tensor]] = [[] for _ in range(self._groups)]
            self._passes: list[list[Tensor]] = [[] for _ in range(self._groups)]
            self._pairs: list[list[Tensor]] = [[] for _ in range(self._groups)]
        self._before, self._previous = self._previous, {}
        self._flying: list[tuple[int, Sequence[Tensor], Tensor, Any, torch.futures.Future[Tensor]]] = []
        self._matched = True  # each bucket is that of the step before
        self._compare = observe and self._alone and step.passes == 1
        self._watch_passes(observe and self._alone and step.passes > 1)

    def forget(self) -> None:
        """Drops the gradient of the step before."""
        self._previous, self._before = {}, {}

    def _watch_passes(self, wanted: bool) -> None:
        if wanted == bool(self._handles):
            return
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if wanted:
            for p in self._parameters:
                self._handles.append(p.register_hook(self._watcher(p)))

    def _watcher(self, parameter: Tensor) -> Callable[[Tensor], None]:
        group = self._group_of[id(parameter)]

        def watch(gradient: Tensor) -> None:
            self._passes[group].append(_square(self._conditioned(parameter, gradient.detach())))

        return watch

    def hook(self, state: object, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
        """The communication hook: the weighted mean over replicas, which is what DistributedDataParallel makes of equal ones."""
        buffer = bucket.buffer()
        index, parameters = (bucket.index(), bucket.parameters()) if self._observe else (0, ())
        if self._observe and not self._alone and self._share:
            passes = self._step.passes
            for group, own in self._of(parameters, buffer):
                self._local[group].append(_square(own) * (self._share / passes**2))
        last = bucket.is_last()
        beside = self.computed(not self._alone and buffer.dtype in (torch.float32, torch.float64)) if last else None
        whole, numbers = buffer, None
        if beside is not None:
            whole, buffer, numbers = self._carry(bucket.index(), buffer, beside)
        elif self._weight != 1:
            buffer.mul_(self._weight)
        reduced: torch.futures.Future[Tensor] = torch.futures.Future(devices=[buffer.device] if buffer.is_cuda else None)
        work = None if self._alone else dist.all_reduce(whole, async_op=True)
        self._flying.append((index, parameters, buffer, work, reduced))
        if last:
            self._land(numbers)
        return reduced

    def _land(self, numbers: Optional[Tensor]) -> None:
        """Waits for the buckets on their way, once the last one is. Callbacks would come in another thread, for which this one waits longer."""
        flying, self._flying = self._flying, []
        try:
            for _, _, _, work, _ in flying:
                if work is not None:
                    work.wait()
        except RuntimeError as problem:
            self.failed(problem)
            raise
        if numbers is not None:
            self.carried(numbers.sum(0, dtype=torch.float64))
        self.reduced()
        for index, parameters, value, _, reduced in flying:
            if self._observe:
                self._observe_total(index, parameters, value)
            reduced.set_result(value)

    def _carry(self, index: int, buffer: Tensor, beside: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The weighted gradient of a bucket with numbers behind it, each as what its type holds and the rest; and views of both."""
        size, count = buffer.numel(), beside.numel()
        carrier = self._carriers.get(index)
        if carrier is None or carrier[1].numel() != size or carrier[3].numel() != count or \
                carrier[0].dtype != buffer.dtype or carrier[0].device != buffer.device:
            whole = torch.empty(size + 2 * count, dtype=buffer.dtype, device=buffer.device)
            tail = whole[size:].view(2, -1)
            carrier = self._carriers[index] = whole, whole[:size], tail, tail[0], tail[1]
        whole, gradient, numbers, held, rest = carrier
        torch.mul(buffer, self._weight, out=gradient)
        held.copy_(beside)
        torch.sub(beside, held, out=rest)
        return whole, gradient, numbers

    def _observe_total(self, index: int, parameters: Sequence[Tensor], value: Tensor) -> None:
        """Takes in the gradient of all replicas."""
        norms = [(g, _square(part)) for g, part in self._of(parameters, value)]
        for group, norm in norms:
            self._total[group].append(norm)
        if self._compare:
            self._pair(index, parameters, value, norms)

    def _of(self, parameters: Sequence[Tensor], flat: Tensor) -> Iterator[tuple[int, Tensor]]:
        """The parts of a bucket by group, preconditioned if so wanted: all of it at once where there is one group."""
        if self._groups == 1 and not self._precondition:
            yield 0, flat
            return
        at = 0
        for p in parameters:
            part = flat[at:at + p.numel()]
            at += p.numel()
            yield self._group_of.get(id(p), 0), self._conditioned(p, part.view_as(p))

    def _conditioned(self, parameter: Tensor, gradient: Tensor) -> Tensor:
        if not self._precondition or self._optimizer is None:
            return gradient
        state = self._optimizer.state.get(parameter, {})
        if "exp_avg_sq" not in state:
            return gradient
        step = float(state["step"])
        if step < _WARM_STEPS:
            return gradient
        for group in self._optimizer.param_groups:
            if any(p is parameter for p in group["params"]):
                beta, eps = group["betas"][1], group["eps"]
                return gradient / ((state["exp_avg_sq"] / (1 - beta**step)).sqrt() + eps)
        return gradient

    def _pair(self, index: int, parameters: Sequence[Tensor], value: Tensor, norms: list[tuple[int, Tensor]]) -> None:
        """Keeps the gradient for the next step, and compares it with the one before."""
        ids = tuple(id(p) for p in parameters)
        known, before, old = self._before.get(index, ((), value, []))
        if known != ids:
            self._matched = False
            before = torch.empty_like(value)
        else:
            for group, mean in self._of(parameters, before.add_(value)):
                self._pairs[group].append(_square(mean) / 4)
            for group, norm in old:
                self._local[group].append(norm)
        self._previous[index] = (ids, before.copy_(value), norms)

    def local(self) -> list[Tensor]:
        """What this replica adds to the mean of the parts' norms, by group; nothing in a step without norms."""
        return [_sum(norms) for norms in self._local] if self._observe else []

    def scatters(self, local: Sequence[float], initial_batch: int, loss_scale: float) -> list[tuple[Scatter, bool]]:
        """What the step says about each group, and whether it was compared with the step before. local is the sum over replicas."""
        if not self._observe:
            return []
        scale, undo = self._step.batch / initial_batch, 1.0 / loss_scale**2
        totals = [float(_sum(norms)) * undo for norms in self._total]
        if not self._alone:
            parts = sum(1 for s in self._step.shares if s > 0)
            return [(Scatter(parts, x * undo, t, scale), False) for x, t in zip(local, totals)]
        if self._step.passes > 1:
            n = self._step.passes
            return [(Scatter(n, float(_sum(norms)) * undo / n, t, scale), False) for norms, t in zip(self._passes, totals)]
        same = self._matched and any(self._pairs) and self._previous_scale == (scale, loss_scale)
        self._previous_scale = (scale, loss_scale)
        if not same:
            return []
        return [(Scatter(2, (x * undo + t) / 2, float(_sum(pair)) * undo, 2 * scale), True)
                for x, t, pair in zip(local, totals, self._pairs)]


def _sum(norms: Sequence[Tensor]) -> Tensor:
    if len(norms) == 1:
        return norms[0]
    return torch.stack(list(norms)).sum() if norms else torch.zeros((), dtype=torch.float64)
