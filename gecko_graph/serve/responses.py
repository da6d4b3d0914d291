"""An operation's documented responses: statuses, error schemas, examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from ..schemas.complaints import find_faults
from ..schemas.made_up import Impossible, make_value
from ..state import Json, JsonObject
from ..tools.spec import ToolSpec
from ..values.places import map_texts

PROBLEM = "application/problem+json"
_FILE = re.compile(r"[^\s'\"]+(?=#/)")
_STATUSES = ("status", "status_code", "statusCode", "http_status", "httpStatus")
_TEXTS = ("message", "detail", "error", "error_description", "title", "reason", "description")
_KINDS = (
    (404, r"not found|no such|unknown|does not exist|there is no|is no |has no |not exist"),
    (409, r"already|exists|conflict|not empty|in use|busy"),
    (403, r"forbidden|not allowed|permission|denied|may not"),
    (402, r"credit|payment|funds|balance"),
)


@dataclass(frozen=True, slots=True)
class DocumentedResponse:
    status: int
    media: str = ""
    schema: JsonObject | None = None
    examples: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Responses:
    """All documented responses of an operation, by code as written: `404`, `4XX`, `default`."""

    all: dict[str, DocumentedResponse]

    @classmethod
    def of(cls, tool: ToolSpec) -> Responses:
        given = tool.binding.responses if tool.binding else {}
        codes = {code: code if code == "default" else code.upper() for code in given}
        statuses = {code: 200 if code == "default" else int(code.replace("X", "0")) for code in codes.values()}
        return cls({code: DocumentedResponse(statuses[code], **given[own]) for own, code in codes.items()})

    def success(self, result: Json, status: int | None = None) -> DocumentedResponse:
        """Return the response for a result: that of a given status, else the lowest 2xx with content."""
        if status is not None:
            return self.find(status) or DocumentedResponse(status, "" if result is None else "application/json")
        fine = sorted((one for code, one in self.all.items() if code[0] == "2"), key=lambda one: one.status)
        bare = [one for one in fine if not one.media]
        if result is None and bare:
            return bare[0]
        found = next((one for one in fine if one.media), None)
        return found or next(iter(fine), None) or DocumentedResponse(200)

    def find(self, status: int) -> DocumentedResponse | None:
        found = self.all.get(str(status)) or self.all.get(f"{status // 100}XX") or self.all.get("default")
        return found and DocumentedResponse(status, found.media, found.schema, found.examples)

    def error(self, result: Json, *, tool: str, status: int | None = None) -> tuple[DocumentedResponse, Json]:
        """Return the response for a tool's own error: in the document's schema for a 4xx, else an RFC 9457 problem.

        A status chosen by a contract is kept, and so is 404.
        """
        result = map_texts(result, _hide_file)
        wanted, text = status or _kind_of(result), _text_of(result)
        codes = [one.status for code, one in self.all.items() if code[0] == "4" and one.status not in (401, 429)]
        others = sorted(codes, key=lambda code: (code in (404, 409, 403, 422), code))
        order = [wanted, *(others if status is None and wanted != 404 else ())]
        for status in order if codes or "default" in self.all else ():
            if (found := self.find(status)) and "json" in found.media and found.schema is not None:
                for body in (result, *_fill(found.schema, text, tool, status)):
                    if not find_faults(found.schema, body):
                        return found, body
            elif found and not found.media:  # documented without content
                return DocumentedResponse(status, PROBLEM), problem(status, text, result)
        return DocumentedResponse(wanted, PROBLEM), problem(wanted, text, result)

    def refusal(self, status: int, text: str, more: JsonObject, *, tool: str) -> tuple[DocumentedResponse, Json] | None:
        """Return our own refusal in the document's error schema, if it has one; with `more` if it fits."""
        known = [self.find(each) for each in (status, *((400,) if status in (415, 422) else ()))]
        errors = sorted((one for code, one in self.all.items() if code[0] in "45"), key=lambda one: one.status)
        for found in (*known, *(replace(one, status=status) for one in errors)):
            if found and "json" in found.media and found.schema is not None:
                for body in _fill(found.schema, text, tool, found.status):
                    for each in ({**body, **more} if isinstance(body, dict) else body, body):
                        if not find_faults(found.schema, each):
                            return found, each
        return None

    def prefer(self, code: str | None, example: str | None, *, tool: str) -> tuple[DocumentedResponse, Json]:
        """Return the selected documented response, or one made up from its schema. Raises LookupError, Impossible."""
        found = self.find(int(code)) if code else self.success({})
        if found is None or (example is not None and example not in found.examples):
            raise LookupError(f"code={code}" if found is None else f"example={example}")
        if example is not None or found.examples:
            return found, found.examples[example or next(iter(found.examples))]
        if found.schema is None or not found.media:
            return found, None
        return found, make_value(found.schema, seed=0, key=f"{tool} {code}", subject=tool)


def _hide_file(text: str) -> str:
    """Return a text without the file of a contract's place, `FILE#/paths/...`."""
    return _FILE.sub("", text)


def problem(status: int, detail: str, error: Json = None, **more: Json) -> JsonObject:
    about = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return about | ({"error": error} if error is not None else {}) | more


def _kind_of(result: Json) -> int:
    given = result.get("status", result.get("code")) if isinstance(result, dict) else None
    if isinstance(given, int) and 400 <= given <= 499:
        return given
    text = _text_of(result).lower()
    return next((status for status, words in _KINDS if re.search(words, text)), 400)


def _text_of(result: Json) -> str:
    for _ in range(4):
        if not isinstance(result, dict):
            break
        result = next((result[key] for key in ("error", *_TEXTS) if key in result), next(iter(result.values()), ""))
    return result if isinstance(result, str) else repr(result)


def _fill(schema: JsonObject, text: str, tool: str, status: int) -> Iterator[Json]:
    """Yield bodies that a schema may take, with the error's own words and status if it has a place for them."""
    try:
        body = make_value(schema, seed=0, key=f"{tool} error", subject=tool)
    except Impossible:
        return
    yield _put(body, text, status)
    yield _put(body, text)


def _put(body: Json, text: str, status: int | None = None) -> Json:
    if isinstance(body, str):
        return text
    if isinstance(body, list):
        return [_put(one, text, status) for one in body[:1]]
    if not isinstance(body, dict):
        return body
    names = [key for key in _TEXTS if isinstance(body.get(key), str)]
    inner = {key: _put(one, text, status) for key, one in body.items() if isinstance(one, dict | list)}
    numbers = {key: status for key in _STATUSES if status and type(body.get(key)) is int}
    return {**body, **inner, **numbers, **({names[0]: text} if names else {})}
