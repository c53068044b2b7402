from . import view_pb2 as _view_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
OUTCOME_CANCELLED: Outcome
OUTCOME_COMPLETED: Outcome
OUTCOME_FAILED: Outcome
OUTCOME_REJECTED: Outcome
OUTCOME_UNSPECIFIED: Outcome

class AdmitRequest(_message.Message):
    __slots__ = ["edit", "view", "waiting"]
    EDIT_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    edit: _view_pb2.Edit
    view: _view_pb2.ViewUpdate
    waiting: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, view: _Optional[_Union[_view_pb2.ViewUpdate, _Mapping]] = ..., edit: _Optional[_Union[_view_pb2.Edit, _Mapping]] = ..., waiting: _Optional[_Iterable[int]] = ...) -> None: ...

class AdmitResponse(_message.Message):
    __slots__ = ["edit", "resync", "standing", "verdicts"]
    EDIT_FIELD_NUMBER: _ClassVar[int]
    RESYNC_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    edit: _view_pb2.Edit
    resync: bool
    standing: _view_pb2.Standing
    verdicts: _containers.RepeatedCompositeFieldContainer[_view_pb2.Verdict]
    def __init__(self, resync: bool = ..., verdicts: _Optional[_Iterable[_Union[_view_pb2.Verdict, _Mapping]]] = ..., edit: _Optional[_Union[_view_pb2.Edit, _Mapping]] = ..., standing: _Optional[_Union[_view_pb2.Standing, _Mapping]] = ...) -> None: ...

class AllocateRequest(_message.Message):
    __slots__ = ["narrowed", "view", "withheld"]
    NARROWED_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    WITHHELD_FIELD_NUMBER: _ClassVar[int]
    narrowed: _containers.RepeatedCompositeFieldContainer[Narrowed]
    view: _view_pb2.ViewUpdate
    withheld: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, view: _Optional[_Union[_view_pb2.ViewUpdate, _Mapping]] = ..., withheld: _Optional[_Iterable[int]] = ..., narrowed: _Optional[_Iterable[_Union[Narrowed, _Mapping]]] = ...) -> None: ...

class AllocateResponse(_message.Message):
    __slots__ = ["edit", "gap_ratio", "grants", "resync", "standing"]
    EDIT_FIELD_NUMBER: _ClassVar[int]
    GAP_RATIO_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    RESYNC_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    edit: _view_pb2.Edit
    gap_ratio: float
    grants: _containers.RepeatedCompositeFieldContainer[Grant]
    resync: bool
    standing: _view_pb2.Standing
    def __init__(self, resync: bool = ..., edit: _Optional[_Union[_view_pb2.Edit, _Mapping]] = ..., grants: _Optional[_Iterable[_Union[Grant, _Mapping]]] = ..., standing: _Optional[_Union[_view_pb2.Standing, _Mapping]] = ..., gap_ratio: _Optional[float] = ...) -> None: ...

class EndedJob(_message.Message):
    __slots__ = ["id", "outcome", "progress"]
    ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    id: int
    outcome: Outcome
    progress: float
    def __init__(self, id: _Optional[int] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., progress: _Optional[float] = ...) -> None: ...

class Grant(_message.Message):
    __slots__ = ["accelerator", "blocking", "group", "job", "proposed", "replicas"]
    ACCELERATOR_FIELD_NUMBER: _ClassVar[int]
    BLOCKING_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    PROPOSED_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    accelerator: int
    blocking: bool
    group: int
    job: int
    proposed: _containers.RepeatedCompositeFieldContainer[_view_pb2.Seat]
    replicas: int
    def __init__(self, job: _Optional[int] = ..., accelerator: _Optional[int] = ..., replicas: _Optional[int] = ..., blocking: bool = ..., proposed: _Optional[_Iterable[_Union[_view_pb2.Seat, _Mapping]]] = ..., group: _Optional[int] = ...) -> None: ...

class Narrowed(_message.Message):
    __slots__ = ["job", "max_replicas", "min_replicas"]
    JOB_FIELD_NUMBER: _ClassVar[int]
    MAX_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    MIN_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    job: int
    max_replicas: int
    min_replicas: int
    def __init__(self, job: _Optional[int] = ..., min_replicas: _Optional[int] = ..., max_replicas: _Optional[int] = ...) -> None: ...

