"""Values to and from the wire."""

from __future__ import annotations

from typing import Any, TypeVar
from collections.abc import Iterable, Sequence

from ._proto import stages_pb2, view_pb2
from .cluster import Pool, Price, Resources, Seat
from .decisions import Code, Curve, Grant, Placement, PoolTarget, Reason, Response, Standing, Tuning, UnlikeRates, Verdict
from .job import (
    AloneTime, BatchSteps, Gradients, Measurement, Pair, PairTable, Point, Sensitivity, Series, StepTimes, Truth, TypeTimes, UnlikeTimes,
)

_CODES = {Code.ADMIT: view_pb2.CODE_ADMIT, Code.DEFER: view_pb2.CODE_DEFER, Code.REJECT: view_pb2.CODE_REJECT, Code.END: view_pb2.CODE_END}

A = TypeVar("A", bound=tuple[Any, ...])


def owned(answer: Iterable[A] | None, kind: type[A], what: str) -> list[A]:
    """A list of the policy's answer that it cannot change later. None is an empty answer."""
    items = [] if answer is None else list(answer)
    for item in items:
        if type(item) is not kind:
            raise TypeError(f"{what} must answer with {kind.__name__}, not {item!r}")
    return items


def owned_grants(answer: Iterable[Grant] | None) -> list[Grant]:
    return [
        g if type(g.proposed) is tuple else g._replace(proposed=tuple(g.proposed))
        for g in owned(answer, Grant, "allocate")
    ]


def owned_placements(answer: Iterable[Placement] | None) -> list[Placement]:
    return [
        p if type(p.seats) is tuple else p._replace(seats=tuple(p.seats))
        for p in owned(answer, Placement, "placed")
    ]


def seats_to(seats: Iterable[Seat]) -> list[view_pb2.Seat]:
    return [view_pb2.Seat(node=node, devices=devices) for node, devices in seats]


def seats_from(told: Iterable[view_pb2.Seat]) -> tuple[Seat, ...]:
    return tuple([Seat(s.node, s.devices) for s in told])


def grants_to(grants: Iterable[Grant]) -> list[stages_pb2.Grant]:
    return [
        stages_pb2.Grant(
            job=g.job, accelerator=g.accelerator, replicas=g.replicas, blocking=g.blocking, proposed=seats_to(g.proposed),
            group=g.group,
        )
        for g in grants
    ]


def grants_from(told: Iterable[stages_pb2.Grant]) -> list[Grant]:
    return [Grant(g.job, g.replicas, g.accelerator, g.blocking, seats_from(g.proposed), g.group) for g in told]


def resources_to(resources: Resources | None) -> view_pb2.Resources | None:
    return None if resources is None else view_pb2.Resources(cpus=resources.cpus, memory_gb=resources.memory_gb)


def resources_from(told: view_pb2.Resources) -> Resources:
    return Resources(told.cpus, told.memory_gb)


def placements_to(placements: Iterable[Placement]) -> list[stages_pb2.Placement]:
    return [
        stages_pb2.Placement(job=p.job, seats=seats_to(p.seats), evicted=p.evicted, resources=resources_to(p.resources))
        for p in placements
    ]


def placements_from(told: Iterable[stages_pb2.Placement]) -> list[Placement]:
    return [
        Placement(p.job, seats_from(p.seats), p.evicted, resources_from(p.resources) if p.HasField("resources") else None)
        for p in told
    ]


def verdicts_to(verdicts: Iterable[Verdict]) -> list[view_pb2.Verdict]:
    return [
        view_pb2.Verdict(
            job=v.job, code=_CODES[v.code], reason=Reason(v.reason).value,
            wanted=v.wanted, available=v.available, unit=v.unit, message=v.message, expected_seconds=v.expected_seconds,
        )
        for v in verdicts
    ]


def pools_from(told: Iterable[view_pb2.Pool]) -> list[Pool]:
    return [
        Pool(
            p.name, p.accelerator, p.devices, p.cpus, p.memory_gb, p.min_nodes, p.max_nodes, p.price_per_hour,
            tuple([Price(price.from_seconds, price.per_hour) for price in p.prices]),
            p.up_cooldown_seconds, p.down_cooldown_seconds, p.provisioning_seconds, p.spot, p.device_memory_gb,
        )
        for p in told
    ]


def pool_targets_to(targets: Iterable[PoolTarget]) -> list[stages_pb2.PoolTarget]:
    return [stages_pb2.PoolTarget(pool=t.pool, nodes=t.nodes, remove=t.remove, message=t.message) for t in targets]


