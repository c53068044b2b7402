"""Write policies for Quartet in Python.

A policy is a class that derives from the policy of its stage; main() serves it as a plugin:

    from quartet_plugin import AdmissionPolicy, main

    class AcceptAll(AdmissionPolicy):
        type = "accept_everyone"
        summary = "admits every job"

        def admit(self, view, waiting):
            return []

    if __name__ == "__main__":
        main(AcceptAll)
"""

from ._process import main
from .cluster import (
    ANY_ACCELERATOR, MAX_DEVICES_PER_NODE, Cluster, Health, Ledger, Node, Pool, Price, Resources, Seat, Sharing, count_devices,
    first_devices, list_devices, lowest_devices, replicas,
)
from .config import field
from .decisions import (
    FOR_EVER, Capability, Code, Curve, Grant, Guarantees, Placement, Plan, PoolTarget, Reason, Response, Seating, Standing, Tuning,
    UnlikeRates, Verdict, group_of,
)
from .job import (
    AloneTime, BatchSpec, BatchSteps, Gradients, Iteration, Job, JobState, Measurement, Pair, PairTable, Point, Sensitivity, Series, Share, StepTimes, Truth, TypeBatch, TypeTimes,
    UnlikeTimes,
)
from .policy import AdmissionPolicy, AllocationPolicy, ElasticityPolicy, PlacementPolicy, Policy, ScalerPolicy
from .view import Candidate, View

__all__ = [
    "ANY_ACCELERATOR", "FOR_EVER", "MAX_DEVICES_PER_NODE", "AdmissionPolicy", "AllocationPolicy", "AloneTime", "BatchSpec", "BatchSteps",
    "Candidate", "Capability", "Cluster", "Code", "Curve", "ElasticityPolicy", "Gradients", "Grant", "Guarantees", "Health", "Iteration", "Job",
    "JobState", "Ledger", "Measurement", "Node", "Pair", "PairTable", "Placement", "PlacementPolicy", "Plan", "Point", "Policy", "Pool", "PoolTarget",
    "Price", "Reason", "Resources", "Response", "ScalerPolicy", "Seat", "Seating", "Sensitivity", "Series", "Share", "Sharing", "Standing", "StepTimes", "Truth",
    "Tuning", "TypeBatch", "TypeTimes", "UnlikeRates", "UnlikeTimes", "Verdict", "View", "count_devices", "field", "first_devices", "group_of", "list_devices", "lowest_devices", "main", "replicas",
]
