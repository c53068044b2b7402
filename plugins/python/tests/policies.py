#!/usr/bin/env python3
"""One simple policy for each stage, which the Go tests hold to the contract of the stage, and some that misbehave."""

import os
import struct
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from quartet_plugin import (
    ANY_ACCELERATOR, FOR_EVER, AdmissionPolicy, AllocationPolicy, Capability, Code, Curve, ElasticityPolicy, Grant, Guarantees,
    JobState, Ledger, Placement, PlacementPolicy, PoolTarget, Reason, Response, ScalerPolicy, Seat, Seating, Sharing, Tuning, Verdict,
    field, group_of, main, replicas,
)


class AcceptAll(AdmissionPolicy):
    type = "accept_all"
    summary = "admits every job"

    def admit(self, view, waiting):
        return []

    def standing(self):
        return FOR_EVER


class LoadLimit(AdmissionPolicy):
    type = "load_limit"
    summary = "defers jobs while the admitted ones ask for more than there is"

    def admit(self, view, waiting):
        load = sum(view.job(id).requested for id in view.active)
        for job in waiting:
            if load + job.requested > view.devices:
                yield Verdict(job.id, Code.DEFER, Reason.LOAD_LIMIT, job.requested, max(view.devices - load, 0), "devices")
            else:
                load += job.requested


class Fifo(AllocationPolicy):
    type = "fifo"
    summary = "first submitted, first served"

    def allocate(self, view, candidates):
        running = [c for c in candidates if c.job.state is JobState.RUNNING]
        waiting = [c for c in candidates if c.job.state is not JobState.RUNNING]
        grants = [Grant(c.job.id, c.job.held) for c in running if self._may_stay(c)]
        grants += [Grant(c.job.id, c.response.min_replicas, blocking=True) for c in waiting]
        return grants

    @staticmethod
    def _may_stay(candidate):
        return candidate.response.min_replicas <= candidate.job.held <= candidate.response.max_replicas


class Las(AllocationPolicy):
    type = "las"
    summary = "least attained service first"

    def allocate(self, view, candidates):
        order = sorted(candidates, key=lambda c: (c.job.attained_service(view.now_seconds), c.job.id))
        return [Grant(c.job.id, c.response.min_replicas) for c in order]


class FirstFit(PlacementPolicy):
    type = "first_fit"
    summary = "the first free devices; what runs stays"

    def place(self, view, grants):
        free = Ledger(view.cluster)
        stays = [g for g in grants if self._can_stay(view, g) and free.occupy(view.job(g.job).seats)]
        staying = {g.job for g in stays}
        placed: list[Placement] = []
        unseated: list[Verdict] = []
        reason = Reason.WAITING_FOR_DEVICES
        for grant in grants:
            job = view.job(grant.job)
            seats = job.seats if grant.job in staying else None
            if seats is None and reason is Reason.WAITING_FOR_DEVICES:
                seats = self._first_fit(view, free, job, grant)
            if seats:
                placed.append(Placement(grant.job, seats))
                continue
            unseated.append(Verdict(grant.job, Code.DEFER, reason))
            if grant.blocking:
                reason = Reason.BLOCKED_BY_EARLIER
        return Seating(placed, unseated)

    @staticmethod
    def _can_stay(view, grant):
        job = view.job(grant.job)
        if job.held != grant.replicas:
            return False
        nodes = view.cluster.nodes
        return job.held > 0 and grant.accelerator in (ANY_ACCELERATOR, nodes[job.seats[0].node].accelerator)

    @staticmethod
    def _first_fit(view, free, job, grant):
        types = range(len(view.cluster.accelerators)) if grant.accelerator == ANY_ACCELERATOR else [grant.accelerator]
        for accelerator in types:
            if not job.can_run_on(view.cluster, accelerator):
                continue
            seats = []
            missing = grant.replicas
            for node in view.cluster.nodes:
                if missing and node.accelerator == accelerator and free.free(node.id):
                    seats.append(free.take(node.id, missing))
                    missing = grant.replicas - replicas(seats)
            if not missing:
                return seats
            free.release(seats)
        return None


class Pairs(AllocationPolicy):
    type = "pairs"
    summary = "gives jobs what they request, two that request as much on the same devices"
    sharing = (Sharing.TIME_SLICE,)

    def allocate(self, view, candidates):
        left, group = list(candidates), 0
        while left:
            first = left.pop(0)
            other = next((c for c in left if c.job.requested == first.job.requested), None)
            if other is None or view.cluster.max_owners < 2:
                yield Grant(first.job.id, first.job.requested)
                continue
            left.remove(other)
            group += 1
            yield Grant(first.job.id, first.job.requested, group=group)
            yield Grant(other.job.id, other.job.requested, group=group)

    def standing(self):
        return FOR_EVER


