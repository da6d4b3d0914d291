"""What the schema rung makes up, and what in it a person notices: rules over each answer of real OpenAPI documents."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from gecko_graph import Toolkit
from gecko_graph.context import GeckoContext
from gecko_graph.errors import ToolkitError
from gecko_graph.generator.maker import make_value
from gecko_graph.models.ask import Where
from gecko_graph.simulation.rung import Answer, RungRequest
from gecko_graph.simulation.schema import schema_rung
from gecko_graph.state import Call, Json, JsonObject
from gecko_graph.toolkit.spec import ToolSpec

from ..harness.figures import Measured, Table, mean_of, share
from ..harness.suite import Case, EvalError, Expectation, Record, Suite, Summary, by_group

K8S = "kubernetes-sigs/kubectl-validate pkg/openapiclient/builtins/1.35"
LARGE = {
    "ddeb078a50208d94": "sonallux/spotify-web-api fixed-spotify-open-api.yml, commit a3369587d22f",
    "db5d7478feae10b4": "openai/openai-openapi openapi.yaml, commit f85dbe223d40",
    "45666551cf0928e4": f"{K8S}/api/v1.json, commit a97ccfaca20b",
    "8f22326dfd8be012": f"{K8S}/apis/apps/v1.json, commit a97ccfaca20b",
    "75375a3f73cf46fc": f"{K8S}/apis/batch/v1.json, commit a97ccfaca20b",
    "6b974984cb19f1ef": f"{K8S}/apis/networking.k8s.io/v1.json, commit a97ccfaca20b",
    "b65de9550d92bca0": f"{K8S}/apis/rbac.authorization.k8s.io/v1.json, commit a97ccfaca20b",
    "f5e5ae4c39988948": f"{K8S}/apis/storage.k8s.io/v1.json, commit a97ccfaca20b",
    "029a594575652be0": "samchon/openapi test/examples/v3.0/damoa.json, commit cc2aab4424e3",
    "5f4efade03e3c86f": "samchon/openapi test/examples/v3.0/fireblocks.json, commit cc2aab4424e3",
    "3b1179f1bfc6018d": "samchon/openapi test/examples/v3.0/clickhouse.json, commit cc2aab4424e3",
    "66d80a1c19b6b859": "samchon/openapi test/examples/v3.1/shopping.json, commit cc2aab4424e3",
    "68dc8b1b68af4e24": "samchon/openapi test/examples/v3.1/wanted.json, commit cc2aab4424e3",
}
"""Large documents that were measured as well (`--document FILE`): beginning of the SHA-256, and where it lies."""

DRAWS = 5
WANTED = 0.9

_MOMENT = r"(created|updated|modified|expires|expiry|expiration|timestamp|datetime|date|birthday|deadline|at|epoch)$"
TEXTS = (
    ("an address", r"\be ?mail( address)?$", r"^[^@\s]+@[^@\s]+\.\w+$"),
    ("an address", r"\b(url|uri|href|link|homepage|website)$", r"^([a-z]+://|/)\S*$"),
    ("an address", r"\bip( address)?$", r"^[\d.]+$|:"),
    ("a number", r"\b(phone|phone number|mobile|fax|telephone)$", r"^\+?[\d\s().-]{5,}$"),
    ("a number", r"\b(last ?4|zip|zip code|postal code|pin|digits|amount|price|cost|version|size|iban|mcc)$", r"\d"),
    ("a number", r"^(duration|length|width|height|weight|timeout|ttl|count|total|quantity)$", r"\d"),
    ("a date", _MOMENT.replace("|at|", r"|\w+ at|"), r"\d{4}|\d\d:\d\d"),
    ("a code", r"\bcountry code$", r"^[A-Z]{2,3}$"),
    ("a code", r"\bcurrency( code)?$", r"^[A-Za-z]{3}$"),
    ("a code", r"\b(language|locale)( code)?$", r"^[a-z]{2,3}([-_]\w+)?$|^[A-Z][a-z]+$"),
    ("a code", r"\b(time ?zone)$", r"/|^UTC|^GMT"),
    ("a code", r"\b(mime type|content type|media type)$", r"/"),
    ("a code", r"\b(http method|webhook method)$", r"^[A-Z]+$"),
    ("a name", r"\b(first|last|full|given|family|customer|user|person) name$|^(city|country)$", r"^[A-Z]"),
)
"""What a text in a field of such a name must look like: kind of oddity, the name's words, the text."""

