from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

CODE_ADMIT: Code
CODE_DEFER: Code
CODE_END: Code
CODE_REJECT: Code
CODE_UNSPECIFIED: Code
DESCRIPTOR: _descriptor.FileDescriptor
HEALTH_DOWN: Health
HEALTH_DRAINING: Health
HEALTH_GONE: Health
HEALTH_PROVISIONING: Health
HEALTH_READY: Health
HEALTH_UNSPECIFIED: Health
JOB_STATE_PENDING: JobState
JOB_STATE_RUNNING: JobState
JOB_STATE_UNSPECIFIED: JobState
JOB_STATE_WAITING: JobState
SHARING_FRACTIONAL: Sharing
SHARING_MIG: Sharing
SHARING_TIMESLICE: Sharing
SHARING_UNSPECIFIED: Sharing

class AloneTime(_message.Message):
    __slots__ = ["accelerator", "seconds"]
    ACCELERATOR_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    accelerator: str
    seconds: float
    def __init__(self, accelerator: _Optional[str] = ..., seconds: _Optional[float] = ...) -> None: ...

class BatchSpec(_message.Message):
    __slots__ = ["initial", "max", "max_per_device", "min_per_device", "requested"]
    INITIAL_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    MAX_PER_DEVICE_FIELD_NUMBER: _ClassVar[int]
    MIN_PER_DEVICE_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_FIELD_NUMBER: _ClassVar[int]
    initial: int
    max: int
    max_per_device: int
    min_per_device: int
    requested: int
    def __init__(self, requested: _Optional[int] = ..., initial: _Optional[int] = ..., max: _Optional[int] = ..., min_per_device: _Optional[int] = ..., max_per_device: _Optional[int] = ...) -> None: ...

class BatchSteps(_message.Message):
    __slots__ = ["batch", "steps"]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    batch: int
    steps: float
    def __init__(self, batch: _Optional[int] = ..., steps: _Optional[float] = ...) -> None: ...

class Curve(_message.Message):
    __slots__ = ["many_nodes", "one_node"]
    MANY_NODES_FIELD_NUMBER: _ClassVar[int]
    ONE_NODE_FIELD_NUMBER: _ClassVar[int]
    many_nodes: _containers.RepeatedScalarFieldContainer[float]
    one_node: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, one_node: _Optional[_Iterable[float]] = ..., many_nodes: _Optional[_Iterable[float]] = ...) -> None: ...

class Edit(_message.Message):
    __slots__ = ["steps"]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, steps: _Optional[_Iterable[int]] = ...) -> None: ...

class Gradients(_message.Message):
    __slots__ = ["square", "variance"]
    SQUARE_FIELD_NUMBER: _ClassVar[int]
    VARIANCE_FIELD_NUMBER: _ClassVar[int]
    square: float
    variance: float
    def __init__(self, square: _Optional[float] = ..., variance: _Optional[float] = ...) -> None: ...

