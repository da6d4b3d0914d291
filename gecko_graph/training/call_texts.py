"""Parse calls in an assistant's text: between a model family's markers, in fences, as JSON, as Python.

The same parser serves data sets, model outputs and rewards. Calls in reasoning text do not count. A truncated call, or
a text that looks like a call in an unknown syntax, is an error, never an answer without calls.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ..state import Json, JsonObject
from ..values.rows import read_json, reject_constant
from .samples import call_parts, read_call

_THINK = r"(?:seed:)?(?:think|thinking|thoughts?|reasoning|reflection|scratch_?pad)"
_THOUGHTS = re.compile(
    rf"<(?P<tag>{_THINK})>.*?(?:</(?P=tag)>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)|◁think▷.*?(?:◁/think▷|\Z)"
    r"|<\|START_THINKING\|>.*?(?:<\|END_THINKING\|>|\Z)|<\|channel\|>analysis\b.*?(?:<\|end\|>|(?=<\|channel\|>)|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_THOUGHT = re.compile(rf"\A.*(?:</{_THINK}>|\[/THINK\]|◁/think▷)", re.DOTALL | re.IGNORECASE)
"""Reasoning whose opening tag was in the prompt, as in chat templates of reasoning models."""

_END = r"<\|(?:eot_id|eom_id|im_end|endoftext|end|call|return|stop)\|>|</s>|<.end▁of▁sentence.>|<end_of_turn>|\Z"
_NAME = r"(?P<name>[\w.\-/]++)"
_MARKS = tuple(
    (re.compile(opening, re.IGNORECASE), re.compile(closing))
    for opening, closing in (
        (r"<functioncall>", rf"</functioncall>|{_END}"),  # Glaive
        (r"<(?:[\w:]+:)?(?:tool_?calls?|function_calls?)>", r"</(?:[\w:]+:)?(?:(?i:tool_?calls?)|function_calls?)>"),
        (r"<\|tool_call\|>", rf"<\|/tool_call\|>|{_END}"),  # Granite, Phi
        (r"\[TOOL_CALLS\]", rf"(?=\[TOOL_CALLS\])|{_END}"),  # Mistral
        (r"<\|python_tag\|>", _END),  # Llama
        (r"<function=(?P<name>[^>]+)>", r"</function>"),  # Llama, Functionary
        (r"(?=<invoke\b)", r"(?<=</invoke>)"),
        (
            rf"<.tool▁call▁begin.>(?:function<.tool▁sep.>)?{_NAME}\s*(?:<.tool▁sep.>)?",
            r"<.tool▁call▁end.>",
        ),  # DeepSeek
        (rf"<\|tool_call_begin\|>\s*{_NAME}(?::\d+)?\s*<\|tool_call_argument_begin\|>", r"<\|tool_call_end\|>"),  # Kimi
        (r"<\|action_start\|>\s*<\|plugin\|>", r"<\|action_end\|>"),  # InternLM
        (r"<\|START_ACTION\|>", r"<\|END_ACTION\|>"),  # Command
        (r"<<<api_call>>>:?", rf"(?=<<<)|{_END}"),  # Gorilla
        (r"<<function>>", rf"(?=<<function>>)|{_END}"),
        (rf">>>{_NAME}[ \t]*\n", rf"(?=>>>)|{_END}"),  # Functionary
        (rf"<\|recipient\|>\s*{_NAME}\s*<\|content\|>", rf"(?=<\|from\|>)|{_END}"),
        (rf"\bto={_NAME}[^<\n]*(?:<\|(?:constrain|channel)\|>[^<\n]*)*<\|message\|>", _END),  # gpt-oss
        (rf"✿FUNCTION✿:\s*{_NAME}\s*✿ARGS✿:", rf"(?=✿)|{_END}"),  # Qwen
        (rf"\bAction:\s*{_NAME}\s*\n\s*(?:\w+ )?Action Input:", rf"(?=\n\s*(?:\w+ )?\w+:)|{_END}"),  # ReAct, ToolAlpaca
        (r"```(?:tool_calls?|tool_code|function_calls?)\b", r"```"),  # Gemma
    )
)
"""The opening and closing pattern of a call: a marker that must be closed, or the end of the message."""

_SPECIAL = re.compile(r"[<\[{`✿>]|Action|API_call|\A\s*[\w.]+\(")
"""Every call contains one of these; most texts contain none, so that one search skips the parsing."""

_FRAMES = re.compile(r"<.tool▁calls▁(?:begin|end).>|<\|tool_calls_section_(?:begin|end)\|>")
_FENCE = re.compile(r"```[ \t]*(?:json|python|py)?[ \t]*\n(?P<body>.*?)(?P<end>```|\Z)", re.DOTALL)
_LIKE_MARKS = (
    r"</?\|?(?:\w+:)?(?:tool|function)_?calls?|<.tool▁|<\|tool|\[TOOL_CALLS|<function=|<invoke\b|<parameter\b"
    r"|\bAction Input:|\bAPI_call_\d"
)
_LIKE_JSON = r"""["'](?:name|api|tool_name|function)["']\s*:\s*["'][^"']*["']\s*,\s*["'](?:arg|param|input)"""
_CUT_JSON = r"""\A(?:\[\s*)?\{\s*["'](?P<key>[^"']+)["']\s*:"""
_KEYS = ("name", "api", "api_name", "tool_name", "tool_calls", "function", "arguments", "type", "thought", "id")
_LIKE_PYTHON = r"""\A\[\s*[A-Za-z_][^\[\]{}()"'=\n]*\(|\A[\w.]+\(\s*\w+\s*=[^=]"""
_LIKE = re.compile("|".join((_LIKE_MARKS, _LIKE_JSON)), re.IGNORECASE)
_BROKEN = re.compile("|".join((_CUT_JSON, _LIKE_PYTHON)))
_NAMED = re.compile(r"(?P<name>[\w.\-]+)\s*(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(?P<body>\{.*)", re.DOTALL)
_XML = re.compile(
    r"<(?:function=|invoke name=)[\"']?(?P<name>[^\"'>]+)[\"']?>(?P<body>.*?)</(?:function|invoke)>", re.DOTALL
)
_MEMBER = re.compile(
    r"<parameter(?:=| name=)[\"']?([^\"'>]+)[\"']?>\n?(.*?)\n?</parameter>"
    r"|<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>",
    re.DOTALL,
)
_WORDS = {"true": True, "false": False, "null": None}
_TEXT_PARTS = ("text", "input_text", "output_text")
_NOT_CALLED = ("all", "Finish")
"""Names that Functionary and ReAct use for an answer to the user."""


class _Unread(ValueError):
    """A text that is not a call."""


def read_call_texts(text: str, tools: Sequence[Mapping[str, Any]] = ()) -> tuple[list[JsonObject], str]:
    """Return the calls in a text, and the remaining text, reasoning included.

    Args:
        text: The assistant's message.
        tools: Function dicts of the tools; their schemas give the types of values that are written as text.

    Raises:
        ValueError: A call is truncated or cannot be parsed.
    """
    try:
        return _read(text, tools) if _SPECIAL.search(text) else ([], text)
    except RecursionError:
        raise ValueError("a call is nested too deeply") from None


def _read(text: str, tools: Sequence[Mapping[str, Any]]) -> tuple[list[JsonObject], str]:
    said, found = _without_thoughts(text), list[_Span]()
    plain = [each.get("function", each) for each in tools]
    rules = {str(each.get("name")): each.get("parameters") or {} for each in plain}
    found += _find_marked(said, text, rules)
    found += [_Span(*one.span(), []) for one in _FRAMES.finditer(_blank(said, found))]
    found += _find_fenced(_blank(said, found), text, rules)
    if not found:
        found += _find_bare(said, text, rules)
    left = _blank(said, found)
    if problem := _LIKE.search(left):
        raise ValueError(f"a call that is truncated or in an unknown syntax: {problem[0][:40]!r}")
    calls = [call for span in found for call in span.calls]
    return calls, _blank(text, found, by="").strip() if calls else text


class _Span(NamedTuple):
    start: int
    end: int
    calls: list[JsonObject]


def _without_thoughts(text: str) -> str:
    said = _THOUGHTS.sub(lambda one: " " * len(one[0]), text)
    return _THOUGHT.sub(lambda one: " " * len(one[0]), said)


def _blank(text: str, spans: Sequence[_Span], by: str = " ") -> str:
    for span in sorted(spans, reverse=True, key=lambda one: one.start):
        text = text[: span.start] + by * (span.end - span.start) + text[span.end :]
    return text


def _find_marked(said: str, text: str, rules: Mapping[str, Any]) -> Iterator[_Span]:
    """Yield the calls between markers outside of reasoning, with their content from the whole text."""
    at, marks = 0, [(each, each[0].search(said)) for each in _MARKS]
    while marks := [(each, one) for each, one in marks if one]:
        (_, closing), begin = min(marks, key=lambda mark: mark[1].start())
        end = closing.search(said, begin.end())
        if end is None:
            raise ValueError(f"a truncated call: {begin[0][:40]!r} is not closed")
        at, name = max(end.end(), begin.end()), begin.groupdict().get("name")
        if name not in _NOT_CALLED:
            yield _Span(begin.start(), at, _read_body(text[begin.end() : end.start()], rules, name))
        marks = [(each, one if one.start() >= at else each[0].search(said, at)) for each, one in marks]


def _find_fenced(said: str, text: str, rules: Mapping[str, Any]) -> Iterator[_Span]:
    for fence in _FENCE.finditer(said):
        calls = _read_plain(text[slice(*fence.span("body"))], rules)
        if calls and not fence["end"]:
            raise ValueError("a truncated call: its fence is not closed")
        if calls:
            yield _Span(*fence.span(), calls)


def _find_bare(said: str, text: str, rules: Mapping[str, Any]) -> Iterator[_Span]:
    inner = re.sub(rf"(?:{_END})\s*\Z", "", said).strip()
    start = said.index(inner)
    if calls := _read_plain(text[start : start + len(inner)], rules):
        yield _Span(start, start + len(inner), calls)


def _read_plain(text: str, rules: Mapping[str, Any]) -> list[JsonObject]:
    """Return the calls in a text without markers, none if it is something else.

    Raises ValueError for a truncated call.
    """
    text = text.strip()
    if not text or "```" in text or not (text[0] in "[{" or re.match(r"[A-Za-z_][\w.]*\(", text)):
        return []
    try:
        values = list(_read_values(text))
    except _Unread:
        try:
            return list(_read_python(text, rules))
        except _Unread:
            if (one := _BROKEN.match(text)) and (one["key"] is None or one["key"] in {*_KEYS, *rules}):
                raise ValueError("a call that is truncated or in an unknown syntax") from None
            return []
    found = [_as_call(each, rules) for some in values for each in _flatten(some)]
    if any(found) and not all(found):
        raise ValueError("a call in a list has no name or no arguments")
    return [read_call(each) for each in found if each]


def _read_body(body: str, rules: Mapping[str, Any], name: str | None) -> list[JsonObject]:
    """Return the calls between markers; the opening marker may contain the `name`."""
    if not (body := _strip_fence(body)) and not name:
        raise ValueError("a call is empty: nothing between its markers")
    if name:
        name = name.strip().removeprefix("functions.")
        return [_read_named(name, body, rules)]
    if found := [_read_named(one["name"].strip(), one["body"], rules) for one in _XML.finditer(body)]:
        return found
    if "<arg_key>" in body:
        return [_read_named(body.partition("<")[0].strip(), body, rules)]
    with suppress(_Unread):
        values = list(_read_values(body))
        return [read_call(each) for some in values for each in (some if isinstance(some, list) else [some])]
    if one := _NAMED.fullmatch(body):
        return [_read_named(one["name"], one["body"], rules)]
    try:
        return list(_read_python(body, rules))
    except _Unread:
        raise ValueError("a call is no JSON, and in no other known syntax") from None


def _strip_fence(text: str) -> str:
    fence = _FENCE.fullmatch(text.strip())
    return (fence["body"] if fence else text).strip()


def _read_named(name: str, body: str, rules: Mapping[str, Any]) -> JsonObject:
    """Return a call whose arguments are a JSON object, or tagged members, each converted by its schema."""
    members = {one[0] or one[2]: one[1] or one[3] for one in _MEMBER.findall(body)}
    if members:
        known = (rules.get(name) or {}).get("properties") or {}
        return {"name": name, "arguments": {key: _read_typed(each, known.get(key)) for key, each in members.items()}}
    body = _strip_fence(body)
    try:
        (arguments,) = _read_values(body) if body else [{}]
    except ValueError:
        raise ValueError(f"the arguments of {name} are no JSON") from None
    return read_call({"name": name, "arguments": arguments})


def _read_typed(text: str, rule: Any) -> Json:
    if isinstance(rule, Mapping) and rule.get("type") == "string":
        return text
    try:
        value: Json = read_json(text, what="a value")
    except ValueError:
        return _WORDS.get(text.strip().lower(), text)
    return value


def _read_values(text: str) -> Iterator[Json]:
    """Yield the JSON values in a text, or the one Python value. Raises _Unread."""
    decoder, at = json.JSONDecoder(strict=False, parse_constant=reject_constant), 0
    text, values = text.strip().rstrip(";"), list[Json]()
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            values.append(value)
            at = re.compile(r"[\s,;]*").match(text, at).end()  # type: ignore[union-attr]
    except (ValueError, RecursionError):
        nodes = _parse(text) if text[:1] in ("[", "{") else []
        if len(nodes) != 1:
            raise _Unread from None
        values = [_value_of(nodes[0])]
    yield from values


def _flatten(value: Json) -> Iterator[Json]:
    inner = value.get("tool_calls") if isinstance(value, dict) else value
    if isinstance(inner, list):
        for each in inner:
            yield from _flatten(each)
    else:
        yield value


def _as_call(value: Json, rules: Mapping[str, Any]) -> JsonObject | None:
    """Return an unmarked value as a call: an object with name and arguments, or with a tool's name as its only key."""
    if not isinstance(value, dict):
        return None
    name, arguments = next(iter(value.items()), ("", None))
    is_keyed = len(value) == 1 and name in rules and isinstance(arguments, dict)
    return {"name": name, "arguments": arguments} if is_keyed else value if call_parts(value) else None


def _read_python(text: str, rules: Mapping[str, Any]) -> Iterator[JsonObject]:
    """Yield calls in Python syntax, in a list or consecutive. Raises _Unread, and ValueError for arguments."""
    faces = {f"tool_{at}": name for at, name in enumerate(rules) if not re.fullmatch(r"[A-Za-z_][\w.]*", name)}
    for face, name in faces.items():
        text = text.replace(f"{name}(", f"{face}(")
    nodes = _parse(text)
    made: list[Any] = []
    for node in nodes:
        made += node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    if not made or not all(isinstance(each, ast.Call) for each in made):
        raise _Unread
    for each in made:
        name = ast.unparse(each.func)
        if each.args or any(keyword.arg is None for keyword in each.keywords):
            raise ValueError(f"positional arguments of {name[:80]}")
        yield {"name": faces.get(name, name), "arguments": {one.arg: _value_of(one.value) for one in each.keywords}}


def _parse(text: str) -> list[Any]:
    """Return the expressions of a Python text. Raises _Unread."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about invalid escapes
            body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _Unread from None
    if not body or not all(isinstance(each, ast.Expr) for each in body):
        raise _Unread
    return [each.value for each in body if isinstance(each, ast.Expr)]


def _value_of(node: Any) -> Json:
    """Return the JSON value of a Python literal, which may contain JSON's `true`, `false` and `null`.

    Raises _Unread.
    """
    try:
        value: Json = json.loads(json.dumps(ast.literal_eval(_Words().visit(node)), allow_nan=False))
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise _Unread from None
    return value


class _Words(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace JSON's constants by Python's."""
        return ast.Constant(_WORDS[node.id]) if node.id in _WORDS else node


def read_said(message: Mapping[str, Any], tools: Sequence[Mapping[str, Any]] = ()) -> tuple[list[JsonObject], str]:
    """Return the calls of an assistant's message, and its remaining text.

    Calls are beside the text (OpenAI's `tool_calls`, its older `function_call`, Anthropic's parts) or in it.

    Raises:
        ValueError: A call is truncated or cannot be parsed.
    """
    said = message.get("content", message.get("value"))
    older = [message["function_call"]] if message.get("function_call") else []
    parts = [each for each in said if isinstance(each, Mapping)] if isinstance(said, list) else []
    given = message.get("tool_calls") or older or [each for each in parts if each.get("type") == "tool_use"]
    text = read_text(said)
    if not given:
        return read_call_texts(text, tools)
    return [{**read_call(each), **({"id": each["id"]} if each.get("id") else {})} for each in given], text


def read_text(content: Any) -> str:
    """Return the text of a message's content, without reasoning parts."""
    if isinstance(content, list):
        parts = [each for each in content if isinstance(each, Mapping) and each.get("type", "text") in _TEXT_PARTS]
        return "".join(str(part.get("text", "")) for part in parts)
    return content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False)