NUMBERS = (
    ("a date", _MOMENT.replace("|at|", r"|\w+ at|"), 1e8, 5e12),
    ("a number", r"\b(percent|percentage|humidity|battery)\b", 0, 100),
    ("a number", r"\b(latitude|lat)$", -90, 90),
    ("a number", r"\b(longitude|lon|lng)$", -180, 180),
    ("a number", r"\byear$", 1900, 2100),
    ("a number", r"\bmonth$", 1, 12),
    ("a number", r"\bday$", 1, 31),
    ("a number", r"\bage$", 0, 120),
    ("a number", r"\bport$", 1, 65_535),
    ("a number", r"\b(page|offset)$", 0, 50),
    ("a number", r"\b(code|password|pin) length$", 1, 100),
    ("a number", r"\b(http|response) (code|status)$|^status code$", 100, 599),
    ("a number", r"\b(count|total|quantity|size|price|amount|limit|width|height|bytes|duration)$", 0, 1e9),
)
"""Where a number in a field of such a name must lie."""

PLAIN = re.compile(
    r"\b(status|state|type|category|tags?|colou?r|unit|gender|class|level|plan|user ?name|keywords?|genres?)$"
)
"""Fields in which one plain word is what one expects."""

IDENTITY = re.compile(r"\b(id|sid|uuid|guid)$")
ORDER = (
    ("start", "end"),
    ("created", "updated"),
    ("created", "modified"),
    ("from", "to"),
    ("min", "max"),
    ("departure", "arrival"),
)


def spaced(name: str) -> str:
    """Return a name's words in lower case: `createdAt` is `created at`."""
    return " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)).lower()


