"""Settings of a policy: a dataclass is the only source of their defaults, validation, documentation and schema.

    @dataclass
    class Config:
        factor: float = field(1.2, doc="share of the devices that may be promised", min=0)
        window: timedelta = field(timedelta(hours=1), doc="how far to look ahead", min="1s")
        order: str = field("submitted", doc="who comes first", enum=["submitted", "shortest"])

A field is a bool, int, float, str, timedelta, dict of free keys, another such dataclass, or a list of one of these.
min, max and enum bound the value, or each element of a list. A field without a default must be set. What is left out of
an element of a list takes the default of its field. A method validate(self) that returns or yields problems is asked
about settings that are otherwise fine; a problem may begin with the path of a setting and ": ".
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import json
import math
import re
import sys
import typing
from typing import Any, NamedTuple
from collections.abc import Iterable, Mapping, Sequence

from ._gotext import duration_text, number_text, parse_duration, quote


def field(
    default: Any = dataclasses.MISSING, *, doc: str, min: float | str | None = None,
    max: float | str | None = None, enum: Sequence[str] | None = None,
) -> Any:
    """Declares one setting: its default, one sentence of documentation, and what bounds it."""
    metadata = {"quartet": _Tags(doc, _bound_text(min), _bound_text(max), list(enum) if enum else None)}
    if isinstance(default, (list, dict)) or dataclasses.is_dataclass(default):
        return dataclasses.field(default_factory=lambda: copy.deepcopy(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


class _Tags(NamedTuple):
    doc: str
    min: str
    max: str
    enum: list[str] | None


def _bound_text(bound: float | str | None) -> str:
    if bound is None:
        return ""
    return bound if isinstance(bound, str) else number_text(bound)


class Diagnostic(NamedTuple):
    """One problem in the settings."""

    path: str  # such as "thresholds[1]"
    summary: str  # what is wrong, lower case, no full stop
    hint: str = ""  # what to do


class Field(NamedTuple):
    """Describes one setting."""

    name: str
    # bool, int, number, string, duration, object, mapping (free keys), or "list of" one of these.
    type: str
    doc: str
    default: str  # as the user would write it; empty for objects
    required: bool
    enum: list[str] | None
    min: str
    max: str
    fields: list[Field]  # of an object, or of the objects of a list
    value: Any  # the default; MISSING when required
    config: Any  # the dataclass of fields

    def document(self) -> dict[str, Any]:
        """The field as the host reads it."""
        return {
            "Name": self.name, "Type": self.type, "Doc": self.doc, "Default": self.default, "Required": self.required,
            "Enum": self.enum, "Min": self.min, "Max": self.max,
            "Fields": [f.document() for f in self.fields] or None,
        }


_LIST_OF = "list of "
_SIMPLE = {bool: "bool", int: "int", float: "number", str: "string", datetime.timedelta: "duration"}


def fields_of(config: type, instance: Any = None) -> list[Field]:
    """The settings of a dataclass, in its order, with the defaults of an instance if one is given. A declaration that no
    config may use is a TypeError."""
    if not dataclasses.is_dataclass(config):
        raise TypeError(f"{config.__qualname__} is not a dataclass; decorate it with @dataclass")
    module = sys.modules.get(config.__module__)
    types = typing.get_type_hints(config, getattr(module, "__dict__", {}), dict(vars(config)))
    return [_new_field(config, f, types[f.name], instance) for f in dataclasses.fields(config)]


def _new_field(config: type, f: dataclasses.Field[Any], annotation: Any, instance: Any) -> Field:
    tags = f.metadata.get("quartet")
    if tags is None:
        raise TypeError(f"{config.__qualname__}.{f.name} has no documentation; declare it by field(default, doc=...)")
    value = f.default if f.default_factory is dataclasses.MISSING else f.default_factory()
    if instance is not None:
        value = getattr(instance, f.name)
    required = value is dataclasses.MISSING
    lists = ""
    while typing.get_origin(annotation) is list:
        lists += _LIST_OF
        annotation = typing.get_args(annotation)[0]
    kind, inner, of = _SIMPLE.get(annotation, ""), [], None
    if annotation is dict or typing.get_origin(annotation) is dict:
        kind = "mapping"
    elif isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        kind, of = "object", annotation
        inner = fields_of(annotation, None if lists or required else value)
    if not kind:
        raise TypeError(f"{config.__qualname__}.{f.name} is of type {annotation!r}, which no setting can have")
    shown = not required and lists + kind not in ("object", "mapping")
    return Field(
        f.name, lists + kind, tags.doc, _text(encode_value(value)) if shown else "", required,
        tags.enum, tags.min, tags.max, inner, value, of,
    )


def _text(value: Any) -> str:
    """An encoded value the way YAML writes it on one line."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return ""  # an object shows its defaults field by field
    return value if isinstance(value, str) else number_text(value)


