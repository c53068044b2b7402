#!/usr/bin/env python3
"""An admission policy for Quartet that promises deadlines, and takes in only what it can finish in time."""

from dataclasses import dataclass
from datetime import timedelta

from quartet_plugin import AdmissionPolicy, Capability, Code, Reason, Verdict, field, main


class Deadline(AdmissionPolicy):
    type = "deadline"
    summary = "admits a job while its estimated finish meets its deadline"
    description = (
        "A job is due a multiple of its declared duration after it was submitted. It is expected to finish once the "
        "admitted work before it is done, spread evenly over the devices that are up, and its own after that. A job that "
        "would be late is deferred while it could still make it on an idle cluster, and rejected after that. Jobs that "
        "declare no work are admitted. The estimate takes declared work for seconds, which holds for jobs of known duration."
    )
    capabilities = (Capability.REMAINING_WORK,)

    @dataclass
    class Config:
        slack: float = field(2.0, doc="Deadline of a job, as a multiple of its declared duration.", min=1)
        grace: timedelta = field(timedelta(minutes=5), doc="Added to every deadline, for the sake of short jobs.", min="0s")

    def admit(self, view, waiting):
        now = view.now_seconds
        active = (view.job(id) for id in view.active)
        backlog = sum(job.remaining_work(now) * job.requested for job in active)  # device-seconds
        for job in waiting:
            left = job.submit_seconds + self.config.slack * job.total_work + self.config.grace.total_seconds() - now
            if view.devices == 0:
                yield Verdict(job.id, Code.DEFER, Reason.NODE_UNAVAILABLE, message="no node is ready")
                continue
            needed = backlog / view.devices + job.total_work
            if job.total_work == 0 or needed <= left:
                backlog += job.total_work * job.requested
            elif job.total_work <= left:
                yield Verdict(job.id, Code.DEFER, Reason.LOAD_LIMIT, needed, left, "seconds", "it would miss its deadline")
            else:
                yield Verdict(
                    job.id, Code.REJECT, Reason.POLICY_DECISION, needed, max(left, 0), "seconds",
                    "it can no longer meet its deadline",
                )


if __name__ == "__main__":
    main(Deadline, name="python-deadline", version="v0.1.0")
