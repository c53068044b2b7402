import pytest

from quartet_plugin import (
    Gradients, Grant, Health, Iteration, JobState, Pool, Price, Reason, Response, Seat, Share, Sharing, group_of,
)
from quartet_plugin._copy import ViewCopy
from quartet_plugin._proto import view_pb2 as pb


def job(id, state=pb.JOB_STATE_WAITING, spec=True, **told):
    told = {"waiting_reason": "none", **told}
    return pb.Job(id=id, state=state, spec=pb.JobSpec(name=f"job-{id}", requested=2) if spec else None, **told)


def full(**told):
    nodes = [pb.Node(id=i, health=pb.HEALTH_READY, name=f"node-{i}", devices=4) for i in range(2)]
    return pb.ViewUpdate(sequence=7, full=True, round=1, now_seconds=60, submitted=3, accelerators=["t4"], nodes=nodes, **told)


def test_updates_are_taken_over():
    copy = ViewCopy()
    assert copy.apply(full(jobs=[job(0), job(2, pb.JOB_STATE_PENDING)], changed=[0, 2]))
    view = copy.view
    assert (view.now_seconds, view.round, view.devices, view.waiting) == (60, 1, 8, 1)
    assert view.active == [0] and view.changed == (0, 2)
    assert view.job(1) is None and view.job(2).state is JobState.PENDING and view.job(9) is None

    seats = [pb.Seat(node=1, devices=0b101)]
    update = pb.ViewUpdate(
        sequence=8, round=2, now_seconds=120, nodes=[pb.Node(id=0, health=pb.HEALTH_DOWN)],
        jobs=[
            job(0, pb.JOB_STATE_RUNNING, spec=False, seats=seats, executed_seconds=5, as_of_seconds=100),
            job(1), job(2, spec=False, waiting_reason="load_limit"),
        ],
        changed=[1],
    )
    assert copy.apply(update)
    assert view.active == [0, 1, 2] and view.waiting == 2 and view.devices == 4
    assert view.cluster.nodes[0].health is Health.DOWN and view.cluster.nodes[0].name == "node-0"
    running = view.job(0)
    assert (running.name, running.requested, running.held, running.seats) == ("job-0", 2, 2, (Seat(1, 0b101),))
    assert running.executed_seconds(view.now_seconds) == 25
    assert view.job(2).waiting_reason is Reason.LOAD_LIMIT

    assert copy.apply(pb.ViewUpdate(sequence=9, round=3, now_seconds=180, ended=[0, 1]))
    assert view.active == [2] and view.waiting == 1 and view.jobs == [None, None, view.job(2)]

    assert copy.apply(pb.ViewUpdate(sequence=10, submitted=5))
    assert len(view.jobs) == 5


def test_pools_and_their_nodes_are_taken_over():
    copy = ViewCopy()
    prices = [pb.Price(from_seconds=100, per_hour=2), pb.Price(from_seconds=200, per_hour=5)]
    pool = pb.Pool(
        name="p", accelerator=1, devices=4, cpus=8, memory_gb=32, min_nodes=1, max_nodes=6, price_per_hour=3, prices=prices,
        up_cooldown_seconds=60, down_cooldown_seconds=600, provisioning_seconds=90, spot=True,
    )
    healths = [pb.HEALTH_READY, pb.HEALTH_PROVISIONING, pb.HEALTH_DRAINING, pb.HEALTH_GONE, pb.HEALTH_DOWN]
    nodes = [
        pb.Node(id=i, health=h, name=f"p-{i}", accelerator=1, devices=4, pool="p", expected_seconds=90 if i == 1 else 0)
        for i, h in enumerate(healths)
    ]
    nodes.append(pb.Node(id=5, health=pb.HEALTH_READY, name="fixed", devices=4))
    assert copy.apply(pb.ViewUpdate(sequence=1, full=True, accelerators=["a", "b"], nodes=nodes, pools=[pool]))
    cluster = copy.view.cluster
    assert cluster.pools == (Pool("p", 1, 4, 8, 32, 1, 6, 3, (Price(100, 2), Price(200, 5)), 60, 600, 90, True),)
    assert [cluster.pool("p").price_at(at) for at in (0, 99, 100, 250)] == [3, 3, 2, 5]
    assert cluster.pool("q") is None
    assert (cluster.pool_size("p"), cluster.pool_size(""), cluster.pool_size("q")) == (3, 1, 0)
    assert [node.expected_seconds for node in cluster.nodes] == [0, 90, 0, 0, 0, 0]
    assert cluster.nodes[5].pool == ""

    assert copy.apply(pb.ViewUpdate(sequence=2, nodes=[pb.Node(id=1, health=pb.HEALTH_READY)]))
    assert (cluster.nodes[1].expected_seconds, cluster.nodes[1].pool) == (0, "p")
    with pytest.raises(ValueError, match="unknown accelerator type 2"):
        copy.apply(pb.ViewUpdate(sequence=3, full=True, accelerators=["a", "b"], pools=[pb.Pool(name="p", accelerator=2, devices=1)]))