def encode(config: Any) -> dict[str, Any]:
    """Every setting with its value, as decode takes it."""
    return {f.name: encode_value(getattr(config, f.name)) for f in dataclasses.fields(config)}


def encode_value(value: Any) -> Any:
    if isinstance(value, datetime.timedelta):
        return duration_text(value)
    if isinstance(value, (list, tuple)):
        return [encode_value(element) for element in value]
    return encode(value) if dataclasses.is_dataclass(value) else value


# The schema.

_DURATION_PATTERN = r"^[-+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"


def schema_of(config: type, title: str, description: str) -> dict[str, Any]:
    """The JSON schema of the settings."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, "description": description,
        **_object_schema(fields_of(config)),
    }


def _object_schema(fields: Sequence[Field]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for f in fields:
        schema = _value_schema(f, f.type)
        schema["description"] = f.doc
        if not f.required and f.type not in ("object", "mapping"):
            schema["default"] = encode_value(f.value)
        properties[f.name] = schema
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    required = [f.name for f in fields if f.required]
    return {**schema, "required": required} if required else schema


def _value_schema(f: Field, type_: str) -> dict[str, Any]:
    if type_.startswith(_LIST_OF):
        return {"type": "array", "items": _value_schema(f, type_[len(_LIST_OF):])}
    if type_ == "object":
        return _object_schema(f.fields)
    if type_ == "duration":  # its bounds are durations too, which a schema cannot compare
        return {"type": "string", "pattern": _DURATION_PATTERN}
    schema: dict[str, Any] = {
        "type": {"mapping": "object", "bool": "boolean", "int": "integer", "number": "number", "string": "string"}[type_]
    }
    if type_ == "string" and f.enum is not None:
        schema["enum"] = f.enum
    if type_ in ("int", "number"):
        for keyword, bound in (("minimum", f.min), ("maximum", f.max)):
            if bound:
                schema[keyword] = json.loads(bound)
    return schema


# Decoding.


def decode(config: type, raw: Mapping[str, Any]) -> tuple[Any, list[Diagnostic]]:
    """The defaults with the user's settings on top, or every problem with them. The config is None when there are any."""
    checker = _Checker()
    values = checker.object("", fields_of(config), raw)
    if not checker.unusable:
        decoded = config(**values)
        validate = getattr(decoded, "validate", None)
        if validate is not None:
            checker.found += _diagnose(validate(), fields_of(config))
        if not checker.found:
            return decoded, []
    return None, checker.found


def _diagnose(problems: Iterable[str] | None, fields: Sequence[Field]) -> list[Diagnostic]:
    names = {f.name for f in fields}
    found = []
    for problem in problems or ():
        path, colon, summary = problem.partition(": ")
        start = re.match(r"[a-z0-9_]*", path)
        if colon and start is not None and start.group() in names:
            found.append(Diagnostic(path, summary))
        else:
            found.append(Diagnostic("", problem))
    return found