class Together(FirstFit):
    type = "together"
    summary = "the first free devices, the same ones for a group; nobody stays"
    sharing = (Sharing.TIME_SLICE,)
    counts = True
    divides = True

    def place(self, view, grants):
        firsts, others, at = [], {}, 0
        while at < len(grants):
            n = group_of(grants, at)
            firsts.append(grants[at])
            others[grants[at].job] = grants[at + 1 : at + n]
            at += n
        placed, unseated = super().place(view, firsts)
        for first in list(placed):
            placed += [Placement(other.job, first.seats) for other in others[first.job]]
        for verdict in list(unseated):
            unseated += [verdict._replace(job=other.job) for other in others[verdict.job]]
        return Seating(placed, unseated)


class Fixed(ElasticityPolicy):
    type = "fixed"
    summary = "every job runs with exactly what it asked for"

    def respond(self, view, jobs):
        return [Response(j.id, j.requested, j.requested) for j in jobs]

    def standing(self):
        return FOR_EVER


class Linear(ElasticityPolicy):
    type = "linear"
    summary = "twice the devices, twice the rate; batches of 32"

    def respond(self, view, jobs):
        for j in jobs:
            rates = [float(r) for r in range(1, j.max_replicas + 1)]
            yield Response(j.id, j.min_replicas, j.max_replicas, [Curve(rates, [r / 2 for r in rates])])

    def tune(self, view, placements):
        return [Tuning(p.job, 32, 0, 1.0) for p in placements if view.job(p.job).tuning.batch_per_device != 32]

    def standing(self):
        return FOR_EVER


