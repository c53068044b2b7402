"""What a plugin process serves: the components it can create, and the one that it did create."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import threading
from operator import itemgetter
from typing import Any, Callable
from collections.abc import Iterator, Sequence

import grpc

from . import config as settings
from ._convert import (
    grants_from, grants_to, owned, owned_grants, owned_placements, placements_from, placements_to, pool_targets_to, responses_to,
    standing_to, tunings_from, tunings_to, verdicts_to,
)
from ._copy import ViewCopy
from ._edit import Receiver, Sender
from ._log import ComponentLog, logger
from ._proto import base_pb2, stages_pb2, view_pb2
from .cluster import Sharing
from .decisions import Capability, Grant, Placement, Plan, PoolTarget, Response, Tuning, Verdict
from .job import Job
from .policy import AdmissionPolicy, AllocationPolicy, ElasticityPolicy, PlacementPolicy, Policy, ScalerPolicy

PROTOCOL = 1
"""The version of the wire contract, the package quartet.stage.v1."""

_PACKAGE = "/quartet.stage.v1."
_BASE = _PACKAGE + "BaseService/"

_Call = Callable[[bytes, grpc.ServicerContext], bytes]

_STAGES: dict[type[Policy], tuple[base_pb2.Stage, str]] = {
    AdmissionPolicy: (base_pb2.STAGE_ADMISSION, "admission"),
    AllocationPolicy: (base_pb2.STAGE_ALLOCATION, "allocation"),
    PlacementPolicy: (base_pb2.STAGE_PLACEMENT, "placement"),
    ElasticityPolicy: (base_pb2.STAGE_ELASTICITY, "elasticity"),
    ScalerPolicy: (base_pb2.STAGE_SCALER, "scaler"),
}
_STAGE_NAMES: dict[int, str] = dict(_STAGES.values())

_job_of = itemgetter(0)  # the job comes first in every item


class Refusal(Exception):
    """A call that cannot be answered."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class _Component:
    """A policy class with its stage known and its declarations checked."""

    def __init__(self, policy: type[Policy]) -> None:
        found = [stage for base, stage in _STAGES.items() if issubclass(policy, base)]
        if len(found) != 1:
            raise TypeError(f"{policy.__qualname__} must derive from one of {', '.join(b.__name__ for b in _STAGES)}")
        self.policy = policy
        self.stage, self.stage_name = found[0]
        if not policy.type or not policy.summary:
            raise TypeError(f"{policy.__qualname__} needs a type and a summary")
        self.name = f"{self.stage_name}/{policy.type}"
        settings.fields_of(policy.Config)

    def describe(self) -> base_pb2.Component:
        policy = self.policy
        schema = settings.schema_of(policy.Config, policy.type, policy.summary)
        fields = [f.document() for f in settings.fields_of(policy.Config)]
        return base_pb2.Component(
            stage=self.stage, type=policy.type, summary=policy.summary,
            description=policy.description or policy.summary, source=policy.source,
            capabilities=_names(policy.capabilities), one_type=policy.one_type,
            counts=policy.counts, divides=policy.divides, sharing=[Sharing(way).value for way in policy.sharing],
            config_schema_json=json.dumps(schema, sort_keys=True), fields_json=json.dumps(fields),
        )

    def needs(self, config: Any) -> list[str]:
        more = getattr(config, "capabilities", None)
        return _names(self.policy.capabilities) + (_names(more()) if more is not None else [])


def _names(capabilities: Sequence[Capability]) -> list[str]:
    return [Capability(c).value for c in capabilities]