class Iteration(_message.Message):
    __slots__ = ["compute_seconds", "load_seconds", "measured_seconds", "sync_seconds"]
    COMPUTE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LOAD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MEASURED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SYNC_SECONDS_FIELD_NUMBER: _ClassVar[int]
    compute_seconds: float
    load_seconds: float
    measured_seconds: float
    sync_seconds: float
    def __init__(self, load_seconds: _Optional[float] = ..., compute_seconds: _Optional[float] = ..., sync_seconds: _Optional[float] = ..., measured_seconds: _Optional[float] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ["as_of_seconds", "attained_device_seconds", "executed_seconds", "first_start_seconds", "gradients", "id", "last_change_seconds", "measured", "preemptions", "progress", "progress_as_of_seconds", "progress_rate", "reported", "resources", "response", "restarts", "seats", "slices", "spec", "starting", "state", "steps_left", "tuning", "waiting_reason"]
    AS_OF_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ATTAINED_DEVICE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXECUTED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    FIRST_START_SECONDS_FIELD_NUMBER: _ClassVar[int]
    GRADIENTS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    LAST_CHANGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIONS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_AS_OF_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_RATE_FIELD_NUMBER: _ClassVar[int]
    REPORTED_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    SLICES_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STARTING_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STEPS_LEFT_FIELD_NUMBER: _ClassVar[int]
    TUNING_FIELD_NUMBER: _ClassVar[int]
    WAITING_REASON_FIELD_NUMBER: _ClassVar[int]
    as_of_seconds: float
    attained_device_seconds: float
    executed_seconds: float
    first_start_seconds: float
    gradients: Gradients
    id: int
    last_change_seconds: float
    measured: _containers.RepeatedCompositeFieldContainer[Measurement]
    preemptions: int
    progress: float
    progress_as_of_seconds: float
    progress_rate: float
    reported: _containers.RepeatedCompositeFieldContainer[Series]
    resources: Resources
    response: Response
    restarts: int
    seats: _containers.RepeatedCompositeFieldContainer[Seat]
    slices: bytes
    spec: JobSpec
    starting: bool
    state: JobState
    steps_left: float
    tuning: Tuning
    waiting_reason: str
    def __init__(self, id: _Optional[int] = ..., spec: _Optional[_Union[JobSpec, _Mapping]] = ..., state: _Optional[_Union[JobState, str]] = ..., waiting_reason: _Optional[str] = ..., seats: _Optional[_Iterable[_Union[Seat, _Mapping]]] = ..., tuning: _Optional[_Union[Tuning, _Mapping]] = ..., as_of_seconds: _Optional[float] = ..., executed_seconds: _Optional[float] = ..., attained_device_seconds: _Optional[float] = ..., progress: _Optional[float] = ..., progress_rate: _Optional[float] = ..., progress_as_of_seconds: _Optional[float] = ..., steps_left: _Optional[float] = ..., first_start_seconds: _Optional[float] = ..., last_change_seconds: _Optional[float] = ..., restarts: _Optional[int] = ..., preemptions: _Optional[int] = ..., response: _Optional[_Union[Response, _Mapping]] = ..., measured: _Optional[_Iterable[_Union[Measurement, _Mapping]]] = ..., gradients: _Optional[_Union[Gradients, _Mapping]] = ..., starting: bool = ..., slices: _Optional[bytes] = ..., resources: _Optional[_Union[Resources, _Mapping]] = ..., reported: _Optional[_Iterable[_Union[Series, _Mapping]]] = ...) -> None: ...

class JobSpec(_message.Message):
    __slots__ = ["accelerators", "application", "batch", "batch_by_type", "best_effort", "command", "cpus", "deadline_seconds", "device_memory_gb", "experiment", "iteration", "max_replicas", "memory_gb", "min_replicas", "mixes_types", "name", "pairs", "pinned", "requested", "sensitivity", "share", "slowdown_tolerance", "step_times", "submit_seconds", "suspended", "tenant", "tier", "total_work", "truth", "utilisation", "weight"]
    ACCELERATORS_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    BATCH_BY_TYPE_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    BEST_EFFORT_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_MEMORY_GB_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    MAX_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_GB_FIELD_NUMBER: _ClassVar[int]
    MIN_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    MIXES_TYPES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_FIELD_NUMBER: _ClassVar[int]
    SENSITIVITY_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    SLOWDOWN_TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    STEP_TIMES_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    TOTAL_WORK_FIELD_NUMBER: _ClassVar[int]
    TRUTH_FIELD_NUMBER: _ClassVar[int]
    UTILISATION_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    accelerators: _containers.RepeatedScalarFieldContainer[str]
    application: str
    batch: BatchSpec
    batch_by_type: _containers.RepeatedCompositeFieldContainer[TypeBatch]
    best_effort: bool
    command: _containers.RepeatedScalarFieldContainer[str]
    cpus: float
    deadline_seconds: float
    device_memory_gb: float
    experiment: str
    iteration: Iteration
    max_replicas: int
    memory_gb: float
    min_replicas: int
    mixes_types: bool
    name: str
    pairs: int
    pinned: bool
    requested: int
    sensitivity: int
    share: Share
    slowdown_tolerance: float
    step_times: int
    submit_seconds: float
    suspended: bool
    tenant: str
    tier: str
    total_work: float
    truth: int
    utilisation: float
    weight: float
    def __init__(self, name: _Optional[str] = ..., tenant: _Optional[str] = ..., application: _Optional[str] = ..., weight: _Optional[float] = ..., submit_seconds: _Optional[float] = ..., requested: _Optional[int] = ..., min_replicas: _Optional[int] = ..., max_replicas: _Optional[int] = ..., accelerators: _Optional[_Iterable[str]] = ..., batch: _Optional[_Union[BatchSpec, _Mapping]] = ..., cpus: _Optional[float] = ..., memory_gb: _Optional[float] = ..., command: _Optional[_Iterable[str]] = ..., total_work: _Optional[float] = ..., step_times: _Optional[int] = ..., truth: _Optional[int] = ..., pinned: bool = ..., mixes_types: bool = ..., batch_by_type: _Optional[_Iterable[_Union[TypeBatch, _Mapping]]] = ..., suspended: bool = ..., deadline_seconds: _Optional[float] = ..., best_effort: bool = ..., tier: _Optional[str] = ..., share: _Optional[_Union[Share, _Mapping]] = ..., utilisation: _Optional[float] = ..., device_memory_gb: _Optional[float] = ..., slowdown_tolerance: _Optional[float] = ..., iteration: _Optional[_Union[Iteration, _Mapping]] = ..., sensitivity: _Optional[int] = ..., pairs: _Optional[int] = ..., experiment: _Optional[str] = ...) -> None: ...

class Measurement(_message.Message):
    __slots__ = ["accelerator", "count", "nodes", "pass_seconds", "per_device", "replicas", "spread", "step_seconds"]
    ACCELERATOR_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    PASS_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PER_DEVICE_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    SPREAD_FIELD_NUMBER: _ClassVar[int]
    STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    accelerator: str
    count: int
    nodes: int
    pass_seconds: float
    per_device: int
    replicas: int
    spread: float
    step_seconds: float
    def __init__(self, nodes: _Optional[int] = ..., replicas: _Optional[int] = ..., per_device: _Optional[int] = ..., pass_seconds: _Optional[float] = ..., step_seconds: _Optional[float] = ..., accelerator: _Optional[str] = ..., count: _Optional[int] = ..., spread: _Optional[float] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ["accelerator", "cpus", "device_memory_gb", "devices", "expected_seconds", "health", "id", "memory_gb", "name", "pool", "rack", "unusable"]
    ACCELERATOR_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_MEMORY_GB_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    MEMORY_GB_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    UNUSABLE_FIELD_NUMBER: _ClassVar[int]
    accelerator: int
    cpus: float
    device_memory_gb: float
    devices: int
    expected_seconds: float
    health: Health
    id: int
    memory_gb: float
    name: str
    pool: str
    rack: str
    unusable: int
    def __init__(self, id: _Optional[int] = ..., health: _Optional[_Union[Health, str]] = ..., unusable: _Optional[int] = ..., expected_seconds: _Optional[float] = ..., name: _Optional[str] = ..., accelerator: _Optional[int] = ..., devices: _Optional[int] = ..., cpus: _Optional[float] = ..., memory_gb: _Optional[float] = ..., rack: _Optional[str] = ..., pool: _Optional[str] = ..., device_memory_gb: _Optional[float] = ...) -> None: ...

class Pair(_message.Message):
    __slots__ = ["accelerator", "application", "beside", "beside_part", "part", "replicas"]
    ACCELERATOR_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    BESIDE_FIELD_NUMBER: _ClassVar[int]
    BESIDE_PART_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    accelerator: str
    application: str
    beside: str
    beside_part: float
    part: float
    replicas: int
    def __init__(self, accelerator: _Optional[str] = ..., application: _Optional[str] = ..., beside: _Optional[str] = ..., replicas: _Optional[int] = ..., part: _Optional[float] = ..., beside_part: _Optional[float] = ...) -> None: ...

class PairTable(_message.Message):
    __slots__ = ["pairs", "table"]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[Pair]
    table: int
    def __init__(self, table: _Optional[int] = ..., pairs: _Optional[_Iterable[_Union[Pair, _Mapping]]] = ...) -> None: ...

class Point(_message.Message):
    __slots__ = ["at_seconds", "step", "value"]
    AT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    at_seconds: float
    step: float
    value: float
    def __init__(self, step: _Optional[float] = ..., value: _Optional[float] = ..., at_seconds: _Optional[float] = ...) -> None: ...

class Pool(_message.Message):
    __slots__ = ["accelerator", "cpus", "device_memory_gb", "devices", "down_cooldown_seconds", "max_nodes", "memory_gb", "min_nodes", "name", "price_per_hour", "prices", "provisioning_seconds", "spot", "up_cooldown_seconds"]
    ACCELERATOR_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_MEMORY_GB_FIELD_NUMBER: _ClassVar[int]
    DOWN_COOLDOWN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MAX_NODES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_GB_FIELD_NUMBER: _ClassVar[int]
    MIN_NODES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    PRICE_PER_HOUR_FIELD_NUMBER: _ClassVar[int]
    PROVISIONING_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SPOT_FIELD_NUMBER: _ClassVar[int]
    UP_COOLDOWN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    accelerator: int
    cpus: float
    device_memory_gb: float
    devices: int
    down_cooldown_seconds: float
    max_nodes: int
    memory_gb: float
    min_nodes: int
    name: str
    price_per_hour: float
    prices: _containers.RepeatedCompositeFieldContainer[Price]
    provisioning_seconds: float
    spot: bool
    up_cooldown_seconds: float
    def __init__(self, name: _Optional[str] = ..., accelerator: _Optional[int] = ..., devices: _Optional[int] = ..., cpus: _Optional[float] = ..., memory_gb: _Optional[float] = ..., min_nodes: _Optional[int] = ..., max_nodes: _Optional[int] = ..., price_per_hour: _Optional[float] = ..., prices: _Optional[_Iterable[_Union[Price, _Mapping]]] = ..., up_cooldown_seconds: _Optional[float] = ..., down_cooldown_seconds: _Optional[float] = ..., provisioning_seconds: _Optional[float] = ..., spot: bool = ..., device_memory_gb: _Optional[float] = ...) -> None: ...

class Price(_message.Message):
    __slots__ = ["from_seconds", "per_hour"]
    FROM_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PER_HOUR_FIELD_NUMBER: _ClassVar[int]
    from_seconds: float
    per_hour: float
    def __init__(self, from_seconds: _Optional[float] = ..., per_hour: _Optional[float] = ...) -> None: ...

class Resources(_message.Message):
    __slots__ = ["cpus", "memory_gb"]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_GB_FIELD_NUMBER: _ClassVar[int]
    cpus: float
    memory_gb: float
    def __init__(self, cpus: _Optional[float] = ..., memory_gb: _Optional[float] = ...) -> None: ...

class Response(_message.Message):
    __slots__ = ["alone", "curves", "job", "max_replicas", "min_replicas", "remaining_work", "same_curves", "unlike"]
    ALONE_FIELD_NUMBER: _ClassVar[int]
    CURVES_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    MAX_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    MIN_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    REMAINING_WORK_FIELD_NUMBER: _ClassVar[int]
    SAME_CURVES_FIELD_NUMBER: _ClassVar[int]
    UNLIKE_FIELD_NUMBER: _ClassVar[int]
    alone: float
    curves: _containers.RepeatedCompositeFieldContainer[Curve]
    job: int
    max_replicas: int
    min_replicas: int
    remaining_work: float
    same_curves: bool
    unlike: UnlikeRates
    def __init__(self, job: _Optional[int] = ..., min_replicas: _Optional[int] = ..., max_replicas: _Optional[int] = ..., curves: _Optional[_Iterable[_Union[Curve, _Mapping]]] = ..., remaining_work: _Optional[float] = ..., same_curves: bool = ..., unlike: _Optional[_Union[UnlikeRates, _Mapping]] = ..., alone: _Optional[float] = ...) -> None: ...

class Seat(_message.Message):
    __slots__ = ["devices", "node"]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    devices: int
    node: int
    def __init__(self, node: _Optional[int] = ..., devices: _Optional[int] = ...) -> None: ...

class Sensitivity(_message.Message):
    __slots__ = ["base", "cpus", "ideal", "iteration_seconds", "memory_gb", "speeds", "speedup", "table"]
    BASE_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    IDEAL_FIELD_NUMBER: _ClassVar[int]
    ITERATION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_GB_FIELD_NUMBER: _ClassVar[int]
    SPEEDS_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    base: Resources
    cpus: _containers.RepeatedScalarFieldContainer[float]
    ideal: Resources
    iteration_seconds: float
    memory_gb: _containers.RepeatedScalarFieldContainer[float]
    speeds: _containers.RepeatedCompositeFieldContainer[Speeds]
    speedup: float
    table: int
    def __init__(self, table: _Optional[int] = ..., base: _Optional[_Union[Resources, _Mapping]] = ..., ideal: _Optional[_Union[Resources, _Mapping]] = ..., speedup: _Optional[float] = ..., iteration_seconds: _Optional[float] = ..., cpus: _Optional[_Iterable[float]] = ..., memory_gb: _Optional[_Iterable[float]] = ..., speeds: _Optional[_Iterable[_Union[Speeds, _Mapping]]] = ...) -> None: ...

class Series(_message.Message):
    __slots__ = ["kept", "metric", "points"]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    kept: int
    metric: str
    points: _containers.RepeatedCompositeFieldContainer[Point]
    def __init__(self, metric: _Optional[str] = ..., kept: _Optional[int] = ..., points: _Optional[_Iterable[_Union[Point, _Mapping]]] = ...) -> None: ...

class Share(_message.Message):
    __slots__ = ["milli", "profile"]
    MILLI_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    milli: int
    profile: str
    def __init__(self, milli: _Optional[int] = ..., profile: _Optional[str] = ...) -> None: ...

class Speeds(_message.Message):
    __slots__ = ["by_memory"]
    BY_MEMORY_FIELD_NUMBER: _ClassVar[int]
    by_memory: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, by_memory: _Optional[_Iterable[float]] = ...) -> None: ...

class Standing(_message.Message):
    __slots__ = ["if_seated", "until_seconds"]
    IF_SEATED_FIELD_NUMBER: _ClassVar[int]
    UNTIL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    if_seated: int
    until_seconds: float
    def __init__(self, until_seconds: _Optional[float] = ..., if_seated: _Optional[int] = ...) -> None: ...

class StepTimes(_message.Message):
    __slots__ = ["many_nodes", "one_node", "table", "types", "unlike"]
    MANY_NODES_FIELD_NUMBER: _ClassVar[int]
    ONE_NODE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    UNLIKE_FIELD_NUMBER: _ClassVar[int]
    many_nodes: _containers.RepeatedScalarFieldContainer[float]
    one_node: _containers.RepeatedScalarFieldContainer[float]
    table: int
    types: _containers.RepeatedCompositeFieldContainer[TypeTimes]
    unlike: UnlikeTimes
    def __init__(self, table: _Optional[int] = ..., one_node: _Optional[_Iterable[float]] = ..., many_nodes: _Optional[_Iterable[float]] = ..., types: _Optional[_Iterable[_Union[TypeTimes, _Mapping]]] = ..., unlike: _Optional[_Union[UnlikeTimes, _Mapping]] = ...) -> None: ...

class Truth(_message.Message):
    __slots__ = ["gradients", "measurements", "steps", "table"]
    GRADIENTS_FIELD_NUMBER: _ClassVar[int]
    MEASUREMENTS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    gradients: Gradients
    measurements: _containers.RepeatedCompositeFieldContainer[Measurement]
    steps: _containers.RepeatedCompositeFieldContainer[BatchSteps]
    table: int
    def __init__(self, table: _Optional[int] = ..., measurements: _Optional[_Iterable[_Union[Measurement, _Mapping]]] = ..., gradients: _Optional[_Union[Gradients, _Mapping]] = ..., steps: _Optional[_Iterable[_Union[BatchSteps, _Mapping]]] = ...) -> None: ...

class Tuning(_message.Message):
    __slots__ = ["accumulation_steps", "batch_by_replica", "batch_per_device", "job", "learning_rate_factor"]
    ACCUMULATION_STEPS_FIELD_NUMBER: _ClassVar[int]
    BATCH_BY_REPLICA_FIELD_NUMBER: _ClassVar[int]
    BATCH_PER_DEVICE_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    LEARNING_RATE_FACTOR_FIELD_NUMBER: _ClassVar[int]
    accumulation_steps: int
    batch_by_replica: _containers.RepeatedScalarFieldContainer[int]
    batch_per_device: int
    job: int
    learning_rate_factor: float
    def __init__(self, job: _Optional[int] = ..., batch_per_device: _Optional[int] = ..., accumulation_steps: _Optional[int] = ..., learning_rate_factor: _Optional[float] = ..., batch_by_replica: _Optional[_Iterable[int]] = ...) -> None: ...

class TypeBatch(_message.Message):
    __slots__ = ["accelerator", "max_per_device", "min_per_device"]
    ACCELERATOR_FIELD_NUMBER: _ClassVar[int]
    MAX_PER_DEVICE_FIELD_NUMBER: _ClassVar[int]
    MIN_PER_DEVICE_FIELD_NUMBER: _ClassVar[int]
    accelerator: str
    max_per_device: int
    min_per_device: int
    def __init__(self, accelerator: _Optional[str] = ..., min_per_device: _Optional[int] = ..., max_per_device: _Optional[int] = ...) -> None: ...

class TypeTimes(_message.Message):
    __slots__ = ["accelerator", "many_nodes", "one_node"]
    ACCELERATOR_FIELD_NUMBER: _ClassVar[int]
    MANY_NODES_FIELD_NUMBER: _ClassVar[int]
    ONE_NODE_FIELD_NUMBER: _ClassVar[int]
    accelerator: str
    many_nodes: _containers.RepeatedScalarFieldContainer[float]
    one_node: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, accelerator: _Optional[str] = ..., one_node: _Optional[_Iterable[float]] = ..., many_nodes: _Optional[_Iterable[float]] = ...) -> None: ...

