"""What a Config may declare. That settings are checked and described as in Go is tested in Go, beside the Go SDK."""

import json
from dataclasses import dataclass
from datetime import timedelta

import pytest

from quartet_plugin import AdmissionPolicy, field
from quartet_plugin._gotext import duration_text, number_text, parse_duration
from quartet_plugin._server import Server
from quartet_plugin.config import decode, encode, fields_of


@dataclass
class Inner:
    most: int = field(doc="most")
    least: int = field(1, doc="least")


@dataclass
class Outer:
    bare: Inner = field(doc="has no value")
    window: timedelta = field(timedelta(minutes=1), doc="window")
    preset: Inner = field(Inner(2, 3), doc="has one")
    many: list[Inner] = field([Inner(4, 5)], doc="several")


def test_objects_in_objects():
    config, problems = decode(Outer, {"bare": {"most": 9}, "preset": {"least": 7}})
    assert not problems
    assert config == Outer(Inner(9, 1), timedelta(minutes=1), Inner(2, 7), [Inner(4, 5)])
    assert decode(Outer, encode(config)) == (config, [])
    assert [str(p.path) for p in decode(Outer, {"many": [{}]})[1]] == ["bare.most", "many[0].most"]


def test_defaults_are_not_shared():
    one, _ = decode(Outer, {"bare": {"most": 9}})
    one.many.append(one.bare)
    one.preset.least = 100
    other, _ = decode(Outer, {"bare": {"most": 9}})
    assert other.many == [Inner(4, 5)] and other.preset == Inner(2, 3)


def config_of(**namespace):
    return type("Config", (), {"__module__": __name__, **namespace})


@pytest.mark.parametrize(
    "config, message",
    [
        (config_of(), "not a dataclass"),
        (dataclass(config_of(__annotations__={"a": int}, a=1)), "a has no documentation"),
        (dataclass(config_of(__annotations__={"a": set[int]}, a=field(None, doc="a"))), "no setting can have"),
    ],
)
def test_declarations_that_no_config_may_use(config, message):
    with pytest.raises(TypeError, match=message):
        fields_of(config)


def test_policies_that_no_plugin_may_serve():
    class Nameless(AdmissionPolicy):
        summary = "has no type"

    class Stageless:
        type = "stageless"
        summary = "has no stage"

    for policies, message in [([], "at least one"), ([Nameless], "needs a type"), ([Stageless], "must derive")]:
        with pytest.raises(TypeError, match=message):
            Server("name", "v1", policies)


@pytest.mark.parametrize(
    "text, want",
    [
        ("0", "0s"), ("8h", "8h"), ("90m", "1h30m"), ("1h5s", "1h0m5s"), ("1.5s", "1.5s"), ("-3m", "-3m"), ("250ms", "250ms"),
        ("1500us", "1.5ms"), ("5µs", "5µs"), (".5m", "30s"), ("+1m0s", "1m"),
    ],
)
def test_durations(text, want):
    assert duration_text(parse_duration(text)) == want


@pytest.mark.parametrize("text", ["", "-", "5", "1 h", "h", "1d", "1h-", "9999999h", "1.2.3s"])
def test_texts_that_are_no_duration(text):
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    "number, want",
    [(0.0, "0"), (100.0, "100"), (1e5, "100000"), (1e6, "1e+06"), (1234567.5, "1.2345675e+06"), (0.0001, "0.0001"),
     (0.00001, "1e-05"), (-2.5, "-2.5"), (10**7, "10000000"), (float("nan"), "NaN"), (float("-inf"), "-Inf")],
)
def test_numbers(number, want):
    assert number_text(number) == want


def test_encoded_settings_are_json():
    config, _ = decode(Outer, {"bare": {"most": 9}})
    assert json.loads(json.dumps(encode(config)))["window"] == "1m"
