"""A contract that names an argument which no call can have is found when it is loaded."""

from __future__ import annotations

import pytest

from gecko_graph.errors import ContractError
from gecko_graph.tools import Toolkit
from tests import desk

TYPO = {"requires": [{"check": "args.nmae not in state.trays", "error": "it exists"}]}


def test_a_misspelt_argument_is_an_error_at_load():
    with pytest.raises(ContractError, match=r"contract of add_tray.*args\.nmae.*name"):
        Toolkit.from_tools(desk.FUNCTIONS, contracts={"add_tray": TYPO})


def test_in_a_document_the_place_is_named():
    document = Toolkit.from_tools(
        desk.FUNCTIONS, contracts={"add_tray": {"requires": [{"check": "args.name", "error": "no name"}]}}
    ).to_openapi()
    (path,) = (path for path, item in document["paths"].items() if "add_tray" in path)
    document["paths"][path]["post"]["x-contract"] = TYPO
    with pytest.raises(ContractError, match=r"add_tray.*x-contract.*args\.nmae"):
        Toolkit.from_openapi(document)


def test_a_shared_let_that_the_tool_does_not_use_may_name_other_tools_arguments():
    lets = {"tray": "{{ state.trays[args.tray] }}"}
    used = {"requires": [{"check": "args.name not in state.trays", "error": "it exists"}]}
    toolkit = Toolkit.from_tools(desk.FUNCTIONS, contracts={"add_tray": used}, lets=lets)
    assert toolkit["add_tray"].contract is not None
    with pytest.raises(ContractError, match=r"args\.tray"):
        Toolkit.from_tools(
            desk.FUNCTIONS, contracts={"add_tray": {"requires": [{"check": "not tray", "error": "x"}]}}, lets=lets
        )


@pytest.mark.parametrize("more", [{"additionalProperties": True}, {"allOf": [{"properties": {"nmae": {}}}]}])
def test_open_and_composed_schemas_are_not_looked_at(more):
    function = desk.function("add_tray", "Add a tray.", "name")
    function["parameters"] |= more
    assert Toolkit.from_tools([function], contracts={"add_tray": TYPO})["add_tray"].contract is not None


@pytest.mark.parametrize("path", ["'name'", "3", "args.name", "'a' ~ args.name"])
def test_a_path_of_at_that_can_be_no_list_is_an_error_at_load(path):
    contract = {"requires": [{"check": f"at(state.trays, {path}, none) is none", "error": "it exists"}]}
    with pytest.raises(ContractError, match=r"contract of add_tray.*(path is a list|write \[args\.name\])"):
        Toolkit.from_tools(desk.FUNCTIONS, contracts={"add_tray": contract})


@pytest.mark.parametrize("path", ["['name']", "[args.name]", "state.where", "state.cwd + [args.name]"])
def test_a_path_that_may_be_a_list_loads(path):
    contract = {"requires": [{"check": f"at(state.trays, {path}, none) is none", "error": "it exists"}]}
    assert Toolkit.from_tools(desk.FUNCTIONS, contracts={"add_tray": contract})["add_tray"].contract is not None


def test_an_argument_that_is_a_list_may_be_a_path():
    function = desk.function("add_tray", "Add a tray.", "name")
    function["parameters"]["properties"]["name"] = {"type": "array", "items": {"type": "string"}}
    contract = {"returns": "{{ at(state.trays, args.name, none) }}"}
    assert Toolkit.from_tools([function], contracts={"add_tray": contract})["add_tray"].contract is not None