class Reader:
    """Reads one answer as a person would who knows the tool's description and the call.

    Args:
        tool: The tool that answered.
        args: What it was called with.
    """

    def __init__(self, tool: ToolSpec, args: JsonObject) -> None:
        self._tool, self._args = tool, args
        self._about = json.dumps([tool.name, tool.description, tool.parameters, tool.result, args], ensure_ascii=False)
        self._words = set(re.findall(r"[a-z0-9]+", self._about.lower())) | set(spaced(self._about).split())
        self.found: list[tuple[str, str]] = []
        self.fields = 0
        self.fillers = 0

    def read(self, answer: Json) -> list[tuple[str, str]]:
        """Return what is odd in an answer: kind, and where with what value."""
        if answer in ({}, [], "") and self._tool.result not in ({"const": answer}, {"type": "null"}):
            self._odd("empty", "", answer)
        self._value(answer, "", ())
        if isinstance(answer, dict):
            self._repeats(answer)
        self._identities(answer, "", {})
        return self.found

    def _knows(self, value: str) -> bool:
        """Return whether the document or the call has the text."""
        return value.lower() in self._words or (not value.isalpha() and json.dumps(value)[1:-1] in self._about)

    def _odd(self, kind: str, where: str, value: Json) -> None:
        self.found.append((kind, f"{where} = {json.dumps(value, ensure_ascii=False)[:60]}"))

    def _value(self, value: Json, name: str, path: tuple[str, ...]) -> None:
        where = ".".join(path)
        if isinstance(value, dict):
            self._object(value, path)
        elif isinstance(value, list):
            for item in value:
                self._value(item, name, path)
            if (
                len(value) > 1
                and all(isinstance(item, str) for item in value)
                and len(set(map(str, value))) < len(value)
            ):
                self._odd("twice", where, value)
        else:
            self.fields += 1
            if isinstance(value, str):
                self._text(value, spaced(name), where)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                self._number(value, spaced(name), where)

    def _text(self, value: str, name: str, where: str) -> None:
        if value in map(str, self._args.values()):
            return
        self.fillers += bool(re.fullmatch(rf"{re.escape(name or 'value')} \d+", value))
        for kind, names, form in TEXTS:
            if re.search(names, name) and not re.search(form, value) and not self._knows(value):
                self._odd(kind, where, value)
                return
        unknown = not self._knows(value)
        if not value:
            self._odd("empty", where, value)
        elif unknown and re.fullmatch(r"[a-z]{3,}", value) and not PLAIN.search(name):
            self._odd("a noise word", where, value)
        elif unknown and name in ("kind", "object", "api version"):
            self._odd("a kind", where, value)

    def _number(self, value: float, name: str, where: str) -> None:
        for kind, names, low, high in NUMBERS:
            if re.search(names, name) and not low <= value <= high:
                self._odd(kind, where, value)
                return

    def _object(self, made: JsonObject, path: tuple[str, ...]) -> None:
        for name, value in made.items():
            if re.fullmatch(r"(key|item|prop)_[a-z0-9]{3,}", name):
                self._odd("a noise name", ".".join(path), name)
            self._value(value, name, (*path, name))
        self._counts(made, path)
        self._contradictions(made, path)

    def _counts(self, made: JsonObject, path: tuple[str, ...]) -> None:
        lists = [value for value in made.values() if isinstance(value, list)]
        if len(lists) != 1:
            return
        for name, value in made.items():
            counts = isinstance(value, int) and re.search(r"\b(count|total|total results)$", spaced(name))
            paged = set(map(spaced, self._args)) & {"limit", "page", "offset", "page size"}
            if counts and (value < len(lists[0]) or (value > len(lists[0]) and not paged)):
                self._odd("a count", ".".join((*path, name)), value)

    def _contradictions(self, made: JsonObject, path: tuple[str, ...]) -> None:
        by_words = {spaced(name): value for name, value in made.items()}
        for words, low in by_words.items():
            for first, last in ORDER:
                high = by_words.get(re.sub(rf"\b{first}\b", last, words)) if re.search(rf"\b{first}\b", words) else None
                if _is_after(low, high, may_be_equal=first in ("created", "min")):
                    self._odd("an order", ".".join((*path, words)), [low, high])
        gone = [
            words for words in ("deleted", "archived", "cancelled", "expired", "failed") if by_words.get(words) is True
        ]
        if gone and str(by_words.get("status", "")).lower() in ("active", "open", "enabled", "available"):
            self._odd("a contradiction", ".".join(path), gone[0])
        if by_words.get("success") is False or any(by_words.get(name) for name in ("error", "error message", "errors")):
            self._odd("a contradiction", ".".join(path), "a success that reports an error")

    def _repeats(self, answer: JsonObject) -> None:
        """Check that the answer repeats the call: the same names, and the one thing that was asked for."""
        for name, value in self._args.items():
            key = next((other for other in answer if spaced(other) == spaced(name)), None)
            if key and isinstance(value, str | int) and str(answer[key]) != str(value) and answer[key] is not None:
                self._odd("another than asked", key, answer[key])
        asked = [
            value for name, value in self._args.items() if IDENTITY.search(spaced(name)) and not isinstance(value, dict)
        ]
        mine = next((name for name in ("id", "sid", "uuid") if name in answer), "")
        path = self._tool.binding.path if self._tool.binding else "}"
        one = mine and len(asked) == 1 and self._tool.reads and path.rstrip("/").endswith("}")
        if one and str(answer[mine]) != str(asked[0]):
            self._odd("another than asked", mine, answer[mine])

    def _identities(self, value: Json, owner: str, outer: Mapping[str, str]) -> None:
        """Check for another's identifiers: the container's in what it contains, the same in two items of a list."""
        if isinstance(value, list):
            own = [
                item.get(key)
                for item in value
                if isinstance(item, dict)
                for key in ("id", "sid", "uuid")
                if key in item
            ]
            if len(set(map(str, own))) < len(own):
                self._odd("an identity", owner, own[0])
            for item in value:
                self._identities(item, owner, outer)
        if not isinstance(value, dict):
            return
        ids = {name: str(each) for name, each in value.items() if IDENTITY.search(spaced(name)) and each is not None}
        own_id = next((ids[name] for name in ("id", "sid", "uuid") if name in ids), None)
        taken = [*outer.values(), *(each for name, each in ids.items() if len(spaced(name).split()) > 1)]
        about = spaced(self._tool.name)
        if own_id in taken and not any(name.split()[0] in about for name in map(spaced, ids) if len(name.split()) > 1):
            self._odd("an identity", owner, own_id)
        for name, inner in value.items():
            self._identities(inner, name, {"": own_id} if own_id else outer)


def _is_after(low: Any, high: Any, *, may_be_equal: bool) -> bool:
    """Return whether two numbers, or two texts that begin like dates, stand in the wrong order."""
    if type(low) is not type(high) or not isinstance(low, str | int | float) or not str(low)[:1].isdigit():
        return False
    return bool(low > high or (low == high and not may_be_equal))