def test_responses_follow_their_jobs():
    copy = ViewCopy()
    curve = pb.Curve(one_node=[1, 2], many_nodes=[0, 1])
    told = [pb.Response(job=i, min_replicas=1, max_replicas=2, curves=[curve], remaining_work=10) for i in range(3)]
    copy.apply(full(jobs=[job(i, response=told[i]) for i in range(3)]))
    changed = pb.Response(job=1, min_replicas=2, max_replicas=2, same_curves=True, remaining_work=4)
    copy.apply(pb.ViewUpdate(sequence=8, jobs=[job(1, spec=False, response=changed), job(2, spec=False)], ended=[0]))
    assert [c.job.id for c in copy.candidates] == [1, 2]
    assert copy.candidates[0].response == Response(1, 2, 2, (((1, 2), (0, 1)),), 4)
    assert copy.candidates[1].response.remaining_work == 10


def test_step_times_are_shared():
    copy = ViewCopy()
    copy.apply(full(step_times=[pb.StepTimes(table=1, one_node=[0.5], many_nodes=[0.75])]))
    spec = pb.JobSpec(name="a", step_times=1)
    copy.apply(pb.ViewUpdate(sequence=8, jobs=[
        pb.Job(id=i, state=pb.JOB_STATE_PENDING, waiting_reason="none", spec=spec) for i in range(2)
    ]))
    assert copy.view.job(0).step_times == ((0.5,), (0.75,), (), None)
    assert copy.view.job(0).step_times is copy.view.job(1).step_times


def test_measurements_are_added_to_those_told_before():
    copy = ViewCopy()
    first, second = [pb.Measurement(nodes=1, replicas=r, per_device=32, pass_seconds=1, step_seconds=2) for r in (1, 2)]
    truth = pb.Truth(table=1, measurements=[first, second], gradients=pb.Gradients(square=1, variance=2), steps=[pb.BatchSteps(batch=8, steps=90.5)])
    spec = pb.JobSpec(name="a", truth=1)
    copy.apply(full(truths=[truth], jobs=[
        pb.Job(id=i, state=pb.JOB_STATE_PENDING, waiting_reason="none", spec=spec) for i in range(2)
    ]))
    a, b = copy.view.job(0), copy.view.job(1)
    assert a.truth is b.truth and a.truth.gradients == (1, 2) and a.truth.measurements[1] == (1, 2, 32, 1, 2, "", 0, 0)
    assert a.truth.steps == ((8, 90.5),)
    assert a.measured == () and a.gradients == Gradients()
    told = job(0, spec=False, measured=[first], gradients=pb.Gradients(square=3, variance=4))
    copy.apply(pb.ViewUpdate(sequence=8, jobs=[told]))
    copy.apply(pb.ViewUpdate(sequence=9, jobs=[job(0, spec=False, measured=[second])]))
    assert [m.replicas for m in a.measured] == [1, 2] and a.gradients == (3, 4) and b.measured == ()


@pytest.mark.parametrize("sequence", [0, 6, 7, 9])
def test_an_update_for_another_copy_changes_nothing(sequence):
    copy = ViewCopy()
    update = pb.ViewUpdate(sequence=sequence, round=5, jobs=[job(0)])
    assert not copy.apply(update)
    copy.apply(full())
    assert not copy.apply(update)
    assert copy.view.round == 1 and copy.view.jobs == [None] * 3
    assert copy.apply(pb.ViewUpdate(sequence=8, round=2))