def tuning_from(told: view_pb2.Tuning) -> Tuning:
    return Tuning(told.job, told.batch_per_device, told.accumulation_steps, told.learning_rate_factor, tuple(told.batch_by_replica))


def tunings_from(told: Iterable[view_pb2.Tuning]) -> list[Tuning]:
    return [tuning_from(t) for t in told]


def tunings_to(tunings: Iterable[Tuning]) -> list[view_pb2.Tuning]:
    return [
        view_pb2.Tuning(
            job=t.job, batch_per_device=t.batch_per_device, accumulation_steps=t.accumulation_steps,
            learning_rate_factor=t.learning_rate_factor, batch_by_replica=t.batch_by_replica,
        )
        for t in tunings
    ]


def responses_to(responses: Iterable[Response]) -> list[view_pb2.Response]:
    return [
        view_pb2.Response(
            job=r.job, min_replicas=r.min_replicas, max_replicas=r.max_replicas, remaining_work=r.remaining_work, alone=r.alone,
            curves=[view_pb2.Curve(one_node=c.one_node, many_nodes=c.many_nodes) for c in r.curves],
            unlike=None if r.unlike is None else view_pb2.UnlikeRates(alone=r.unlike.alone, sync_seconds=r.unlike.sync_seconds),
        )
        for r in responses
    ]


def response_from(told: view_pb2.Response, before: Response) -> Response:
    curves, unlike = before.curves, before.unlike
    if not told.same_curves:
        curves = tuple([Curve(tuple(c.one_node), tuple(c.many_nodes)) for c in told.curves])
        unlike = None
        if told.HasField("unlike"):
            unlike = UnlikeRates(tuple(told.unlike.alone), tuple(told.unlike.sync_seconds))
    return Response(told.job, told.min_replicas, told.max_replicas, curves, told.remaining_work, unlike, told.alone)


def step_times_from(told: view_pb2.StepTimes) -> StepTimes:
    unlike = None
    if told.HasField("unlike"):
        alone = tuple([AloneTime(a.accelerator, a.seconds) for a in told.unlike.alone])
        unlike = UnlikeTimes(alone, tuple(told.unlike.sync_seconds))
    types = tuple([TypeTimes(t.accelerator, tuple(t.one_node), tuple(t.many_nodes)) for t in told.types])
    return StepTimes(tuple(told.one_node), tuple(told.many_nodes), types, unlike)


def measurements_from(told: Iterable[view_pb2.Measurement]) -> tuple[Measurement, ...]:
    return tuple([Measurement(m.nodes, m.replicas, m.per_device, m.pass_seconds, m.step_seconds, m.accelerator, m.count, m.spread) for m in told])


def gradients_from(told: view_pb2.Gradients) -> Gradients:
    return Gradients(told.square, told.variance)


def reported_from(told: Iterable[view_pb2.Series], before: Sequence[Series]) -> tuple[Series, ...]:
    """What a job reported, with what is new and without what it took back."""
    reported = {s.metric: s for s in before}
    for m in told:
        points = reported[m.metric].points if m.metric in reported else ()
        if not 0 <= m.kept <= len(points):
            raise ValueError(f"{m.kept} points of {m.metric!r} are kept, of which there are {len(points)}")
        new = [Point(p.step, p.value, p.at_seconds) for p in m.points]
        reported[m.metric] = Series(m.metric, (*points[: m.kept], *new))
    return tuple(reported.values())


def truth_from(told: view_pb2.Truth) -> Truth:
    steps = tuple([BatchSteps(s.batch, s.steps) for s in told.steps])
    return Truth(measurements_from(told.measurements), gradients_from(told.gradients), steps)


def sensitivity_from(told: view_pb2.Sensitivity) -> Sensitivity:
    speeds = tuple([tuple(row.by_memory) for row in told.speeds])
    return Sensitivity(
        resources_from(told.base), resources_from(told.ideal), told.speedup, told.iteration_seconds,
        tuple(told.cpus), tuple(told.memory_gb), speeds,
    )


def pairs_from(told: view_pb2.PairTable) -> PairTable:
    return PairTable([Pair(p.accelerator, (p.application, p.beside), p.replicas, (p.part, p.beside_part)) for p in told.pairs])


def standing_to(standing: Standing | None) -> view_pb2.Standing | None:
    if standing is None:
        return None
    return view_pb2.Standing(until_seconds=standing.until_seconds, if_seated=standing.if_seated)
