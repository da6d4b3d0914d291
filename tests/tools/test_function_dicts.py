"""What function dicts declare, and what is misspelt in them."""

import pytest

from gecko_graph.errors import ToolkitError
from gecko_graph.tools import Tool, Toolkit


def test_function_dicts_declare_what_a_tool_would():
    def simulate(state, text=None):
        state["notes"] = [*state.get("notes", []), text]
        return text

    note = {"name": "note", "description": "Note.", "parameters": {"type": "object", "properties": {"text": {}}}}
    contract = {"effects": [{"op": "add", "path": ["notes", "-"], "value": "{{ args.text }}"}]}
    written = Toolkit.from_tools([{**note, "effect": "write", "contract": contract}])["note"]
    assert (written.effect, written.stated, written.contract is not None) == ("write", True, True)
    wrapped = {"type": "function", "function": {**note, "simulate": simulate}, "x-contract": contract}
    both = Toolkit.from_tools([wrapped])["note"]
    assert (both.simulate, both.contract is not None) == (simulate, True)
    assert Toolkit.from_tools([Tool({**note, "effect": "write"}, effect="read")])["note"].effect == "read"
    with pytest.raises(ToolkitError, match="effect must be 'read' or 'write'"):
        Toolkit.from_tools([{**note, "effect": "writes"}])


@pytest.mark.parametrize(
    ("key", "meant"),
    [("efect", "effect"), ("x_contract", "x-contract"), ("paramters", "parameters"), ("simulated", "simulate")],
)  # fmt: skip
@pytest.mark.parametrize("wrap", [lambda tool: tool, lambda tool: {"type": "function", "function": tool}])
def test_a_misspelt_key_of_a_function_dict_is_an_error(key, meant, wrap):
    with pytest.raises(ToolkitError, match=rf"unknown key '{key}' \(did you mean {meant}\?\)"):
        Toolkit.from_tools([wrap({"name": "a", key: {}})])


def test_what_others_keep_in_function_dicts_is_left_out():
    assert Toolkit.from_tools([{"name": "a", "strict": True, "cache_control": {}, "title": "A"}]).names == ("a",)