@pytest.mark.parametrize(
    "told, message",
    [
        ({"jobs": [job(0, spec=False)]}, "without its specification"),
        ({"jobs": [job(-1)]}, "without its specification"),
        ({"jobs": [job(0, state=0)]}, "state 0"),
        ({"jobs": [job(0, waiting_reason="boredom")]}, "boredom"),
        ({"jobs": [job(3)]}, "was not submitted"),
        ({"jobs": [job(0, seats=[pb.Seat(node=2, devices=1)])]}, "unknown node 2"),
        ({"submitted": 1 << 25}, "may hold"),
        ({"ended": [3]}, "unknown job 3"),
        ({"nodes": [pb.Node(id=2, health=pb.HEALTH_READY)]}, "unknown node 2"),
        ({"nodes": [pb.Node(id=0)]}, "health 0"),
    ],
)
def test_nonsense_is_refused_and_wants_the_whole_view(told, message):
    copy = ViewCopy()
    copy.apply(full())
    with pytest.raises(ValueError, match=message):
        copy.apply(pb.ViewUpdate(sequence=8, **told))
    assert not copy.apply(pb.ViewUpdate(sequence=9))
    assert copy.apply(full())


def test_how_devices_are_shared_is_taken_over():
    copy = ViewCopy()
    assert copy.apply(full())
    cluster = copy.view.cluster
    assert (cluster.sharing, cluster.max_owners) == (Sharing.EXCLUSIVE, 0)
    assert not cluster.oversubscribes_memory and not cluster.counts_resources

    spec = pb.JobSpec(
        name="half", share=pb.Share(milli=250), utilisation=0.5, device_memory_gb=3, slowdown_tolerance=0.2, experiment="sweep",
        iteration=pb.Iteration(load_seconds=1, compute_seconds=2, sync_seconds=4),
    )
    on_cpus = pb.JobSpec(name="on CPUs", share=pb.Share())
    seats = [pb.Seat(node=0, devices=0b11)]
    running = {"state": pb.JOB_STATE_RUNNING, "waiting_reason": "none", "seats": seats, "attained_device_seconds": 7, "as_of_seconds": 20}
    assert copy.apply(
        pb.ViewUpdate(
            sequence=1, full=True, now_seconds=60, submitted=3, accelerators=["t4"], sharing=pb.SHARING_FRACTIONAL, max_owners=3,
            oversubscribes_memory=True, counts_resources=True, nodes=[pb.Node(id=0, health=pb.HEALTH_READY, devices=4, device_memory_gb=16)],
            pools=[pb.Pool(name="p", devices=1, device_memory_gb=80)],
            jobs=[pb.Job(id=0, spec=spec, **running), pb.Job(id=1, spec=on_cpus, **running), job(2)],
        )
    )
    cluster = copy.view.cluster
    assert (cluster.sharing, cluster.max_owners, cluster.oversubscribes_memory, cluster.counts_resources) == (Sharing.FRACTIONAL, 3, True, True)
    assert (cluster.nodes[0].device_memory_gb, cluster.pool("p").device_memory_gb) == (16, 80)
    half, cpus, whole = (copy.view.job(id) for id in range(3))
    assert (half.share, half.utilisation, half.device_memory_gb, half.slowdown_tolerance) == (Share(250), 0.5, 3, 0.2)
    assert [j.experiment for j in (half, cpus, whole)] == ["sweep", "", ""]
    assert half.iteration == Iteration(1, 2, 4) and half.iteration.seconds() == 7
    assert [j.part() for j in (half, cpus, whole)] == [0.25, 0, 1]
    assert [j.attained_service(60) for j in (half, cpus, whole)] == [7 + 40 * 2 * 0.25, 7, 0]
    assert (whole.share, whole.iteration) == (None, Iteration())

    assert copy.apply(pb.ViewUpdate(sequence=1, full=True, sharing=99))
    assert copy.view.cluster.sharing is Sharing.OTHER


def test_groups_of_grants():
    grants = [Grant(0, 1), Grant(1, 1), Grant(2, 1, group=1), Grant(3, 1, group=1), Grant(4, 1, group=2), Grant(5, 1)]
    assert [group_of(grants, i) for i in range(6)] == [1, 1, 2, 1, 1, 1]