class Server:
    """Answers the calls of the host."""

    def __init__(self, name: str, version: str, policies: Sequence[type[Policy]]) -> None:
        if not policies:
            raise TypeError("a plugin needs at least one policy to serve")
        self.name, self.version = name, version
        self.components = [_Component(policy) for policy in policies]
        self._lock = threading.Lock()  # one call at a time, as in process
        self._policy: Policy | None = None
        self._calls: dict[str, _Call] = {
            _BASE + "Describe": _call(self.describe, base_pb2.DescribeRequest),
            _BASE + "Configure": _call(self.configure, base_pb2.ConfigureRequest),
            _BASE + "Health": _call(self.health, base_pb2.HealthRequest),
        }
        for name, answer, request in (
            ("AdmissionService/Admit", self.admit, stages_pb2.AdmitRequest),
            ("AdmissionService/Review", self.review, stages_pb2.ReviewRequest),
            ("AllocationService/Allocate", self.allocate, stages_pb2.AllocateRequest),
            ("PlacementService/Place", self.place, stages_pb2.PlaceRequest),
            ("ElasticityService/Respond", self.respond, stages_pb2.RespondRequest),
            ("ElasticityService/Tune", self.tune, stages_pb2.TuneRequest),
            ("ScalerService/Scale", self.scale, stages_pb2.ScaleRequest),
        ):
            self._calls[_PACKAGE + name] = _call(answer, request, self._lock)
        self._forget()

    def _forget(self) -> None:
        self._view = ViewCopy()
        self._new_lists()

    def _new_lists(self) -> None:
        """The lists that the two ends send each other as edits. A full view starts them anew."""
        self._waiting: Receiver[int] = Receiver()
        self._grants_in: Receiver[Grant] = Receiver()
        self._placements_in: Receiver[Placement] = Receiver()
        self._verdicts: Sender[Verdict] = Sender(_job_of)
        self._grants_out: Sender[Grant] = Sender(_job_of)
        self._placed_out: Sender[Placement] = Sender(_job_of)
        self._unseated: Sender[Verdict] = Sender(_job_of)

    # The base service.

    def describe(self, request: base_pb2.DescribeRequest) -> base_pb2.DescribeResponse:
        return base_pb2.DescribeResponse(
            name=self.name, version=self.version, components=[c.describe() for c in self.components],
            min_protocol=PROTOCOL, max_protocol=PROTOCOL,
        )

    def health(self, request: base_pb2.HealthRequest) -> base_pb2.HealthResponse:
        return base_pb2.HealthResponse()

    def configure(self, request: base_pb2.ConfigureRequest) -> base_pb2.ConfigureResponse:
        component = self._find(request.stage, request.type)
        try:
            raw = json.loads(request.config_json) if request.config_json else None
        except ValueError as e:
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, f"config: {e}") from None
        if raw is not None and not isinstance(raw, dict):
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, "config: not a mapping")
        config, problems = settings.decode(component.policy.Config, raw or {})
        if problems:
            return base_pb2.ConfigureResponse(diagnostics=[base_pb2.Diagnostic(**p._asdict()) for p in problems])
        answer = base_pb2.ConfigureResponse(
            capabilities=component.needs(config), config_json=json.dumps(settings.encode(config), sort_keys=True), changing=True,
            reports=True,
        )
        if request.check_only:
            return answer
        policy = component.policy()
        policy.id, policy.config = request.component_id, config
        policy.random = new_random(request.seed, request.component_id)
        policy.log = ComponentLog(logger, {"component": request.component_id})
        try:
            policy.setup()
        except ValueError as e:
            answer.diagnostics.append(base_pb2.Diagnostic(summary=str(e)))
            return answer
        with self._lock:
            self._policy = policy
            self._forget()
        answer.exchange = True
        if isinstance(policy, AdmissionPolicy):
            answer.curves, answer.promises, answer.reviews = looks_at_curves(policy), policy.promises, reviews(policy)
        if isinstance(policy, ElasticityPolicy):
            answer.follows_reports = policy.follows_reports
        if isinstance(policy, AllocationPolicy):
            answer.guarantees.extend(policy.guarantees() or ())
        return answer

    def _find(self, stage: int, type_: str) -> _Component:
        wanted = f"{_STAGE_NAMES.get(stage, '')}/{type_}"
        for component in self.components:
            if component.name == wanted:
                return component
        there = [c.name for c in self.components]
        raise Refusal(grpc.StatusCode.NOT_FOUND, f'no component "{wanted}"; the plugin serves {there}')

    # The stages.

    def _begin(self, base: type[Policy], update: view_pb2.ViewUpdate) -> tuple[Any, bool]:
        """Brings the view up to date. False when the host must send it whole."""
        policy = self._policy
        if not isinstance(policy, base):
            raise Refusal(
                grpc.StatusCode.FAILED_PRECONDITION, f'the plugin was not configured for stage "{_STAGES[base][1]}"'
            )
        try:
            known = self._view.apply(update)
        except ValueError as e:
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, f"view: {e}") from None
        if update.full:
            self._new_lists()
        return policy, known

    def _edited(self, receiver: Receiver[Any], edit: view_pb2.Edit, inserted: Sequence[Any]) -> list[Any]:
        """The edited list, a copy that the policy may keep."""
        try:
            return list(receiver.apply(edit.steps, inserted))
        except ValueError as e:
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, str(e)) from None

    def _jobs(self, ids: Sequence[int]) -> list[Job]:
        jobs = []
        for id in ids:
            job = self._view.view.job(id)
            if job is None:
                raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, f"asked about unknown job {id}")
            jobs.append(job)
        return jobs

    def admit(self, request: stages_pb2.AdmitRequest) -> stages_pb2.AdmitResponse:
        policy, known = self._begin(AdmissionPolicy, request.view)
        if not known:
            return stages_pb2.AdmitResponse(resync=True)
        waiting = self._jobs(self._edited(self._waiting, request.edit, request.waiting))
        if looks_at_curves(policy):
            asked = [self._view.candidate(job) for job in waiting]
            verdicts = owned(policy.admit_candidates(self._view.view, self._view.candidates, asked), Verdict, "admit_candidates")
        else:
            verdicts = owned(policy.admit(self._view.view, waiting), Verdict, "admit")
        steps, inserted = self._verdicts.tell(verdicts)
        return stages_pb2.AdmitResponse(
            edit=view_pb2.Edit(steps=steps), verdicts=verdicts_to(inserted), standing=standing_to(policy.standing())
        )

    def review(self, request: stages_pb2.ReviewRequest) -> stages_pb2.ReviewResponse:
        policy, known = self._begin(AdmissionPolicy, request.view)
        if not known:
            return stages_pb2.ReviewResponse(resync=True)
        if not reviews(policy):
            raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, "the policy does not review jobs")
        verdicts = owned(policy.review(self._view.view, self._jobs(request.reported)), Verdict, "review")
        return stages_pb2.ReviewResponse(verdicts=verdicts_to(verdicts))

    def allocate(self, request: stages_pb2.AllocateRequest) -> stages_pb2.AllocateResponse:
        policy, known = self._begin(AllocationPolicy, request.view)
        if not known:
            return stages_pb2.AllocateResponse(resync=True)
        grants = owned_grants(policy.allocate(self._view.view, self._view.candidates))
        steps, inserted = self._grants_out.tell(grants)
        return stages_pb2.AllocateResponse(
            edit=view_pb2.Edit(steps=steps), grants=grants_to(inserted), standing=standing_to(policy.standing()),
            gap_ratio=policy.gap_ratio(),
        )

    def place(self, request: stages_pb2.PlaceRequest) -> stages_pb2.PlaceResponse:
        policy, known = self._begin(PlacementPolicy, request.view)
        if not known:
            return stages_pb2.PlaceResponse(resync=True)
        grants = self._edited(self._grants_in, request.edit, grants_from(request.grants))
        placed, unseated = policy.place(self._view.view, grants)
        placed_steps, placed = self._placed_out.tell(owned_placements(placed))
        unseated_steps, unseated = self._unseated.tell(owned(unseated, Verdict, "unseated"))
        return stages_pb2.PlaceResponse(
            placed_edit=view_pb2.Edit(steps=placed_steps), placed=placements_to(placed),
            unseated_edit=view_pb2.Edit(steps=unseated_steps), unseated=verdicts_to(unseated),
            standing=standing_to(policy.standing()),
        )

    def respond(self, request: stages_pb2.RespondRequest) -> stages_pb2.RespondResponse:
        policy, known = self._begin(ElasticityPolicy, request.view)
        if not known:
            return stages_pb2.RespondResponse(resync=True)
        responses = owned(policy.respond(self._view.view, self._jobs(request.jobs)), Response, "respond")
        return stages_pb2.RespondResponse(responses=responses_to(responses), standing=standing_to(policy.standing()))

    def tune(self, request: stages_pb2.TuneRequest) -> stages_pb2.TuneResponse:
        policy, known = self._begin(ElasticityPolicy, request.view)
        if not known:
            return stages_pb2.TuneResponse(resync=True)
        placements = self._edited(self._placements_in, request.edit, placements_from(request.placements))
        tunings = owned(policy.tune(self._view.view, placements), Tuning, "tune")
        return stages_pb2.TuneResponse(tunings=tunings_to(tunings), standing=standing_to(policy.standing()))

    def scale(self, request: stages_pb2.ScaleRequest) -> stages_pb2.ScaleResponse:
        policy, known = self._begin(ScalerPolicy, request.view)
        if not known:
            return stages_pb2.ScaleResponse(resync=True)
        plan = Plan(
            self._edited(self._grants_in, request.grants_edit, grants_from(request.grants)),
            self._edited(self._placements_in, request.placements_edit, placements_from(request.placements)),
            tunings_from(request.tunings),
            self._view.shown(),
        )
        wanted = policy.scale(self._view.view, plan)
        if wanted is None or isinstance(wanted, int):
            return stages_pb2.ScaleResponse(nodes=wanted or 0, standing=standing_to(policy.standing()))
        pools = pool_targets_to(owned(wanted, PoolTarget, "scale"))
        return stages_pb2.ScaleResponse(pools=pools, standing=standing_to(policy.standing()))

    # The wire.

    def exchange(
        self, requests: Iterator[base_pb2.ExchangeRequest], context: grpc.ServicerContext
    ) -> Iterator[base_pb2.ExchangeResponse]:
        """Takes calls over one stream, until the host ends it or a call fails."""
        try:
            for request in requests:
                call = self._calls.get(request.method)
                if call is None:
                    context.abort(grpc.StatusCode.UNIMPLEMENTED, f'there is no call "{request.method}"')
                    return
                yield base_pb2.ExchangeResponse(message=call(request.message, context))
        except grpc.RpcError:
            pass  # the host is gone

    def handlers(self) -> list[grpc.GenericRpcHandler]:
        """The services, registered by hand: generated ones would tie the package to a version of grpcio."""
        exchange = grpc.stream_stream_rpc_method_handler(
            self.exchange, base_pb2.ExchangeRequest.FromString, base_pb2.ExchangeResponse.SerializeToString
        )
        methods = {_BASE + "Exchange": exchange}
        for name, call in self._calls.items():
            methods[name] = grpc.unary_unary_rpc_method_handler(call)
        return [_Methods(methods)]


