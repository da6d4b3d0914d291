"""validator: rules first, then one question about what no rule decides."""

from __future__ import annotations

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from gecko_graph import GeckoContext, Toolkit
from gecko_graph.models.ask import Ask, Reply
from gecko_graph.models.roles import SemanticVerdict
from gecko_graph.testing import drive
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.world.check import semantic_key, validator

WEATHER = ToolSpec(
    name="weather",
    description="The weather of a day.",
    parameters={
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "A city"},
            "unit": {"type": "string", "enum": ["C", "F"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 7},
            "people": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
            **{name: {"type": "string"} for name in ("odd name", "a/b", "a~b", "two\nlines")},
        },
        "required": ["city"],
    },
)
PING = ToolSpec(
    name="ping", parameters={"type": "object", "properties": {"fast": {"type": "boolean"}}, "required": ["fast"]}
)
TOOLKIT = Toolkit([WEATHER, PING])
SILENT = ("planner", "judge")
CALL = {"id": "c1", "name": "weather", "args": {"city": "Germany", "unit": "C"}}
NO_MODEL = GeckoContext(semantic_validation=False)


def state(*calls, **more):
    return {"pending": list(calls), "task": "Weather at our office?", "number": 2, "turn": 1, **more}


def node(given, scope):
    return validator(given, scope, toolkit=TOOLKIT)


def call(number=1, name="weather", **args):
    return {"id": f"c{number}", "name": name, "args": args}


def verdict(*problems):
    return SemanticVerdict(problems=[{"argument": argument, "problem": problem} for argument, problem in problems])


class TestRules:
    def test_calls_that_pass_stay_pending(self):
        update, asks, events = drive(node, state(call(fast=True, name="ping"), CALL), context=NO_MODEL)
        assert update["pending"] == [call(fast=True, name="ping"), CALL]
        assert update["steps"] == update["trace"] == asks == events == []

    def test_refused_calls_become_steps_and_tool_errors(self):
        good, bad = call(1, city="Rome"), call(2, city=7, unit="K", wind=True)
        update, _, events = drive(node, state(good, bad), context=NO_MODEL)
        assert update["pending"] == [good]
        (step,) = update["steps"]
        assert step["v"] == 1
        assert step["call"] == bad
        assert [each["path"] for each in step["complaints"]] == ["/wind", "/city", "/unit"]
        assert {each["source"] for each in step["complaints"]} == {"rule"}
        (message,) = update["trace"]
        assert isinstance(message, ToolMessage)
        assert (message.status, message.tool_call_id, message.name) == ("error", "c2", "weather")
        assert "/city: expected a string, got 7" in message.content
        assert "C" not in [word.strip('",') for word in message.content.split()]
        assert events == [
            {"v": 1, "type": "gecko.complaint", "attempt": 2, "call": bad, "complaints": step["complaints"]}
        ]

    def test_unknown_tool_and_malformed_arguments(self):
        lost = call(1, name="wether", city="Rome")
        broken = {"id": "c2", "name": "weather", "args": {}, "malformed": '{"city": '}
        update, asks, _ = drive(node, state(lost, broken))
        assert update["pending"] == []
        assert [step["complaints"][0]["got"] for step in update["steps"]] == ['"wether"', json.dumps('{"city": ')]
        assert "weather" not in update["trace"][0].content
        assert asks == []


def judged(tool, args, problems):
    """A semantic record."""
    return {"tool": tool, "args": args, "problems": problems, "key": semantic_key(tool, args)}


