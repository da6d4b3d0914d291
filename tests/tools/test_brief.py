"""Tools in brief: what was called in full, then what is spoken of, and no sentence that all descriptions share."""

from __future__ import annotations

from gecko_graph import Toolkit
from gecko_graph.tools.brief import TOOLS_CHARS, format_tools, member_names, strip_boilerplate
from gecko_graph.tools.spec import ToolSpec

COMMON = "This tool belongs to the travel system, which allows users to book flights. Tool description: "


def spec(name, description, **parameters):
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    return ToolSpec(
        name=name, description=COMMON + description, parameters={"type": "object", "properties": properties}
    )


FEW = [
    spec("book_flight", "Book a flight. Codes are IATA.", origin="airport code", to=""),
    spec("cancel_booking", "Cancel a booking."),
    spec("get_balance", "Get the balance of a card."),
]


def test_what_was_called_comes_first_with_its_parameters_and_the_rest_in_brief():
    assert format_tools(FEW, called=["get_balance", "book_flight", "fly"]).splitlines() == [
        "book_flight(origin: airport code, to): Book a flight. Codes are IATA.",
        "get_balance(): Get the balance of a card.",
        "cancel_booking: Cancel a booking.",
    ]


def test_of_many_tools_those_that_are_spoken_of_and_the_others_names():
    many = [*FEW, *(spec(f"tool_{n}", "Do something that takes many words to say in full.") for n in range(40))]
    lines = format_tools(many, called=["book_flight"], focus=["cancel", "trip"]).splitlines()
    assert lines[:2] == [
        "book_flight(origin: airport code, to): Book a flight. Codes are IATA.",
        "cancel_booking: Cancel a booking.",
    ]
    assert lines[2].startswith("other tools: get_balance, tool_0, tool_1, ")
    assert len(lines) == 3


def test_the_section_has_a_budget_of_its_own():
    huge = [spec(f"tool_{n}", "words " * 500, **{f"p{m}": "x" * 500 for m in range(20)}) for n in range(2_000)]
    assert len(format_tools(huge, called=[f"tool_{n}" for n in range(50)])) <= TOOLS_CHARS


def test_what_three_or_more_begin_with_is_left_out_and_nothing_else():
    told = ["Shop. Buy a thing.", "Shop. Sell a thing.", "Shop. Look.", "Mail. Send it.", "Mail. Read it.", "Shop."]
    assert strip_boilerplate(told) == [
        "Buy a thing.",
        "Sell a thing.",
        "Look.",
        "Mail. Send it.",
        "Mail. Read it.",
        "Shop.",
    ]


def test_tools_of_the_multi_turn_tasks_lose_their_noise(read_jsonl):
    before = after = 0
    for reply in read_jsonl("live_replies.jsonl.gz"):
        said = reply["request"]["messages"][1]["content"]
        if reply["role"] != "checklist" or "This tool belongs" not in said:
            continue
        section = said.split("\n<tools-")[1].split("\n</tools-")[0]
        listed = [line.partition(": ") for line in section.splitlines()[1:]]
        short = format_tools([ToolSpec(name=name, description=text) for name, _, text in listed])
        assert all(name in short for name, _, _ in listed)
        assert "This tool belongs" not in short
        before, after = before + len(section), after + len(short)
    assert 0 < after < before / 4


def test_what_has_no_description_is_shown_with_method_and_path():
    tools = Toolkit.from_openapi({"openapi": "3.1.0", "paths": {"/pens/{id}": {"get": {"operationId": "a"}}}})
    assert tools.as_openai()[0]["function"]["description"] == "GET /pens/{id}"
    assert format_tools(tools) == "a: GET /pens/{id}"
    assert tools.to_openapi()["paths"]["/pens/{id}"]["get"].get("description") is None


def test_the_names_of_a_list_s_items_and_of_what_refers_to_itself():
    node = {"type": "object", "properties": {"id": {}, "children": {"type": "array", "items": {"$ref": "#/$defs/N"}}}}
    for schema in (
        node,
        {"type": "array", "items": node},
        {"$ref": "#/$defs/N", "$defs": {"N": node}},
        {"type": "array", "items": {"$ref": "#/$defs/N"}, "$defs": {"N": node}},
    ):
        assert member_names(schema) == ["id", "children"]
    assert member_names({"$ref": "#/$defs/N", "$defs": {"N": {"$ref": "#/$defs/N"}}}) == []
    assert member_names(None) == member_names({"type": "string"}) == member_names({"items": True}) == []