def read_tools(paths: Sequence[Path]) -> Iterator[tuple[str, str, ToolSpec]]:
    """Yield documents' tools that have a result, with the document's name and a large one's origin."""
    for path in paths:
        digest = sha256(path.read_bytes()).hexdigest()[:16]
        try:
            toolkit = Toolkit.from_openapi(path)
        except ToolkitError:
            continue
        for tool in toolkit:
            if tool.result not in (None, {"type": "null"}):
                yield path.name, LARGE.get(digest, ""), tool


class Plausibility(Suite):
    """What the schema rung makes up for real documents, and the share of answers in which a person notices nothing.

    A case is an operation with a result schema, called with made-up arguments and answered with several seeds. The
    rules know nothing of the generator's tables: they read names, the document's own words and the call.
    """

    name = "plausibility"
    tools = "simulated"
    examples = ("", "--only 'twilio*' --shown 40", "--document stripe.json")
    asides = ("shown",)
    asks = False

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add further documents, and how much is listed."""
        parser.add_argument("--document", type=Path, action="append", default=[], help="another document; repeatable")
        parser.add_argument("--shown", type=int, default=12, metavar="N", help="oddities to list (12)")

    def cases(self) -> Iterator[Case]:
        """Yield a case per operation."""
        paths = self.options.own.document or sorted((self.options.data / "openapi").glob("*.*"))
        if not paths:
            raise EvalError(f"no documents in {self.options.data / 'openapi'}")
        for document, source, tool in read_tools(paths):
            yield Case(f"{document}:{tool.name}", tool, group=document, facts={"source": source})

    def run_case(self, case: Case) -> JsonObject:
        """Call it, and read the answers."""
        tool: ToolSpec = case.data
        args = make_value(tool.parameters, seed=0, key=tool.name, subject=tool.name)
        assert isinstance(args, dict)
        answers, fields, fillers = [], 0, 0
        for draw in range(DRAWS):
            request = _request(tool, args, self.options.seed * DRAWS + draw)
            answer = schema_rung(request)
            reader = Reader(tool, args)
            answers.append(reader.read(answer.result) if isinstance(answer, Answer) else [("no answer", answer.reason)])
            fields, fillers = fields + reader.fields, fillers + bool(reader.fillers)
        return {"answers": answers, "fields": fields, "fillers": fillers, "rungs": {"schema": DRAWS}}

    def tell(self, record: Record) -> str:
        """Return how many of its answers are clean, and what is odd in the first that is not."""
        odd = [each for each in record.values["answers"] if each]
        return f"{DRAWS - len(odd)} of {DRAWS} clean" + (f": {odd[0][0][1]}" if odd else "")

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return clean answers by document, and answers by what is odd in them."""
        table = Table("Made-up answers in which the rules find nothing odd", ["document", "clean", "fields an answer"])
        for name, some in [*by_group(records).items(), ("all", list(records))]:
            answers = _answers(some)
            fields = sum(record.values["fields"] for record in some if record.done)
            table.add(name, _clean(answers), mean_of([fields / max(len(answers), 1)]))
        answers = _answers(records)
        kinds = Counter(kind for answer in answers for kind in {each[0] for each in answer})
        odd = Table("Answers by what is odd in them", ["kind", "answers"])
        for kind, count in kinds.most_common():
            odd.add(kind, share(count, len(answers), tools="simulated"))
        fillers = sum(record.values["fillers"] for record in records if record.done)
        filler = share(fillers, len(answers), tools="simulated")
        odd.add("(not counted: a field's own name and a number, `push 17`)", filler)
        seen = list(dict.fromkeys(f"{kind}: {text}" for answer in answers for kind, text in answer))
        clean = _clean(answers)
        return Summary(
            [table, odd],
            [Expectation(f"at least {WANTED:.0%} of the answers are clean", clean.value >= WANTED)],
            seen[:: max(1, len(seen) // max(1, self.options.own.shown))][: self.options.own.shown],
        )


def _answers(records: Sequence[Record]) -> list[list[list[str]]]:
    return [answer for record in records if record.done for answer in record.values["answers"]]


def _clean(answers: Sequence[Sequence[Any]]) -> Measured:
    return share(sum(not each for each in answers), len(answers), tools="simulated", rungs={"schema": len(answers)})


def _request(tool: ToolSpec, args: JsonObject, seed: int) -> RungRequest:
    call: Call = {"id": "1", "name": tool.name, "args": args}
    return RungRequest(tool=tool, call=call, state={}, facts={}, context=GeckoContext(seed=seed), where=Where())


SUITE = Plausibility