class _Checker:
    """Compares raw settings with the fields they are meant for, and converts them."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self.unusable = False  # a problem that leaves no sensible value to decode

    def refuse(self, path: str, summary: str, hint: str = "") -> None:
        self.found.append(Diagnostic(path, summary, hint))
        self.unusable = True

    def object(self, path: str, fields: Sequence[Field], raw: Mapping[str, Any]) -> dict[str, Any]:
        names = [f.name for f in fields]
        for key in sorted(raw):
            if key not in names:
                hint = suggest(key, "keys", names) if names else "no keys are valid here"
                self.found.append(Diagnostic(_join(path, key), "unknown key", hint))
        values = {}
        for f in fields:
            at = _join(path, f.name)
            if f.name in raw:
                values[f.name] = self.value(at, f, f.type, raw[f.name])
            elif f.required and f.type == "object":
                values[f.name] = self.value(at, f, f.type, {})
            elif f.required:
                self.refuse(at, "required but missing", f.doc)
            else:
                values[f.name] = copy.deepcopy(f.value)
        return values

    def value(self, path: str, f: Field, type_: str, raw: Any) -> Any:
        if type_.startswith(_LIST_OF):
            if not isinstance(raw, list):
                return self.mismatch(path, type_, raw)
            element = type_[len(_LIST_OF):]
            return [self.value(f"{path}[{i}]", f, element, r) for i, r in enumerate(raw)]
        if isinstance(raw, bool):
            return raw if type_ == "bool" else self.mismatch(path, type_, raw)
        if type_ == "int" and isinstance(raw, (int, float)) and raw == raw // 1:
            self.in_range(path, f, raw, float, number_text)
            if not -(1 << 63) <= raw < 1 << 63:
                self.refuse(path, f"{number_text(raw)} is out of range")
            return int(raw)
        if type_ == "number" and isinstance(raw, (int, float)):
            if not math.isfinite(raw):
                return self.refuse(path, f"expected a finite number, got {number_text(raw)}")
            return self.in_range(path, f, float(raw), float, number_text)
        if type_ == "string" and isinstance(raw, str):
            if f.enum is not None and raw not in f.enum:
                self.refuse(path, f"unknown value {quote(raw)}", suggest(raw, "values", f.enum))
            return raw
        if type_ == "duration" and isinstance(raw, str):
            duration = parse_duration(raw)
            if duration is None:
                return self.mismatch(path, type_, raw)
            return self.in_range(path, f, duration, parse_duration, duration_text)
        if type_ == "object" and isinstance(raw, dict):
            values = self.object(path, f.fields, raw)
            return None if self.unusable else f.config(**values)
        if type_ == "mapping" and isinstance(raw, dict):
            return raw
        return self.mismatch(path, type_, raw)

    def in_range(self, path: str, f: Field, value: Any, bound: Any, text: Any) -> Any:
        if f.min and value < bound(f.min):
            self.refuse(path, f"must be at least {f.min}, got {text(value)}")
        if f.max and value > bound(f.max):
            self.refuse(path, f"must be at most {f.max}, got {text(value)}")
        return value

    def mismatch(self, path: str, type_: str, raw: Any) -> None:
        hint = ""
        if isinstance(raw, (int, float)) and not isinstance(raw, bool):
            if type_ == "duration":
                hint = f'write "{number_text(raw)}s"'
            elif type_ == "string":
                hint = f'write "{number_text(raw)}" in quotes'
        elif isinstance(raw, bool) and type_ == "string":
            hint = f'write "{_given(raw)}" in quotes'
        self.refuse(path, f"expected {_expected(type_)}, got {_given(raw)}", hint)


_EXPECTATIONS = {
    "bool": "true or false", "int": "a whole number", "number": "a number", "string": "text",
    "duration": 'a duration such as "60s"', "object": "a mapping", "mapping": "a mapping",
}


def _expected(type_: str) -> str:
    return "a list" if type_.startswith(_LIST_OF) else _EXPECTATIONS[type_]


def _given(raw: Any) -> str:
    if raw is None:
        return "nothing"
    if isinstance(raw, str):
        return f"text {quote(raw)}"
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, list):
        return "a list"
    return "a mapping" if isinstance(raw, dict) else f"number {number_text(raw)}"


_MAX_SUGGESTED = 64  # the distance costs the product of both lengths


def suggest(name: str, noun: str, valid: Sequence[str]) -> str:
    """The hint for an unknown name: the nearest valid one, if one is near, and all of them."""
    hint = f"valid {noun}: {', '.join(valid)}"
    if len(name) > _MAX_SUGGESTED:
        return hint
    nearest, distance = "", (len(name) + 2) // 3 + 1
    for v in valid:
        d = _distance(name, v)
        if d < distance:
            nearest, distance = v, d
    return f'did you mean "{nearest}"? {hint}' if nearest else hint


def _distance(a: str, b: str) -> int:
    """The Levenshtein distance."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        diagonal, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            diagonal, row[j + 1] = row[j + 1], min(row[j] + 1, row[j + 1] + 1, diagonal + (x != y))
    return row[-1]


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
