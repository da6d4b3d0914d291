"""Formats of JSON Schema that are checked; small, exact and offline.

Each check takes a text and returns whether it has the format (RFC 3339 for dates and times, as JSON Schema asks).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from ipaddress import IPv4Address, IPv6Address
from itertools import chain
from typing import Any

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII)
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_QUOTED = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FUTURE_ADDRESS = re.compile(r"[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+")
_URI_TEXT = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*")
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_DURATION = re.compile(
    r"P(?:\d+W|(?=\d|T)(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)?"
    r"(?:T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S))?)",
    re.ASCII,
)


def _reads(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and _reads(date.fromisoformat, text)


def _is_time(text: str) -> bool:
    # with an offset from UTC; a leap second only where there can be one
    found = _TIME.fullmatch(text)
    if not found:
        return False
    hour, minute, second = (int(part) for part in found.groups()[:3])
    sign, far, near = found.group(4), int(found.group(5) or 0), int(found.group(6) or 0)
    if hour > 23 or minute > 59 or second > 60 or far > 23 or near > 59:
        return False
    shift = (far * 60 + near) * (-1 if sign == "+" else 1)
    return second < 60 or (hour * 60 + minute + shift) % 1440 == 1439


def _is_date_time(text: str) -> bool:
    return len(text) > 11 and text[10] in "Tt" and _is_date(text[:10]) and _is_time(text[11:])


def _is_hostname(text: str) -> bool:
    return len(text) <= 253 and all(_LABEL.fullmatch(label) for label in text.split("."))


def _is_ipv4(text: str) -> bool:
    return _reads(IPv4Address, text)


def _is_ipv6(text: str) -> bool:
    return "%" not in text and _reads(IPv6Address, text)


def _is_email(text: str) -> bool:
    # the local part may be quoted, the domain an address in brackets
    local, sign, domain = text.rpartition("@")
    if not sign or len(local) > 64 or not (_LOCAL.fullmatch(local) or _QUOTED.fullmatch(local)):
        return False
    if domain.startswith("[") and domain.endswith("]"):
        inside = domain[1:-1]
        return _is_ipv6(inside[5:]) if inside.startswith("IPv6:") else _is_ipv4(inside)
    return _is_hostname(domain)


def _is_uri_reference(text: str) -> bool:
    if not _URI_TEXT.fullmatch(text) or text.count("#") > 1:
        return False
    scheme = _SCHEME.match(text)
    rest = text[scheme.end() if scheme else 0 :].partition("#")[0].partition("?")[0]
    authority, _, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    if "[" in path or "]" in path:
        return False
    return not authority or _is_authority(authority)


def _is_authority(text: str) -> bool:
    user, _, place = text.rpartition("@")
    if "@" in user or "[" in user:
        return False
    if place.startswith("["):
        inside, closed, port = place[1:].partition("]")
        address = _is_ipv6(inside) or _FUTURE_ADDRESS.fullmatch(inside) is not None
        return bool(closed) and address and (not port or (port[0] == ":" and _is_port(port[1:])))
    host, _, port = place.partition(":")
    return "[" not in host and "]" not in host and _is_port(port)


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdigit())


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": _is_date,
    "date-time": _is_date_time,
    "time": _is_time,
    "email": _is_email,
    "uri": lambda text: _SCHEME.match(text) is not None and _is_uri_reference(text),
    "uri-reference": _is_uri_reference,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    # ISO 8601, as RFC 3339 gives it in appendix A
    "duration": lambda text: len(text) > 2 and _DURATION.fullmatch(text) is not None,
}
"""Name of a format to its check. Other formats are ignored."""

LENGTHS: Mapping[str, tuple[int, int]] = {
    "uuid": (36, 36),
    "date": (10, 10),
    "date-time": (20, 1 << 30),
    "ipv4": (7, 15),
}
"""The fewest and the most characters that texts of a format have."""

INTEGER_BITS: Mapping[str, int] = {"int32": 32, "int64": 64}
"""OpenAPI's formats of whole numbers."""

EXPECTED: Mapping[str, str] = {
    "date": "a date in the form YYYY-MM-DD",
    "date-time": "a date and time with an offset, in the form YYYY-MM-DDThh:mm:ssZ",
    "time": "a time with an offset, in the form hh:mm:ssZ",
    "email": "an e-mail address",
    "uri": "a URI that begins with its scheme",
    "uri-reference": "a URI or a reference relative to one",
    "uuid": "a UUID",
    "hostname": "a host name",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
    "duration": "an ISO 8601 duration, in the form P1DT2H",
    "int32": "a whole number of 32 bits",
    "int64": "a whole number of 64 bits",
}
"""The words for each format in a complaint."""


def fits_format(name: str, value: object) -> bool:
    """Return whether the value has the format; True if the format is unknown or does not apply to such values."""
    if isinstance(value, str) and name in FORMATS:
        return FORMATS[name](value)
    if isinstance(value, int) and not isinstance(value, bool) and name in INTEGER_BITS:
        half = 1 << (INTEGER_BITS[name] - 1)
        return -half <= value < half
    return True


def contradicts_format(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema's own example, default, constant or length contradicts its format."""
    name = str(schema["format"])
    lists = [value for key in ("examples", "enum") if isinstance(value := schema.get(key), list)]
    given = [*(schema[key] for key in ("default", "const", "example") if key in schema), *chain(*lists)]
    least, most = LENGTHS.get(name, (0, 1 << 30))
    too_short, too_long = schema.get("maxLength", most) < least, schema.get("minLength", least) > most
    return too_short or too_long or not all(fits_format(name, value) for value in given)
