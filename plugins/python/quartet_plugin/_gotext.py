"""Numbers, durations and quoted text, read and written as the host does."""

from __future__ import annotations

import datetime
import json
import re
from decimal import Decimal

_UNITS = {"ns": "1e-9", "us": "1e-6", "µs": "1e-6", "μs": "1e-6", "ms": "1e-3", "s": "1", "m": "60", "h": "3600"}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")


def parse_duration(text: str) -> datetime.timedelta | None:
    """A duration such as "1h30m", to the microsecond; None when it is none, or longer than the host allows."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return datetime.timedelta(0)
    if not rest:
        return None
    seconds = Decimal(0)
    while rest:
        part = _PART.match(rest)
        if part is None:
            return None
        seconds += Decimal(part.group(1)) * Decimal(_UNITS[part.group(2)])
        rest = rest[part.end():]
    if seconds * 10**9 >= 2**63:
        return None
    return datetime.timedelta(microseconds=sign * int((seconds * 10**6).to_integral_value()))


def duration_text(duration: datetime.timedelta) -> str:
    """A duration without zero parts: "8h", "1m30s", "250ms"."""
    us = duration // datetime.timedelta(microseconds=1)
    if us == 0:
        return "0s"
    sign, us = ("-", -us) if us < 0 else ("", us)
    if us < 10**6:
        return f"{sign}{_trimmed(Decimal(us) / 1000)}ms" if us >= 1000 else f"{sign}{us}µs"
    minutes, us = divmod(us, 60 * 10**6)
    hours, minutes = divmod(minutes, 60)
    text = sign + (f"{hours}h" if hours else "")
    if minutes or hours and us:
        text += f"{minutes}m"
    return text + (f"{_trimmed(Decimal(us) / 10**6)}s" if us else "")


def _trimmed(number: Decimal) -> str:
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def number_text(value: int | float) -> str:
    """The shortest decimal that reads back as the number; floats below 1e-4 and from 1e+06 on have an exponent."""
    if isinstance(value, int):
        return str(value)
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    point = len(digits) + int(exponent)  # digits before the decimal point
    if value == 0:
        return "-0" if sign else "0"
    first, others = digits[0], "".join(map(str, digits[1:]))
    minus = "-" if sign else ""
    if -4 <= point - 1 < 6:
        return minus + format(Decimal((0, digits, int(exponent))), "f")
    return f"{minus}{first}{'.' + others if others else ''}e{point - 1:+03d}"


_LONGEST = 60


def quote(text: str) -> str:
    """A text of the user's, cut to what fits a line."""
    if len(text) > _LONGEST:
        return json.dumps(text[:_LONGEST], ensure_ascii=False) + "…"
    return json.dumps(text, ensure_ascii=False)