class TestModel:
    def test_the_question_holds_the_call_its_schema_and_what_is_undecided(self):
        _, asks, _ = drive(node, state(CALL, asked={"validator": 4}), [verdict()])
        (ask,) = asks
        assert isinstance(ask, Ask)
        assert (ask.role, ask.reply) == ("validator", SemanticVerdict)
        assert (ask.where.turn, ask.where.attempt, ask.where.question) == (1, 2, 4)
        assert ask.variables["undecided"] == "/city\n/unit", "and an optional argument that nothing gives"
        assert ask.variables["task"] == "Weather at our office?"
        assert json.loads(ask.variables["arguments"]) == CALL["args"]
        told = json.loads(ask.variables["tool"])
        assert told["name"] == "weather"
        assert list(told["parameters"]["properties"]) == ["city", "unit"]

    def test_its_problems_are_complaints(self):
        update, *_ = drive(node, state(CALL), [verdict(("city", "a country,\n not a city"))])
        assert update["pending"] == []
        (complaint,) = update["steps"][0]["complaints"]
        assert (complaint["path"], complaint["source"]) == ("/city", "model")
        assert complaint["expected"].endswith(": a country, not a city")
        problem = {"argument": "/city", "problem": "a country, not a city"}
        assert update["argument_verdicts"] == [judged("weather", CALL["args"], [problem])]

    @pytest.mark.parametrize(
        ("named", "path"),
        [
            ("/city", "/city"),
            (" city ", "/city"),
            ("people", "/people"),
            ("people[0].name", "/people/0/name"),
            ("/people/0", "/people/0"),
            ("people/0/name", "/people/0/name"),
            ("$['people'][0]['a.b']", "/people/0/a.b"),
            ("odd name", "/odd name"),
            ("`odd name`", "/odd name"),
            ("/a/b", "/a~1b"),
            ("a~b", "/a~0b"),
            ("/two\\nlines", "/two\nlines"),
            ("/people/" + "0" * 10_000, None),
            ("[" * 10_000, None),
            ("$", None),
            ("", None),
            ("town", None),
            ("cit", None),
            ("unit", "/unit"),
            ("days", None),
            ("people[1].name", None),
            ("city.name", None),
            ("people[0].age", None),
        ],
    )
    def test_problems_of_arguments_that_are_not_there_or_decided_are_dropped(self, named, path):
        args = {"city": "Rome", "unit": "C", "people": [{"name": "x", "a.b": "z"}], "odd name": "y"}
        args |= {"a/b": "v", "a~b": "w", "two\nlines": "u"}
        update, (ask,), _ = drive(node, state(call(**args)), [verdict((named, "wrong"))])
        assert ask.variables["undecided"].splitlines() == [*ask.ids], "a line each, as a decision model is asked"
        problems = update["argument_verdicts"][0]["problems"]
        assert [problem["argument"] for problem in problems] == ([path] if path else [])
        assert bool(update["pending"]) == (path is None)

    @pytest.mark.parametrize("failure", ["no JSON", None])
    def test_no_verdict_means_valid_and_is_noted(self, failure):
        update, *_ = drive(node, state(CALL), [Reply(None, failure)])
        assert update["pending"] == [CALL]
        assert update["argument_verdicts"][0]["failure"]

    def test_equal_arguments_are_asked_about_once(self):
        again = {"id": "c9", "name": "weather", "args": {"unit": "C", "city": "Germany"}}
        other = call(3, city="Rome")
        update, asks, _ = drive(node, state(CALL, again, other), [verdict(("city", "a country")), verdict()])
        assert len(asks) == 2
        assert [ask.where.question for ask in asks] == [0, 1]
        assert update["pending"] == [other]
        assert [step["call"]["id"] for step in update["steps"]] == ["c1", "c9"]

    def test_an_earlier_verdict_is_remembered_across_attempts(self):
        record = judged("weather", dict(CALL["args"]), [{"argument": "/city", "problem": "no"}])
        update, asks, _ = drive(node, state(CALL, argument_verdicts=[record]))
        assert asks == []
        assert update["argument_verdicts"] == []
        assert update["steps"][0]["complaints"][0]["source"] == "model"

    @pytest.mark.parametrize(
        ("calls", "context", "roles"),
        [
            ([call(name="ping", fast=True)], None, ("validator",)),
            ([CALL], NO_MODEL, ("validator",)),
            ([CALL], None, SILENT),
            ([call(city=7)], None, ("validator",)),
        ],
    )
    def test_nobody_is_asked(self, calls, context, roles):
        assert drive(node, state(*calls), context=context, roles=roles).asks == []


DATED = ToolSpec(
    name="book",
    parameters={
        "type": "object",
        "properties": {
            "flight": {"type": "string", "description": "The flight"},
            "date": {"type": "string", "description": "The day, in the format YYYY-MM-DD"},
            "seats": {"type": "integer"},
            "warm": {"type": "number", "minimum": 0, "maximum": 1},
            "window": {"type": "boolean", "default": False},
        },
        "required": ["flight"],
        "additionalProperties": False,
    },
)


