"""A view kept up to date by the changes that the host sends."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from ._convert import (
    gradients_from, measurements_from, pairs_from, pools_from, reported_from, resources_from, response_from, seats_from, sensitivity_from, step_times_from,
    truth_from, tuning_from,
)
from ._proto import view_pb2
from .cluster import MAX_DEVICES_PER_NODE, Cluster, Health, Node, Pool, Sharing, replicas
from .decisions import Reason, Response, Tuning
from .job import BatchSpec, Iteration, Job, JobState, Measurement, PairTable, Sensitivity, Share, StepTimes, Truth, TypeBatch
from .view import Candidate, View

_HEALTH = {
    view_pb2.HEALTH_READY: Health.READY,
    view_pb2.HEALTH_DRAINING: Health.DRAINING,
    view_pb2.HEALTH_DOWN: Health.DOWN,
    view_pb2.HEALTH_PROVISIONING: Health.PROVISIONING,
    view_pb2.HEALTH_GONE: Health.GONE,
}
_SHARING = {
    view_pb2.SHARING_UNSPECIFIED: Sharing.EXCLUSIVE,
    view_pb2.SHARING_FRACTIONAL: Sharing.FRACTIONAL,
    view_pb2.SHARING_TIMESLICE: Sharing.TIME_SLICE,
    view_pb2.SHARING_MIG: Sharing.MIG,
}
_STATES = {
    view_pb2.JOB_STATE_PENDING: JobState.PENDING,
    view_pb2.JOB_STATE_WAITING: JobState.WAITING,
    view_pb2.JOB_STATE_RUNNING: JobState.RUNNING,
}
_MAX_JOBS = 1 << 24  # bounds what a stray number can cost in memory
_UNTOLD = Response(-1, 1, 1)  # the host sends allocation policies and scalers the response of every candidate
_REASONS = {reason.value: reason for reason in Reason}


def _corrected(known: Sequence[Measurement], news: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """What a job measured, with what is new: a measurement of a known configuration replaces it."""
    measured = list(known)
    for m in news:
        at = next((i for i, k in enumerate(measured) if k.same_configuration(m)), None)
        if at is None:
            measured.append(m)
        else:
            measured[at] = m
    return tuple(measured)


class ViewCopy:
    """The copy. An update that makes no sense is a ValueError; the host's next one must then be full."""

    def __init__(self) -> None:
        self._clear([], [])
        self._sequence = -1  # no update but a full one is for this copy

    def _clear(self, accelerators: list[str], pools: list[Pool]) -> None:
        self.view = View(Cluster(accelerators, pools=pools))
        self.candidates: list[Candidate] = []  # of view.active, with the responses sent to those that look at them
        self._pending: dict[int, Response] = {}  # of the jobs that are not admitted yet
        self._tables: dict[int, StepTimes] = {}
        self._truths: dict[int, Truth] = {}
        self._sensitivities: dict[int, Sensitivity] = {}
        self._pairs: dict[int, PairTable] = {}

    def apply(self, update: view_pb2.ViewUpdate) -> bool:
        """Brings the copy up to date. False, and nothing changes, when the update is for another copy."""
        if update.full:
            self._clear(list(update.accelerators), pools_from(update.pools))
            cluster = self.view.cluster
            cluster.sharing, cluster.max_owners = _SHARING.get(update.sharing, Sharing.OTHER), update.max_owners
            cluster.oversubscribes_memory, cluster.counts_resources = update.oversubscribes_memory, update.counts_resources
        elif self._sequence < 0 or update.sequence != self._sequence + 1:
            return False
        self._sequence = -1  # until all of the update is taken in
        for pool in self.view.cluster.pools:
            if not 0 <= pool.accelerator < len(self.view.cluster.accelerators):
                raise ValueError(f"pool {pool.name!r} has unknown accelerator type {pool.accelerator}")
        view = self.view
        view.now_seconds, view.round = update.now_seconds, update.round
        view.interval_seconds, view.on_events = update.interval_seconds, update.on_events
        view.health_changes, view.cluster.may_grow = update.health_changes, update.may_grow
        if update.nodes:
            self._take_nodes(update)
        for table in update.step_times:
            self._tables[table.table] = step_times_from(table)
        for truth in update.truths:
            self._truths[truth.table] = truth_from(truth)
        for sensitivity in update.sensitivities:
            self._sensitivities[sensitivity.table] = sensitivity_from(sensitivity)
        for pairs in update.pairs:
            self._pairs[pairs.table] = pairs_from(pairs)
        self._make_room(update.submitted)
        for told in update.jobs:
            self._take_job(told)
        for id in update.ended:
            self._end(id)
        view.changed = tuple(update.changed)
        self._sequence = update.sequence
        return True

    def _take_nodes(self, update: view_pb2.ViewUpdate) -> None:
        cluster = self.view.cluster
        for n in update.nodes:
            health = _HEALTH.get(n.health)
            if health is None:
                raise ValueError(f"node {n.id} has health {n.health}")
            if not update.full:
                if not 0 <= n.id < len(cluster.nodes):
                    raise ValueError(f"unknown node {n.id}")
                node = cluster.nodes[n.id]
                node.health, node.unusable, node.expected_seconds = health, n.unusable, n.expected_seconds
                continue
            if n.id != len(cluster.nodes):
                raise ValueError(f"node {n.id} is out of order")
            if not 0 <= n.accelerator < len(cluster.accelerators):
                raise ValueError(f"node {n.id} has unknown accelerator type {n.accelerator}")
            if not 0 < n.devices <= MAX_DEVICES_PER_NODE:
                raise ValueError(f"node {n.id} has {n.devices} devices")
            cluster.nodes.append(
                Node(
                    n.id, n.name, n.accelerator, n.devices, cpus=n.cpus, memory_gb=n.memory_gb, rack=n.rack, health=health,
                    unusable=n.unusable, pool=n.pool, expected_seconds=n.expected_seconds, device_memory_gb=n.device_memory_gb,
                )
            )
        self.view.devices = cluster.usable_devices()

    def _make_room(self, submitted: int) -> None:
        jobs = self.view.jobs
        if submitted > _MAX_JOBS:
            raise ValueError(f"{submitted} jobs are more than the {_MAX_JOBS} that a view may hold")
        jobs.extend([None] * (submitted - len(jobs)))

    def _take_job(self, told: view_pb2.Job) -> None:
        job = self.view.job(told.id)
        if job is None:
            job = self._submit(told)
        state, reason = _STATES.get(told.state), _REASONS.get(told.waiting_reason)
        if state is None or reason is None:
            raise ValueError(f"job {told.id} comes in state {told.state} for reason {told.waiting_reason!r}")
        for seat in told.seats:
            if not 0 <= seat.node < len(self.view.cluster.nodes):
                raise ValueError(f"job {told.id} holds devices on unknown node {seat.node}")
        self._count(job, state)
        job.state, job.waiting_reason = state, reason
        job.seats = seats_from(told.seats)
        job.held = replicas(job.seats)
        job.tuning = tuning_from(told.tuning) if told.HasField("tuning") else Tuning(job.id)
        job.as_of_seconds, job.executed = told.as_of_seconds, told.executed_seconds
        job.attained = told.attained_device_seconds
        job.progress, job.progress_rate, job.progress_as_of = told.progress, told.progress_rate, told.progress_as_of_seconds
        job.steps_left, job.first_start, job.last_change = told.steps_left, told.first_start_seconds, told.last_change_seconds
        job.restarts, job.preemptions, job.starting = told.restarts, told.preemptions, told.starting
        job.slices = tuple(told.slices)
        job.resources = resources_from(told.resources) if told.HasField("resources") else None
        if told.measured:
            job.measured = _corrected(job.measured, measurements_from(told.measured))
        if told.HasField("gradients"):
            job.gradients = gradients_from(told.gradients)
        if told.reported:
            job.reported = reported_from(told.reported, job.reported)
        if told.HasField("response"):
            self._respond(job, told.response)

    def _submit(self, told: view_pb2.Job) -> Job:
        if not 0 <= told.id < len(self.view.jobs) or not told.HasField("spec"):
            raise ValueError(f"job {told.id} comes without its specification, or was not submitted")
        spec, b = told.spec, told.spec.batch
        job = Job(
            told.id, spec.name, tenant=spec.tenant, application=spec.application, weight=spec.weight,
            submit_seconds=spec.submit_seconds, requested=spec.requested, min_replicas=spec.min_replicas,
            max_replicas=spec.max_replicas, accelerators=tuple(spec.accelerators),
            batch=BatchSpec(b.requested, b.initial, b.max, b.min_per_device, b.max_per_device),
            cpus=spec.cpus, memory_gb=spec.memory_gb, command=tuple(spec.command), total_work=spec.total_work,
            step_times=self._tables.get(spec.step_times), truth=self._truths.get(spec.truth),
            pinned=spec.pinned, suspended=spec.suspended, mixes_types=spec.mixes_types,
            batch_by_type=tuple(TypeBatch(on.accelerator, on.min_per_device, on.max_per_device) for on in spec.batch_by_type),
            deadline_seconds=spec.deadline_seconds, best_effort=spec.best_effort, tier=spec.tier,
            share=Share(spec.share.milli, spec.share.profile) if spec.HasField("share") else None, utilisation=spec.utilisation,
            device_memory_gb=spec.device_memory_gb, slowdown_tolerance=spec.slowdown_tolerance,
            iteration=Iteration(
                spec.iteration.load_seconds, spec.iteration.compute_seconds, spec.iteration.sync_seconds, spec.iteration.measured_seconds,
            ),
            sensitivity=self._sensitivities.get(spec.sensitivity), pairs=self._pairs.get(spec.pairs),
            experiment=spec.experiment,
        )
        self.view.jobs[told.id] = job
        return job

    def _count(self, job: Job, state: JobState) -> None:
        """Enters the state that a job goes into into what the view counts. An admitted job stays active until it ends, or is held back: its
        response is then kept."""
        view = self.view
        view.waiting += (state is JobState.WAITING) - (job.state is JobState.WAITING)
        if job.state is JobState.PENDING and state is not JobState.PENDING:
            at = bisect_left(view.active, job.id)
            view.active.insert(at, job.id)
            self.candidates.insert(at, Candidate(job, self._pending.pop(job.id, _UNTOLD)))
        elif job.state is not JobState.PENDING and state is JobState.PENDING:
            at = bisect_left(view.active, job.id)
            del view.active[at]
            response = self.candidates.pop(at).response
            if response is not _UNTOLD:
                self._pending[job.id] = response

    def shown(self) -> list[Candidate]:
        """The jobs that a scaler is shown: the active ones, and those that are not admitted for want of nodes, by id."""
        if not self._pending:
            return self.candidates
        jobs = [(self.view.job(id), response) for id, response in self._pending.items()]
        awaiting = [Candidate(j, r) for j, r in jobs if j is not None and j.waiting_reason is Reason.AWAITING_NODES]
        return sorted([*self.candidates, *awaiting], key=lambda c: c.job.id)

    def candidate(self, job: Job) -> Candidate:
        """A job, admitted or not, with its response if it was sent."""
        if job.state is JobState.PENDING:
            return Candidate(job, self._pending.get(job.id, _UNTOLD))
        return self.candidates[bisect_left(self.view.active, job.id)]

    def _respond(self, job: Job, told: view_pb2.Response) -> None:
        if job.state is JobState.PENDING:
            self._pending[job.id] = response_from(told, self._pending.get(job.id, _UNTOLD))
            return
        at = bisect_left(self.view.active, job.id)
        self.candidates[at] = Candidate(job, response_from(told, self.candidates[at].response))

    def _end(self, id: int) -> None:
        view = self.view
        job = view.job(id)
        if job is None:
            raise ValueError(f"unknown job {id} ended")
        view.waiting -= job.state is JobState.WAITING
        if job.state is not JobState.PENDING:
            at = bisect_left(view.active, id)
            del view.active[at], self.candidates[at]
        self._pending.pop(id, None)
        view.jobs[id] = None
