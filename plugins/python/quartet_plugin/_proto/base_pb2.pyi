from . import view_pb2 as _view_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
STAGE_ADMISSION: Stage
STAGE_ALLOCATION: Stage
STAGE_ELASTICITY: Stage
STAGE_PLACEMENT: Stage
STAGE_SCALER: Stage
STAGE_UNSPECIFIED: Stage

class Component(_message.Message):
    __slots__ = ["capabilities", "config_schema_json", "counts", "description", "divides", "fields_json", "one_type", "sharing", "source", "stage", "summary", "type"]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    CONFIG_SCHEMA_JSON_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    DIVIDES_FIELD_NUMBER: _ClassVar[int]
    FIELDS_JSON_FIELD_NUMBER: _ClassVar[int]
    ONE_TYPE_FIELD_NUMBER: _ClassVar[int]
    SHARING_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    config_schema_json: str
    counts: bool
    description: str
    divides: bool
    fields_json: str
    one_type: bool
    sharing: _containers.RepeatedScalarFieldContainer[_view_pb2.Sharing]
    source: str
    stage: Stage
    summary: str
    type: str
    def __init__(self, stage: _Optional[_Union[Stage, str]] = ..., type: _Optional[str] = ..., summary: _Optional[str] = ..., description: _Optional[str] = ..., source: _Optional[str] = ..., capabilities: _Optional[_Iterable[str]] = ..., config_schema_json: _Optional[str] = ..., fields_json: _Optional[str] = ..., one_type: bool = ..., counts: bool = ..., sharing: _Optional[_Iterable[_Union[_view_pb2.Sharing, str]]] = ..., divides: bool = ...) -> None: ...

class ConfigureRequest(_message.Message):
    __slots__ = ["channel", "check_only", "component_id", "config_json", "seed", "stage", "type"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    CHECK_ONLY_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    channel: bool
    check_only: bool
    component_id: str
    config_json: str
    seed: int
    stage: Stage
    type: str
    def __init__(self, stage: _Optional[_Union[Stage, str]] = ..., type: _Optional[str] = ..., component_id: _Optional[str] = ..., seed: _Optional[int] = ..., config_json: _Optional[str] = ..., check_only: bool = ..., channel: bool = ...) -> None: ...

class ConfigureResponse(_message.Message):
    __slots__ = ["asked_once", "capabilities", "changing", "channel", "config_json", "curves", "diagnostics", "ends", "exchange", "follows_reports", "guarantees", "keeps_reserved", "precedes", "promises", "reports", "reviews", "withheld"]
    ASKED_ONCE_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    CHANGING_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    CURVES_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    EXCHANGE_FIELD_NUMBER: _ClassVar[int]
    FOLLOWS_REPORTS_FIELD_NUMBER: _ClassVar[int]
    GUARANTEES_FIELD_NUMBER: _ClassVar[int]
    KEEPS_RESERVED_FIELD_NUMBER: _ClassVar[int]
    PRECEDES_FIELD_NUMBER: _ClassVar[int]
    PROMISES_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    REVIEWS_FIELD_NUMBER: _ClassVar[int]
    WITHHELD_FIELD_NUMBER: _ClassVar[int]
    asked_once: bool
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    changing: bool
    channel: bool
    config_json: str
    curves: bool
    diagnostics: _containers.RepeatedCompositeFieldContainer[Diagnostic]
    ends: bool
    exchange: bool
    follows_reports: bool
    guarantees: _containers.RepeatedScalarFieldContainer[float]
    keeps_reserved: bool
    precedes: bool
    promises: bool
    reports: bool
    reviews: bool
    withheld: bool
    def __init__(self, diagnostics: _Optional[_Iterable[_Union[Diagnostic, _Mapping]]] = ..., capabilities: _Optional[_Iterable[str]] = ..., config_json: _Optional[str] = ..., exchange: bool = ..., channel: bool = ..., ends: bool = ..., changing: bool = ..., curves: bool = ..., promises: bool = ..., guarantees: _Optional[_Iterable[float]] = ..., reviews: bool = ..., reports: bool = ..., follows_reports: bool = ..., withheld: bool = ..., precedes: bool = ..., asked_once: bool = ..., keeps_reserved: bool = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ["components", "max_protocol", "min_protocol", "name", "version"]
    COMPONENTS_FIELD_NUMBER: _ClassVar[int]
    MAX_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    MIN_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    components: _containers.RepeatedCompositeFieldContainer[Component]
    max_protocol: int
    min_protocol: int
    name: str
    version: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., components: _Optional[_Iterable[_Union[Component, _Mapping]]] = ..., min_protocol: _Optional[int] = ..., max_protocol: _Optional[int] = ...) -> None: ...

class Diagnostic(_message.Message):
    __slots__ = ["hint", "path", "summary"]
    HINT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    hint: str
    path: str
    summary: str
    def __init__(self, path: _Optional[str] = ..., summary: _Optional[str] = ..., hint: _Optional[str] = ...) -> None: ...

class ExchangeRequest(_message.Message):
    __slots__ = ["call", "message", "method"]
    CALL_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    call: int
    message: bytes
    method: str
    def __init__(self, method: _Optional[str] = ..., message: _Optional[bytes] = ..., call: _Optional[int] = ...) -> None: ...

class ExchangeResponse(_message.Message):
    __slots__ = ["call", "code", "error", "message"]
    CALL_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    call: int
    code: int
    error: str
    message: bytes
    def __init__(self, message: _Optional[bytes] = ..., call: _Optional[int] = ..., code: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class HealthRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class HealthResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class Stage(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