class PlaceRequest(_message.Message):
    __slots__ = ["edit", "grants", "reserved", "view"]
    EDIT_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    edit: _view_pb2.Edit
    grants: _containers.RepeatedCompositeFieldContainer[Grant]
    reserved: _containers.RepeatedCompositeFieldContainer[Reservation]
    view: _view_pb2.ViewUpdate
    def __init__(self, view: _Optional[_Union[_view_pb2.ViewUpdate, _Mapping]] = ..., edit: _Optional[_Union[_view_pb2.Edit, _Mapping]] = ..., grants: _Optional[_Iterable[_Union[Grant, _Mapping]]] = ..., reserved: _Optional[_Iterable[_Union[Reservation, _Mapping]]] = ...) -> None: ...

class PlaceResponse(_message.Message):
    __slots__ = ["placed", "placed_edit", "resync", "standing", "unseated", "unseated_edit"]
    PLACED_EDIT_FIELD_NUMBER: _ClassVar[int]
    PLACED_FIELD_NUMBER: _ClassVar[int]
    RESYNC_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    UNSEATED_EDIT_FIELD_NUMBER: _ClassVar[int]
    UNSEATED_FIELD_NUMBER: _ClassVar[int]
    placed: _containers.RepeatedCompositeFieldContainer[Placement]
    placed_edit: _view_pb2.Edit
    resync: bool
    standing: _view_pb2.Standing
    unseated: _containers.RepeatedCompositeFieldContainer[_view_pb2.Verdict]
    unseated_edit: _view_pb2.Edit
    def __init__(self, resync: bool = ..., placed_edit: _Optional[_Union[_view_pb2.Edit, _Mapping]] = ..., placed: _Optional[_Iterable[_Union[Placement, _Mapping]]] = ..., unseated_edit: _Optional[_Union[_view_pb2.Edit, _Mapping]] = ..., unseated: _Optional[_Iterable[_Union[_view_pb2.Verdict, _Mapping]]] = ..., standing: _Optional[_Union[_view_pb2.Standing, _Mapping]] = ...) -> None: ...

class Placement(_message.Message):
    __slots__ = ["evicted", "job", "resources", "seats"]
    EVICTED_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    evicted: bool
    job: int
    resources: _view_pb2.Resources
    seats: _containers.RepeatedCompositeFieldContainer[_view_pb2.Seat]
    def __init__(self, job: _Optional[int] = ..., seats: _Optional[_Iterable[_Union[_view_pb2.Seat, _Mapping]]] = ..., evicted: bool = ..., resources: _Optional[_Union[_view_pb2.Resources, _Mapping]] = ...) -> None: ...

class PoolTarget(_message.Message):
    __slots__ = ["message", "nodes", "pool", "remove"]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    message: str
    nodes: int
    pool: str
    remove: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, pool: _Optional[str] = ..., nodes: _Optional[int] = ..., remove: _Optional[_Iterable[int]] = ..., message: _Optional[str] = ...) -> None: ...

class Reservation(_message.Message):
    __slots__ = ["devices", "job", "node"]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    devices: int
    job: int
    node: int
    def __init__(self, job: _Optional[int] = ..., node: _Optional[int] = ..., devices: _Optional[int] = ...) -> None: ...

class RespondRequest(_message.Message):
    __slots__ = ["ended", "jobs", "view"]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    ended: _containers.RepeatedCompositeFieldContainer[EndedJob]
    jobs: _containers.RepeatedScalarFieldContainer[int]
    view: _view_pb2.ViewUpdate
    def __init__(self, view: _Optional[_Union[_view_pb2.ViewUpdate, _Mapping]] = ..., jobs: _Optional[_Iterable[int]] = ..., ended: _Optional[_Iterable[_Union[EndedJob, _Mapping]]] = ...) -> None: ...

