from datetime import timedelta

import pytest

from deadline import Deadline
from quartet_plugin import Cluster, Code, Health, Job, JobState, Node, Reason, View


def new_view(now=0.0, health=Health.READY):
    """Four devices, and a job that runs on all of them for 100 s more."""
    view = View(Cluster(["t4"], [Node(0, "node-0", 0, 4, health=health)]))
    busy = Job(0, "busy", requested=4, total_work=100 + now)
    busy.state, busy.progress = JobState.RUNNING, now
    view.now_seconds, view.jobs, view.active = now, [busy], [0]
    return view


def new_policy():
    policy = Deadline()
    policy.config = Deadline.Config(slack=2.0, grace=timedelta(0))
    return policy


def new_job(id, work, submit=0.0, requested=1):
    return Job(id, f"job-{id}", submit_seconds=submit, total_work=work, requested=requested)


@pytest.mark.parametrize(
    "now, work, want",
    [
        pytest.param(0, 100, None, id="just in time"),
        pytest.param(0, 99, (Code.DEFER, 199, 198), id="late behind the others"),
        pytest.param(150, 120, (Code.REJECT, 220, 90), id="late on its own"),
        pytest.param(999, 120, (Code.REJECT, 220, 0), id="long overdue"),
        pytest.param(999, 0, None, id="unknown work"),
    ],
)
def test_one_job(now, work, want):
    verdicts = list(new_policy().admit(new_view(now), [new_job(1, work)]))
    got = [(v.code, v.wanted, v.available) for v in verdicts]
    assert got == ([] if want is None else [want])
    assert all(v.reason is not Reason.NONE and v.unit == "seconds" for v in verdicts)


def test_admitted_jobs_hold_up_those_behind():
    verdicts = list(new_policy().admit(new_view(), [new_job(1, 100, requested=4), new_job(2, 150), new_job(3, 201)]))
    assert [(v.job, v.code) for v in verdicts] == [(2, Code.DEFER)]


def test_nothing_is_promised_without_devices():
    (verdict,) = new_policy().admit(new_view(health=Health.DOWN), [new_job(1, 1000)])
    assert (verdict.code, verdict.reason) == (Code.DEFER, Reason.NODE_UNAVAILABLE)