def looks_at_curves(policy: AdmissionPolicy) -> bool:
    """Whether an admission policy defines admit_candidates."""
    return type(policy).admit_candidates is not AdmissionPolicy.admit_candidates


def reviews(policy: AdmissionPolicy) -> bool:
    """Whether an admission policy defines review."""
    return type(policy).review is not AdmissionPolicy.review


class _Methods(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Finds the handler of a call by its full name."""

    def __init__(self, methods: dict[str, grpc.RpcMethodHandler]) -> None:
        self._methods = methods

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        return self._methods.get(details.method)


def _call(answer: Callable[[Any], Any], request_type: Any, lock: threading.Lock | None = None) -> _Call:
    """A call on encoded messages. It turns an exception of the policy into an error of the call; the process lives on."""
    decode = request_type.FromString

    def call(request: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            message = decode(request)
            with lock or contextlib.nullcontext():
                return answer(message).SerializeToString()  # type: ignore[no-any-return]
        except Refusal as e:
            code, text = e.code, e.message
        except BaseException as e:  # a policy that calls sys.exit has failed, too
            logger.debug("the policy raised", exc_info=True)  # the error of the call says what, the stack says where
            code, text = grpc.StatusCode.INTERNAL, f"the policy raised {type(e).__name__}: {e}"
        return context.abort(code, text)  # type: ignore[no-any-return]

    return call


def new_random(seed: int, id: str) -> random.Random:
    """The random stream of one component: equal for equal seed and id, independent for different ones."""
    return random.Random(int.from_bytes(hashlib.sha256(f"{seed}/{id}".encode()).digest(), "big"))