class UnlikeRates(_message.Message):
    __slots__ = ["alone", "sync_seconds"]
    ALONE_FIELD_NUMBER: _ClassVar[int]
    SYNC_SECONDS_FIELD_NUMBER: _ClassVar[int]
    alone: _containers.RepeatedScalarFieldContainer[float]
    sync_seconds: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, alone: _Optional[_Iterable[float]] = ..., sync_seconds: _Optional[_Iterable[float]] = ...) -> None: ...

class UnlikeTimes(_message.Message):
    __slots__ = ["alone", "sync_seconds"]
    ALONE_FIELD_NUMBER: _ClassVar[int]
    SYNC_SECONDS_FIELD_NUMBER: _ClassVar[int]
    alone: _containers.RepeatedCompositeFieldContainer[AloneTime]
    sync_seconds: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, alone: _Optional[_Iterable[_Union[AloneTime, _Mapping]]] = ..., sync_seconds: _Optional[_Iterable[float]] = ...) -> None: ...

class Verdict(_message.Message):
    __slots__ = ["available", "code", "expected_seconds", "job", "message", "reason", "unit", "wanted"]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    available: float
    code: Code
    expected_seconds: float
    job: int
    message: str
    reason: str
    unit: str
    wanted: float
    def __init__(self, job: _Optional[int] = ..., code: _Optional[_Union[Code, str]] = ..., reason: _Optional[str] = ..., wanted: _Optional[float] = ..., available: _Optional[float] = ..., unit: _Optional[str] = ..., message: _Optional[str] = ..., expected_seconds: _Optional[float] = ...) -> None: ...