class Seats(ScalerPolicy):
    type = "seats"
    summary = "wants devices in its pools for the least of each job, and lets the last nodes of a pool go first"

    def scale(self, view, plan):
        missing = sum(c.response.min_replicas for c in plan.candidates)
        for pool in view.cluster.pools:
            nodes = min(max(-(-missing // pool.devices), pool.min_nodes), pool.max_nodes)
            missing -= nodes * pool.devices
            if nodes != view.cluster.pool_size(pool.name):
                last = [node.id for node in reversed(view.cluster.nodes) if node.pool == pool.name]
                yield PoolTarget(pool.name, nodes, last, f"for {len(plan.candidates)} jobs")


class Keep(ScalerPolicy):
    type = "keep"
    summary = "wants a node for each placement"

    def scale(self, view, plan):
        return len(plan.placements)


@dataclass
class Tier:
    tenant: str = field("", doc="who")
    share: float = field(0.0, doc="how much", min=0, max=1)


class Everything(ScalerPolicy):
    type = "everything"
    summary = "has a setting of every type"
    description = "It exists to be configured."
    source = "nowhere"
    capabilities = (Capability.SCALE_CLUSTER,)

    @dataclass
    class Config:
        enabled: bool = field(True, doc="a switch")
        count: int = field(3, doc="a whole number", min=1, max=10)
        factor: float = field(1.5, doc="a number", min=0)
        name: str = field("x", doc="a text")
        order: str = field("up", doc="a choice", enum=["up", "down", "sideways"])
        window: timedelta = field(timedelta(hours=8), doc="a duration", min="1s", max="24h")
        sizes: list[int] = field([1, 2], doc="whole numbers", min=1)
        waits: list[timedelta] = field([timedelta(seconds=90)], doc="durations")
        first: Tier = field(Tier("blue", 0.25), doc="an object")
        tiers: list[Tier] = field([], doc="objects")
        extra: dict[str, Any] = field({}, doc="free keys")

        def validate(self):
            if self.count == 7:
                yield "count: seven is taken"
                yield "sizes[0]: and this, too"
                yield "nothing in particular"

    def scale(self, view, plan):
        return 0


class Strict(ScalerPolicy):
    type = "strict"
    summary = "has a setting without a default"

    @dataclass
    class Config:
        limit: int = field(doc="must be set")

        def capabilities(self):
            return [Capability.REMAINING_WORK] if self.limit > 10 else []

    def setup(self):
        if self.config.limit == 13:
            raise ValueError("a limit of 13 brings bad luck")

    def scale(self, view, plan):
        return self.config.limit


class Mirror(AdmissionPolicy):
    type = "mirror"
    summary = "admits every job, and tells what it sees"
    capabilities = (Capability.REMAINING_WORK, Capability.STEP_TIMES, Capability.MEASUREMENTS, Capability.PAIR_RATES)

    def admit(self, view, waiting):
        return [Verdict(j.id, Code.ADMIT, message="\n".join(self._lines(view, j))) for j in waiting]

    def review(self, view, reported):
        return [Verdict(j.id, Code.ADMIT, message="\n".join(self._lines(view, j))) for j in reported]

    def _lines(self, view, asked):
        now = view.now_seconds
        yield f"{bits(now)} {view.round} {bits(view.interval_seconds)} {str(view.on_events).lower()} {view.devices} {view.waiting}"
        yield f"{view.health_changes} {len(view.jobs)}"
        c = view.cluster
        yield f"{c.sharing.value} {c.max_owners} {str(c.oversubscribes_memory).lower()} {str(c.counts_resources).lower()}"
        yield " ".join(map(str, view.active))
        yield " ".join(map(str, view.changed))
        for n in view.cluster.nodes:
            yield f"{n.id} {n.name} {n.accelerator} {n.devices} {bits(n.cpus, n.memory_gb, n.device_memory_gb, n.expected_seconds)} {n.rack} {n.health.name.lower()} {n.unusable} {n.pool}"
        for p in view.cluster.pools:
            yield f"{p.name} {p.accelerator} {p.devices} {p.min_nodes} {p.max_nodes} {str(p.spot).lower()} {view.cluster.pool_size(p.name)}"
            yield bits(
                p.cpus, p.memory_gb, p.device_memory_gb, p.price_at(now), p.up_cooldown_seconds, p.down_cooldown_seconds, p.provisioning_seconds,
                *(part for price in p.prices for part in price),
            )
        yield " ".join(view.cluster.accelerators)
        for j in view.jobs:
            if j is None:
                continue
            yield f"{j.id} {j.name} {j.tenant} {j.application} {j.requested} {j.min_replicas} {j.max_replicas} {j.tier} {j.experiment}"
            bounds = (part for on in j.batch_by_type for part in on)
            yield f"{' '.join(j.accelerators)} {j.mixes_types} {' '.join(map(str, j.batch))} {' '.join(map(str, bounds))} {' '.join(j.command)}"
            yield f"{j.state.name.lower()} {j.waiting_reason.value} {' '.join(f'{s.node}:{s.devices}' for s in j.seats)}"
            yield f"{j.tuning.batch_per_device} {j.tuning.accumulation_steps} {' '.join(map(str, j.tuning.batch_by_replica))} {j.restarts} {j.preemptions} {j.held}"
            yield bits(j.weight, j.submit_seconds, j.cpus, j.memory_gb, j.total_work, j.tuning.learning_rate_factor)
            yield f"{'whole' if j.share is None else f'{j.share.milli}/{j.share.profile}'} {bits(j.part(), j.utilisation, j.device_memory_gb, j.slowdown_tolerance, *j.iteration)}"
            yield f"{' '.join(map(str, j.slices))} {'asked' if j.resources is None else bits(*j.resources)} {bits(*j.has())}"
            if j.sensitivity:
                s = j.sensitivity
                yield bits(*s.base, *s.ideal, s.speedup, s.iteration_seconds) + "|" + bits(*s.cpus) + "|" + bits(*s.memory_gb)
                for row in s.speeds:
                    yield bits(*row)
            for p in j.pairs.pairs if j.pairs else ():
                yield f"{p.accelerator} {p.applications[0]} {p.applications[1]} {p.replicas} {bits(*p.parts)}"
            yield bits(j.steps_left, j.first_start, j.last_change)
            yield bits(j.executed_seconds(now), j.attained_service(now), j.work_done(now), j.remaining_work(now))
            if j.step_times:
                yield bits(*j.step_times.one_node) + "|" + bits(*j.step_times.many_nodes)
                for on in j.step_times.types:
                    yield on.accelerator + " " + bits(*on.one_node) + "|" + bits(*on.many_nodes)
                if j.step_times.unlike:
                    yield " ".join(f"{a.accelerator} {bits(a.seconds)}" for a in j.step_times.unlike.alone)
                    yield bits(*j.step_times.unlike.sync_seconds)
            if j.truth:
                yield from measurements("true", j.truth.measurements, j.truth.gradients)
            yield from measurements("seen", j.measured, j.gradients)
            for s in j.reported:
                assert j.series(s.metric) is s
                yield s.metric + " " + bits(*(part for point in s.points for part in point))


class CurveMirror(AdmissionPolicy):
    type = "curve_mirror"
    summary = "admits one of three waiting jobs a round, and tells what it sees of the responses of all"
    capabilities = (Capability.REMAINING_WORK, Capability.STEP_TIMES, Capability.MEASUREMENTS)
    promises = True

    def admit_candidates(self, view, admitted, waiting):
        lines = []
        for c in [*admitted, *waiting]:
            r = c.response
            lines.append(f"{c.job.id} {r.job} {r.min_replicas} {r.max_replicas} {bits(r.remaining_work, r.alone)}")
            lines += [bits(*curve.one_node) + "|" + bits(*curve.many_nodes) for curve in r.curves]
            if r.unlike:
                lines.append(bits(*r.unlike.alone) + "|" + bits(*r.unlike.sync_seconds))
        for c in waiting:
            code = Code.ADMIT if (c.job.id + view.round) % 3 == 0 else Code.DEFER
            yield Verdict(c.job.id, code, Reason.POLICY_DECISION, message="\n".join(lines))

    def review(self, view, reported):
        return None


class Convergence(AdmissionPolicy):
    type = "convergence"
    summary = "ends jobs whose loss or accuracy stands still, as the built-in of this name"

    @dataclass
    class Config:
        metrics: list[str] = field(["loss", "accuracy"], doc="a job is judged by the first of these that it reports")
        change: float = field(0.001, doc="the part by which a report that stands still differs at most", min=0, max=1)
        reports: int = field(5, doc="how many reports in a row must show no improvement", min=1)

    def admit(self, view, waiting):
        return None

    def review(self, view, reported):
        c = self.config
        for job in reported:
            series = next(filter(None, map(job.series, c.metrics)), None)
            if series is None or not self._stands([p.value for p in series.points]):
                continue
            message = f"{series.metric} changed by at most {c.change:g} of itself in each of {c.reports} reports"
            yield Verdict(job.id, Code.END, Reason.CONVERGED, message=message)

    def _stands(self, values):
        last = values[-self.config.reports - 1 :]
        pairs = list(zip(last, last[1:]))
        return len(pairs) == self.config.reports and all(abs(b - a) <= self.config.change * abs(a) for a, b in pairs)

    def standing(self):
        return FOR_EVER


class Echo(AllocationPolicy):
    type = "echo"
    summary = "tells what it sees of the candidates, every number as the bits of a seat"

    def guarantees(self):
        return Guarantees(premium=0.9, standard=0.5, basic=0.25)

    def allocate(self, view, candidates):
        for c in candidates:
            r = c.response
            numbers = [r.remaining_work]
            for curve in r.curves:
                numbers += [len(curve.one_node), *curve.one_node, len(curve.many_nodes), *curve.many_nodes]
            if r.unlike:
                numbers += [*r.unlike.alone, *r.unlike.sync_seconds]
            seats = [Seat(0, int.from_bytes(struct.pack(">d", x), "big")) for x in numbers]
            yield Grant(c.job.id, r.min_replicas, r.max_replicas, proposed=seats)


def measurements(kind, measured, gradients):
    yield f"{kind} {bits(gradients.square, gradients.variance)}"
    for m in measured:
        yield f"{m.accelerator} {m.nodes} {m.replicas} {m.per_device} {bits(m.pass_seconds, m.step_seconds)}"


def bits(*numbers):
    """Floats to the last bit; any NaN is nan."""
    return " ".join("nan" if x != x else struct.pack(">d", x).hex() for x in numbers)


FAULTS = ["none", "raise", "exit", "print", "hang", "die", "wrong_type", "log"]


class Misbehaving(AdmissionPolicy):
    type = "misbehaving"
    summary = "does what its config says"

    @dataclass
    class Config:
        fault: str = field("none", doc="what to do", enum=FAULTS)

    def admit(self, view, waiting):
        fault = self.config.fault
        if fault == "raise":
            raise RuntimeError("this is a bug")
        if fault == "exit":
            sys.exit(3)
        if fault == "print":
            print("a line for stdout")
            os.system("echo another one")
        if fault == "hang":
            time.sleep(3600)
        if fault == "die":
            os._exit(7)
        if fault == "wrong_type":
            return [(0, "defer")]
        if fault == "log":
            self.log.info("looked at jobs", extra={"jobs": len(waiting)})
        return None


if __name__ == "__main__":
    print("printed before main")
    main(
        AcceptAll, LoadLimit, Fifo, Las, Pairs, FirstFit, Together, Fixed, Linear, Keep, Seats, Everything, Strict, Mirror, CurveMirror, Convergence, Echo, Misbehaving,
        version="v1.2.3",
    )