class RespondResponse(_message.Message):
    __slots__ = ["responses", "resync", "standing"]
    RESPONSES_FIELD_NUMBER: _ClassVar[int]
    RESYNC_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    responses: _containers.RepeatedCompositeFieldContainer[_view_pb2.Response]
    resync: bool
    standing: _view_pb2.Standing
    def __init__(self, resync: bool = ..., responses: _Optional[_Iterable[_Union[_view_pb2.Response, _Mapping]]] = ..., standing: _Optional[_Union[_view_pb2.Standing, _Mapping]] = ...) -> None: ...

class ReviewRequest(_message.Message):
    __slots__ = ["reported", "view"]
    REPORTED_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    reported: _containers.RepeatedScalarFieldContainer[int]
    view: _view_pb2.ViewUpdate
    def __init__(self, view: _Optional[_Union[_view_pb2.ViewUpdate, _Mapping]] = ..., reported: _Optional[_Iterable[int]] = ...) -> None: ...

class ReviewResponse(_message.Message):
    __slots__ = ["resync", "verdicts"]
    RESYNC_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    resync: bool
    verdicts: _containers.RepeatedCompositeFieldContainer[_view_pb2.Verdict]
    def __init__(self, resync: bool = ..., verdicts: _Optional[_Iterable[_Union[_view_pb2.Verdict, _Mapping]]] = ...) -> None: ...

class ScaleRequest(_message.Message):
    __slots__ = ["grants", "grants_edit", "placements", "placements_edit", "tunings", "view"]
    GRANTS_EDIT_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTS_EDIT_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    TUNINGS_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    grants: _containers.RepeatedCompositeFieldContainer[Grant]
    grants_edit: _view_pb2.Edit
    placements: _containers.RepeatedCompositeFieldContainer[Placement]
    placements_edit: _view_pb2.Edit
    tunings: _containers.RepeatedCompositeFieldContainer[_view_pb2.Tuning]
    view: _view_pb2.ViewUpdate
    def __init__(self, view: _Optional[_Union[_view_pb2.ViewUpdate, _Mapping]] = ..., grants_edit: _Optional[_Union[_view_pb2.Edit, _Mapping]] = ..., grants: _Optional[_Iterable[_Union[Grant, _Mapping]]] = ..., placements_edit: _Optional[_Union[_view_pb2.Edit, _Mapping]] = ..., placements: _Optional[_Iterable[_Union[Placement, _Mapping]]] = ..., tunings: _Optional[_Iterable[_Union[_view_pb2.Tuning, _Mapping]]] = ...) -> None: ...

class ScaleResponse(_message.Message):
    __slots__ = ["nodes", "pools", "resync", "standing"]
    NODES_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    RESYNC_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    nodes: int
    pools: _containers.RepeatedCompositeFieldContainer[PoolTarget]
    resync: bool
    standing: _view_pb2.Standing
    def __init__(self, resync: bool = ..., nodes: _Optional[int] = ..., standing: _Optional[_Union[_view_pb2.Standing, _Mapping]] = ..., pools: _Optional[_Iterable[_Union[PoolTarget, _Mapping]]] = ...) -> None: ...

class TuneRequest(_message.Message):
    __slots__ = ["edit", "placements", "view"]
    EDIT_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    edit: _view_pb2.Edit
    placements: _containers.RepeatedCompositeFieldContainer[Placement]
    view: _view_pb2.ViewUpdate
    def __init__(self, view: _Optional[_Union[_view_pb2.ViewUpdate, _Mapping]] = ..., edit: _Optional[_Union[_view_pb2.Edit, _Mapping]] = ..., placements: _Optional[_Iterable[_Union[Placement, _Mapping]]] = ...) -> None: ...

class TuneResponse(_message.Message):
    __slots__ = ["resync", "standing", "tunings"]
    RESYNC_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    TUNINGS_FIELD_NUMBER: _ClassVar[int]
    resync: bool
    standing: _view_pb2.Standing
    tunings: _containers.RepeatedCompositeFieldContainer[_view_pb2.Tuning]
    def __init__(self, resync: bool = ..., tunings: _Optional[_Iterable[_Union[_view_pb2.Tuning, _Mapping]]] = ..., standing: _Optional[_Union[_view_pb2.Standing, _Mapping]] = ...) -> None: ...

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
