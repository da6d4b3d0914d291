"""Formats of JSON Schema that rules check. Small and exact; none of them reaches out to anything.

Each check takes a text and says whether it has the format (RFC 3339 for dates and times, as JSON Schema asks).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from itertools import chain
from typing import Any

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
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


def is_date(text: str) -> bool:
    """`2024-02-29`, a day that exists."""
    found = _DATE.fullmatch(text)
    if not found:
        return False
    try:
        date(*map(int, found.groups()))
    except ValueError:
        return False
    return True


def is_time(text: str) -> bool:
    """`09:30:00Z`, with an offset from UTC; a leap second only where there can be one."""
    found = _TIME.fullmatch(text)
    if not found:
        return False
    hour, minute, second = (int(part) for part in found.groups()[:3])
    sign, far, near = found.group(4), int(found.group(5) or 0), int(found.group(6) or 0)
    if hour > 23 or minute > 59 or second > 60 or far > 23 or near > 59:
        return False
    shift = (far * 60 + near) * (-1 if sign == "+" else 1)
    return second < 60 or (hour * 60 + minute + shift) % 1440 == 1439


def is_date_time(text: str) -> bool:
    """`2024-02-29T09:30:00Z`."""
    return len(text) > 11 and text[10] in "Tt" and is_date(text[:10]) and is_time(text[11:])


def is_hostname(text: str) -> bool:
    """`shop.example.com`."""
    return len(text) <= 253 and all(_LABEL.fullmatch(label) for label in text.split("."))


def is_ipv4(text: str) -> bool:
    """`192.0.2.1`."""
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True


def is_ipv6(text: str) -> bool:
    """`2001:db8::1`, without a zone."""
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return "%" not in text


def is_email(text: str) -> bool:
    """`ann@example.com`; the part before the sign may be quoted, the part behind may be an address in brackets."""
    local, sign, domain = text.rpartition("@")
    if not sign or len(local) > 64 or not (_LOCAL.fullmatch(local) or _QUOTED.fullmatch(local)):
        return False
    if domain.startswith("[") and domain.endswith("]"):
        inside = domain[1:-1]
        return is_ipv6(inside[5:]) if inside.startswith("IPv6:") else is_ipv4(inside)
    return is_hostname(domain)


def is_uri(text: str) -> bool:
    """`https://example.com/a?b#c`: begins with a scheme."""
    return bool(_SCHEME.match(text)) and is_uri_reference(text)


def is_uri_reference(text: str) -> bool:
    """A URI, or one relative to another."""
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
        address = is_ipv6(inside) or _FUTURE_ADDRESS.fullmatch(inside) is not None
        return bool(closed) and address and (not port or (port[0] == ":" and _is_port(port[1:])))
    host, _, port = place.partition(":")
    return "[" not in host and "]" not in host and _is_port(port)


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdigit())


def is_uuid(text: str) -> bool:
    """`2eb8aa08-aa98-11ea-b4aa-73b441d16380`."""
    return _UUID.fullmatch(text) is not None


def is_duration(text: str) -> bool:
    """`P3DT4H`: ISO 8601, as RFC 3339 gives it in appendix A."""
    return len(text) > 2 and _DURATION.fullmatch(text) is not None


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": is_date,
    "date-time": is_date_time,
    "time": is_time,
    "email": is_email,
    "uri": is_uri,
    "uri-reference": is_uri_reference,
    "uuid": is_uuid,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "duration": is_duration,
}
"""Name of a format to its check. A format that is not here is no rule."""

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
"""What a complaint says of each format."""


def fits_format(name: str, value: object) -> bool:
    """True if the value has the format, if the format does not speak of such values, or if it is unknown."""
    if isinstance(value, str) and name in FORMATS:
        return FORMATS[name](value)
    if isinstance(value, int) and not isinstance(value, bool) and name in INTEGER_BITS:
        half = 1 << (INTEGER_BITS[name] - 1)
        return -half <= value < half
    return True


def contradicts_format(schema: Mapping[str, Any]) -> bool:
    """True if a schema's own example, default, constant or length shows that it does not mean its format."""
    name = str(schema["format"])
    lists = [value for key in ("examples", "enum") if isinstance(value := schema.get(key), list)]
    given = [*(schema[key] for key in ("default", "const", "example") if key in schema), *chain(*lists)]
    least, most = LENGTHS.get(name, (0, 1 << 30))
    too_short, too_long = schema.get("maxLength", most) < least, schema.get("minLength", least) > most
    return too_short or too_long or not all(fits_format(name, value) for value in given)
