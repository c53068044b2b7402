import math
import random

import pytest

from quartet_plugin import (
    Cluster, Curve, Health, Job, Ledger, Node, Response, Seat, count_devices, first_devices, list_devices, lowest_devices,
    replicas,
)


def test_job_accounts():
    job = Job(0, submit_seconds=10, total_work=100)
    assert job.executed_seconds(50) == job.attained_service(50) == job.work_done(50) == 0
    job.as_of_seconds, job.executed, job.attained, job.held = 20, 3, 6, 4
    job.progress, job.progress_rate, job.progress_as_of = 5, 2, 30
    assert job.executed_seconds(50) == 33
    assert job.attained_service(50) == 126
    assert job.work_done(25) == 5  # during a restart pause
    assert job.work_done(50) == 45 and job.remaining_work(50) == 55
    assert job.remaining_work(1000) == 0
    job.total_work = math.nan
    assert math.isnan(job.remaining_work(50))


def test_job_accelerators():
    cluster = Cluster(["t4", "v100"])
    assert Job(0).can_run_on(cluster, 1)
    assert Job(0, accelerators=["v100"]).can_run_on(cluster, 1)
    assert not Job(0, accelerators=["v100"]).can_run_on(cluster, 0)


def test_device_sets():
    assert first_devices(3) == 0b111 and first_devices(64) == first_devices(99) == 2**64 - 1
    assert count_devices(0b1011) == 3 and list_devices(0b1011) == [0, 1, 3]
    assert lowest_devices(0b1011, 2) == 0b11 and lowest_devices(0b1011, 9) == 0b1011 and lowest_devices(0b1, 0) == 0
    assert replicas([Seat(0, 0b11), Seat(2, 0b100)]) == 3


def test_response_rate():
    response = Response(0, 1, 4, (Curve((1, 2), (0, 1.5, 3)), Curve((5,), ())))
    assert response.rate(0, 2, devices_per_node=2) == 2
    assert response.rate(0, 3, devices_per_node=2) == 3
    assert response.rate(0, 4, devices_per_node=2) == 0
    assert response.rate(-1, 1, devices_per_node=2) == 1
    assert response.rate(7, 1, devices_per_node=2) == 5
    assert response.rate(0, 0, devices_per_node=2) == Response(0, 1, 1).rate(0, 1, 1) == 0


def test_cluster_counts():
    cluster = Cluster(["t4"], [Node(0, "a", 0, 4), Node(1, "b", 0, 8, health=Health.DOWN)])
    assert (cluster.devices(), cluster.usable_devices(), cluster.largest_node()) == (12, 4, 8)


@pytest.mark.parametrize("seed", range(50))
def test_ledger_keeps_count(seed):
    draw = random.Random(seed)
    nodes = [Node(i, f"node-{i}", 0, draw.randint(1, 8), health=draw.choice(list(Health))) for i in range(5)]
    ledger = Ledger(Cluster(["t4"], nodes))
    free = {(n.id, d) for n in nodes if n.health is Health.READY for d in range(n.devices)}
    held = []
    for _ in range(60):
        action = draw.randrange(3)
        if action == 0:
            seat = ledger.take(draw.randrange(5), draw.randint(0, 4))
            held.append([seat])
            free -= devices_of([seat])
        elif action == 1:
            seats = [Seat(draw.randint(-1, 5), draw.randrange(1, 256)) for _ in range(draw.randint(1, 2))]
            fits = devices_of(seats) <= free and len({s.node for s in seats}) == len(seats)
            if fits or len({s.node for s in seats}) == len(seats):
                assert ledger.occupy(seats) == fits
            if fits:
                held.append(seats)
                free -= devices_of(seats)
        elif held:
            seats = held.pop(draw.randrange(len(held)))
            ledger.release(seats)
            free |= devices_of(seats)
        assert ledger.total == len(free)
        assert {(n.id, d) for n in nodes for d in list_devices(ledger.free_devices(n.id))} == free
        assert sum(ledger.free(n.id) for n in nodes) == len(free)


def devices_of(seats):
    return {(seat.node, device) for seat in seats for device in list_devices(seat.devices)}
