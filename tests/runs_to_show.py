"""Records of a run, to be shown."""

from __future__ import annotations

import json
import unicodedata

from gecko_graph.values.notes import note

NASTY = "\x1b[31mred\x1b[0m \x1b]0;title\x07<script>alert(1)</script> [bold]x[/bold] \u202eturned\x00\x9b2J :smile:"


def step(name, args, status="ok", result=None, patch=(), **more):
    outcome = {
        "status": status,
        "result": result,
        "patch": list(patch),
        "rung": "contract",
        "simulated": True,
        "passed": [],
    }
    return {"v": 1, "call": {"id": f"{name}-1", "name": name, "args": args}, "outcome": outcome | more}


def complaint(path="/date", expected="a date", got='"soon"'):
    return {"tool": "book", "path": path, "expected": expected, "got": got, "source": "rule"}


def verdict(word="failed", *statuses, feedback=""):
    items = [
        {"id": f"i{n}", "description": f"thing {n} holds", "status": status, "reason": "", "by": "rule"}
        for n, status in enumerate(statuses, 1)
    ]
    return {"status": word, "score": 0.5, "items": items, "feedback": feedback}


def attempt(number, steps, outcome, **more):
    return {
        "v": 1, "number": number, "start_digest": "abcdef0123", "end_digest": "ffff", "steps": steps,
        "answer": "Done.", "verdict": outcome, "change": [], "usage": {}, "stop_reason": "answered",
    } | more  # fmt: skip


def rehearsal(*attempts, chosen=None, usage=None):
    last = chosen or attempts[-1]
    plan = [each["call"] for each in last["steps"] if each.get("outcome", {}).get("status") == "ok"]
    changes = [f"{each['op']} {each['path']} {json.dumps(each['value'])}" for each in last["change"]]
    return {
        "v": 1, "plan": plan, "verdict": last["verdict"], "answer": last["answer"], "attempts": list(attempts),
        "chosen": last["number"], "usage": usage or {}, "changes": changes,
    }  # fmt: skip


FIRST = attempt(
    1,
    [
        {"v": 1, "call": {"id": "c0", "name": "book", "args": {"date": "soon"}}, "complaints": [complaint()]},
        step("mkdir", {"name": "temp"}, patch=[{"op": "add", "path": "/tree/temp", "value": {}}]),
        step("mv", {"from": "a", "to": "temp"}, "error", "mv: no such file"),
    ],
    verdict("failed", "failed", "unknown", feedback="- thing 1 holds: failed\nLook where you are."),
)
MOVED = [{"op": "replace", "path": "/cwd", "value": "docs"}]
SECOND = attempt(
    2,
    [
        step("cd", {"folder": "docs"}, result={"cwd": "docs"}, patch=MOVED),
        step("pay", {}, "error", "refused: credit below zero", notes=[note("refused", "credit below zero")]),
        step("look", {}, result=[1, 2], rung="real", simulated=False),
        step("guess", {}, result=1, rung="schema", passed=[
            {"rung": "real", "reason": "nothing was opened"},
            {"rung": "contract", "reason": "it cannot be evaluated: division by zero"},
        ]),
    ],
    verdict("accepted", "success"),
    change=MOVED,
)  # fmt: skip
USAGE = {"planner": {"calls": 5, "input_tokens": 1234, "output_tokens": 56, "cost": 0.0021}}
RUN = rehearsal(FIRST, SECOND, usage=USAGE)


def nasty_run(text=NASTY):
    broken = {"id": "m", "name": "m", "args": {}, "malformed": text}
    steps = [
        step(text, {text: text}, "error", {"error": text, text: 1}, [{"op": "add", "path": f"/{text}", "value": text}]),
        step(
            "a",
            {},
            result=text,
            notes=[note("refused", text), note("race", text)],
            passed=[{"rung": text, "reason": f"x: {text}"}],
        ),
        {"v": 1, "call": broken, "complaints": [complaint(text, text, text)]},
    ]
    items = {"items": [{"id": "i", "description": text, "status": "failed", "reason": text, "by": "model"}]}
    judged = verdict(feedback=text) | items
    return rehearsal(attempt(1, steps, judged, answer=text, stop_reason=text))


def events_of(record):
    """The events that a run streams of an attempt."""

    def event(kind, **fields):
        return {"v": 1, "type": f"gecko.{kind}", "attempt": record["number"], **fields}

    yield event("attempt", digest=record["start_digest"], feedback="")
    for each in record["steps"]:
        call, outcome = each["call"], each.get("outcome")
        yield event("call", call=call)
        if "complaints" in each:
            yield event("complaint", call=call, complaints=each["complaints"])
        if outcome:
            yield event("result", call=call, **outcome)
            yield event("change", call=call, **{key: outcome[key] for key in ("patch", "notes") if key in outcome})
    ended = {key: record[key] for key in ("verdict", "answer", "stop_reason")}
    yield event("verdict", **ended, stop="")


def printable(text):
    kept = "\n\u200c\u200d"  # joiners between two characters stay
    return all(char in kept or unicodedata.category(char) not in ("Cc", "Cf", "Cs") for char in text)
