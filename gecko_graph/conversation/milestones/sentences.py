"""A sentence on a milestone."""

from __future__ import annotations

import json
from typing import Any

from ...models.formatting import cut
from ...state import Json, JsonObject

LONGEST_VALUE = 120
_CHANGES = {
    "snapshot": "{at} is exactly {rows}",
    "addition": "{at} has gained exactly {rows}",
    "removal": "{at} has lost exactly {rows}",
    "update": "{at} has changed exactly to {rows}",
    "includes": "{at} has come to hold {rows}",
    "lacks": "{at} no longer holds {rows}",
}
_ANSWERS = {"content": "is like", "mentions": "names"}
_CLAIMS = {
    "says": "says {}",
    "denies": "denies {}",
    "asks": "asks for {}",
    "agrees": "does not contradict {}",
    "answers": "gives what the user asked for and denies nothing of {}",
}


def explain(entry: JsonObject) -> str:
    """Return one sentence on a milestone, as a file has it."""
    begin = "At the end" if entry.get("last") else f"After {' and '.join(entry['after'])}" if entry.get("after") else ""
    message = entry.get("message") or {}
    calls = [f"{call['name']}{_show(call.get('args', {}))}" for call in _list(entry.get("call"))]
    parts = [f"the agent calls {cut(' or '.join(calls), budget=LONGEST_VALUE)}"] if calls else []
    for table in _list(entry.get("state")):
        kind = next(kind for kind in _CHANGES if kind in table)
        parts.append(_CHANGES[kind].format(at=f"the table {table['at']}", rows=_show(table[kind])))
    parts += [f"the answer {_ANSWERS[key]} {_show(message[key])}" for key in _ANSWERS if message.get(key)]
    claims = [pair for claim in message.get("claims") or () for pair in claim.items()]
    parts += [f"the answer {_CLAIMS[kind].format(_show(text))}" for kind, text in claims]
    parts += ["the answer has no figure of its own"] if "unseen" in message else []
    parts += ["the agent answers"] if message and not parts and "seen" not in message else []
    parts += [f"a tool or the user has named {_show(message['seen'])}"] if "seen" in message else []
    parts += ["nothing else has changed"] if entry.get("last") and entry.get("unchanged") else []
    sentence = f"{begin} {', and '.join(parts)}.".strip()
    return sentence[:1].upper() + sentence[1:]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _show(value: Json) -> str:
    if isinstance(value, dict):
        return cut(f"({', '.join(f'{name} = {_show(each)}' for name, each in value.items())})", budget=LONGEST_VALUE)
    texts = map(_show, value) if isinstance(value, list) else [json.dumps(value, ensure_ascii=False)]
    return cut(" and ".join(texts), budget=LONGEST_VALUE)