class TestSources:
    def asked(self, args, *, steps=(), conversation=(), task="Book me a flight", replies=(), **more):
        given = {
            "pending": [{"id": "c9", "name": "book", "args": args}], "task": task, "number": 1, "turn": 0,
            "steps": list(steps), "conversation": [*conversation, HumanMessage(task)], **more,
        }  # fmt: skip
        return drive(lambda state, scope: validator(state, scope, toolkit=Toolkit([DATED])), given, replies)

    @pytest.mark.parametrize(
        ("args", "task"),
        [
            ({"flight": "F-7731"}, "Book flight F-7731"),
            ({"flight": "f-7731", "seats": 2}, "Book 2 seats on F-7731, please"),
            ({"flight": "Ann\u2019s flight", "seats": 1200}, "Book 1,200 seats on ann's  flight"),
            ({"flight": "F1", "window": False}, "Take F1"),
            ({"flight": "F1", "date": "2026-10-10"}, "Book F1 on October 10th 2026"),
        ],
    )
    def test_nothing_is_asked_where_the_conversation_holds_every_value(self, args, task):
        assert self.asked(args, task=task).asks == []

    @pytest.mark.parametrize(
        ("args", "task", "undecided"),
        [
            ({"flight": "F-77"}, "Book flight F-7731", "/flight"),
            ({"flight": "F1", "seats": 12}, "Book F1 for 120", "/seats"),
            ({"flight": "F1", "date": "Friday"}, "Book F1 on Friday", "/date"),
            ({"flight": "F1", "warm": 0.7}, "Book F1", "/warm"),
            ({"flight": "", "seats": -1}, "Book 1 seat", "/flight\n/seats"),
        ],
    )
    def test_what_nobody_gave_is_asked_about_or_what_has_a_format(self, args, task, undecided):
        (ask,) = self.asked(args, task=task, replies=[verdict()]).asks
        assert ask.variables["undecided"] == undecided

    def test_a_value_that_a_tool_returned_is_never_refused(self, step):
        found = step("search", {}, {"flights": [{"id": "F-7731", "on": "3 May"}]})
        assert self.asked({"flight": "F-7731", "date": "3 May"}, steps=[found]).asks == []
        reply = [verdict(("flight", "it has no airline code"), ("date", "it has no year"), ("seats", "too many"))]
        update, (ask,), _ = self.asked(
            {"flight": "F-7731", "date": "3 May", "seats": 900}, steps=[found], replies=reply
        )
        assert ask.variables["undecided"] == "/seats"
        assert [each["path"] for each in update["steps"][0]["complaints"]] == ["/seats"]

    def test_a_refusal_heard_before_does_not_hold_against_what_a_tool_has_returned_since(self, step):
        args = {"flight": "Miller"}
        record = judged("book", args, [{"argument": "/flight", "problem": "no flight"}])
        assert self.asked(args, argument_verdicts=[record]).update["steps"]
        found = step("search", {}, ["Miller"])
        assert self.asked(args, argument_verdicts=[record], steps=[found]).update["steps"] == []

    def test_results_of_an_earlier_turn_count_too(self):
        results = [ToolMessage('{"flight": "F-7731", "day": "3 May"}', tool_call_id="a")]
        assert self.asked({"flight": "F-7731", "date": "3 May"}, conversation=results).asks == []
        lost = [ToolMessage("no F-7731", tool_call_id="a", status="error")]
        assert len(self.asked({"flight": "F-7731"}, conversation=lost, replies=[verdict()]).asks) == 1

    def test_the_question_carries_a_bounded_digest_of_conversation_results_and_the_clock(self, step):
        steps = [step("search", {}, {"text": "x" * 9_000})] * 30
        policy = SystemMessage("Today is Tuesday, 1 December 2026. " + "Be kind. " * 400)
        said = [policy, HumanMessage("I like trains"), AIMessage("Noted." * 2_000)]
        more = {"task_state": {"runtime_state": {"now": "2024-05-15T15:00"}}}
        (ask,) = self.asked({"flight": "F1"}, steps=steps, conversation=said, replies=[verdict()], **more).asks
        told = ask.variables
        assert told["now"] == "2024-05-15T15:00"
        assert "search({}) -> ok" in told["results"]
        assert "assistant: Noted." in told["conversation"]
        assert "Book me" not in told["conversation"]
        assert "Be kind." in told["policy"]
        assert max(len(told[key]) for key in ("results", "conversation", "policy")) <= 1_200
        (ask,) = self.asked({"flight": "F1"}, conversation=said, replies=[verdict()]).asks
        assert ask.variables["now"] == "2026-12-01", "without a clock the policy's day"

    def test_a_complaint_never_holds_a_right_value(self):
        said = verdict(("flight", "This is a train; use 'F-7731' instead. Should be F-7731."))
        update, *_ = self.asked({"flight": "ICE 5"}, replies=[said])
        assert update["steps"][0]["complaints"][0]["expected"] == "a plausible value: This is a train"
        assert "7731" not in json.dumps(update["argument_verdicts"]) + update["trace"][0].content


LOGIN = ToolSpec(
    name="login",
    parameters={
        "type": "object",
        "properties": {"user": {"type": "string"}, "password": {"type": "string"}, "remember": {"type": "boolean"}},
        "required": ["user", "password"],
    },
)


def test_only_values_without_a_source_are_asked_about_and_no_flag_and_no_secret():
    args = {"user": "ann", "password": "hunter2!", "remember": True}
    given = {"pending": [call(name="login", **args)], "task": "Log in", "number": 1, "turn": 0}
    _, asks, _ = drive(lambda s, scope: validator(s, scope, toolkit=Toolkit([LOGIN])), given, [verdict()])
    assert asks[0].variables["undecided"] == "/user"
    given["task"] = "Log ann in"
    assert drive(lambda s, scope: validator(s, scope, toolkit=Toolkit([LOGIN])), given).asks == []