class ViewUpdate(_message.Message):
    __slots__ = ["accelerators", "changed", "counts_resources", "ended", "full", "health_changes", "interval_seconds", "jobs", "max_owners", "may_grow", "nodes", "now_seconds", "on_events", "oversubscribes_memory", "pairs", "pools", "round", "sensitivities", "sequence", "sharing", "step_times", "submitted", "truths"]
    ACCELERATORS_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    COUNTS_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    FULL_FIELD_NUMBER: _ClassVar[int]
    HEALTH_CHANGES_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    MAX_OWNERS_FIELD_NUMBER: _ClassVar[int]
    MAY_GROW_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    NOW_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ON_EVENTS_FIELD_NUMBER: _ClassVar[int]
    OVERSUBSCRIBES_MEMORY_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    SENSITIVITIES_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SHARING_FIELD_NUMBER: _ClassVar[int]
    STEP_TIMES_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_FIELD_NUMBER: _ClassVar[int]
    TRUTHS_FIELD_NUMBER: _ClassVar[int]
    accelerators: _containers.RepeatedScalarFieldContainer[str]
    changed: _containers.RepeatedScalarFieldContainer[int]
    counts_resources: bool
    ended: _containers.RepeatedScalarFieldContainer[int]
    full: bool
    health_changes: int
    interval_seconds: float
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    max_owners: int
    may_grow: bool
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    now_seconds: float
    on_events: bool
    oversubscribes_memory: bool
    pairs: _containers.RepeatedCompositeFieldContainer[PairTable]
    pools: _containers.RepeatedCompositeFieldContainer[Pool]
    round: int
    sensitivities: _containers.RepeatedCompositeFieldContainer[Sensitivity]
    sequence: int
    sharing: Sharing
    step_times: _containers.RepeatedCompositeFieldContainer[StepTimes]
    submitted: int
    truths: _containers.RepeatedCompositeFieldContainer[Truth]
    def __init__(self, sequence: _Optional[int] = ..., full: bool = ..., now_seconds: _Optional[float] = ..., round: _Optional[int] = ..., interval_seconds: _Optional[float] = ..., accelerators: _Optional[_Iterable[str]] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., step_times: _Optional[_Iterable[_Union[StepTimes, _Mapping]]] = ..., jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., ended: _Optional[_Iterable[int]] = ..., changed: _Optional[_Iterable[int]] = ..., health_changes: _Optional[int] = ..., submitted: _Optional[int] = ..., truths: _Optional[_Iterable[_Union[Truth, _Mapping]]] = ..., on_events: bool = ..., may_grow: bool = ..., pools: _Optional[_Iterable[_Union[Pool, _Mapping]]] = ..., sharing: _Optional[_Union[Sharing, str]] = ..., max_owners: _Optional[int] = ..., oversubscribes_memory: bool = ..., counts_resources: bool = ..., sensitivities: _Optional[_Iterable[_Union[Sensitivity, _Mapping]]] = ..., pairs: _Optional[_Iterable[_Union[PairTable, _Mapping]]] = ...) -> None: ...

class Sharing(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class Health(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class Code(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
