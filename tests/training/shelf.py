"""A shelf with two tools by contract, samples about it, and rows of others about a sum."""

import json

from gecko_graph import Tool, Toolkit

NEED = {"check": "state.shelf[args.item] >= args.count", "error": {"error": "not enough"}}
LESS = {"op": "replace", "path": ["shelf", "{{ args.item }}"], "value": "{{ state.shelf[args.item] - args.count }}"}


def take(item: str, count: int = 1) -> dict[str, int]:
    """Take items."""
    raise NotImplementedError


def note(text: str) -> dict[str, str]:
    """Write a note, which gets a new id."""
    raise NotImplementedError


def look(item: str) -> dict[str, int]:
    """Look how many there are."""
    raise NotImplementedError


TAKE = {"requires": [NEED], "effects": [LESS], "returns": {"left": "{{ state.shelf[args.item] }}"}}
NOTE = {
    "let": {"id": "{{ new_id('n') }}"},
    "effects": [{"op": "add", "path": ["notes", "{{ id }}"], "value": "{{ args.text }}"}],
    "returns": {"id": "{{ id }}"},
}
TOOLKIT = Toolkit.from_tools(
    [Tool(take, effect="write", contract=TAKE), Tool(note, effect="write", contract=NOTE), Tool(look, effect="read")]
)
STATE = {"shelf": {"pen": 3, "ink": 5}, "notes": {}}


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


def said(text, *calls_and_results):
    """Messages: the user's, and calls that were made with their results."""
    messages = [{"role": "user", "content": text}]
    for at, (made, result) in enumerate(calls_and_results):
        function = {"name": made["name"], "arguments": json.dumps(made["arguments"])}
        calls = [{"id": f"c{at}", "type": "function", "function": function}]
        messages += [{"role": "assistant", "content": "", "tool_calls": calls}]
        messages += [{"role": "tool", "content": json.dumps(result), "tool_call_id": f"c{at}"}]
    return messages


def sample(*label, messages=None, **more):
    messages = said("take 2 pen") if messages is None else messages
    return {
        "v": 1,
        "id": "one",
        "tools": TOOLKIT.as_openai(),
        "messages": messages,
        "label": [*label],
        "from": [],
        **more,
    }


PLAIN = {
    "name": "add",
    "description": "Add.",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a"],
    },
}
OPENAI = [{"type": "function", "function": PLAIN}]
ASKED = {"role": "user", "content": "add 3 and 4"}
TEXT = '{"name": "add", "arguments": {"a": 3, "b": 4}}'


def calling(arguments):
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "x", "function": {"name": "add", "arguments": arguments}}],
    }


SHAPES = {
    "openai": {
        "messages": [ASKED, calling('{"a": 3, "b": 4}'), {"role": "tool", "tool_call_id": "x", "content": "7"}],
        "tools": OPENAI,
    },
    "arguments as an object": {"messages": [ASKED, calling({"a": 3, "b": 4})], "tools": OPENAI},
    "trl": {"prompt": [ASKED], "completion": [calling({"a": 3, "b": 4})], "tools": json.dumps(OPENAI)},
    "sharegpt": {
        "system": "Calculate.",
        "conversations": [{"from": "human", "value": "add 3 and 4"}, {"from": "function_call", "value": TEXT}],
        "tools": json.dumps([PLAIN]),
    },
    "hermes": {
        "conversations": [
            {"from": "human", "value": "x"},
            {"from": "gpt", "value": f"Well.<tool_call>{TEXT}</tool_call>"},
        ],
        "tools": [PLAIN],
    },
    "xlam": {
        "query": "add 3 and 4",
        "answers": f"[{TEXT}]",
        "tools": json.dumps(
            [{"name": "add", "parameters": {key: {"type": "int, optional", "description": key} for key in "ab"}}]
        ),
    },
    "looptool": {
        "instruction": f"You may call.\n<tools>{json.dumps(PLAIN)}</tools>",
        "input": "<|im_start|>user\nadd 3 and 4<|im_end|>",
        "output": f"<tool_call>\n{TEXT}\n</tool_call>",
    },
    "bfcl": {
        "id": "simple_1",
        "question": [[ASKED]],
        "function": [{**PLAIN, "parameters": {**PLAIN["parameters"], "type": "dict"}}],
        "ground_truth": [{"add": {"a": [3, 30], "b": [4]}}],
    },
}
