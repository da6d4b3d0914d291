"""Random contracts with a plain Python meaning of their own, and the oracle of ToolGate's safety (equations 14, 19-21).

A condition is data, shown to the package as an expression of the contract language, and evaluated here by a few lines
that share nothing with it. Patches are applied by the package jsonpatch.
"""

from __future__ import annotations

import ast
import copy
import operator
from functools import cache, lru_cache
from typing import Any

import jsonpatch
from hypothesis import strategies as st

from gecko_graph import Tool, Toolkit
from gecko_graph.errors import ContractError

KEYS = ("a", "b", "c", "d")  # d is absent at first
ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class UndefinedError(Exception):
    """A condition has no value."""


def show(one: Any) -> str:
    """The condition or term as an expression."""
    kind, *rest = one
    if kind == "const":
        return repr(rest[0])
    if kind in ("state", "before", "result"):
        return f"{kind}.{rest[0]}"
    if kind == "arg":
        return "args.n"
    if kind == "calls":
        return "len(calls)"
    if kind == "size":
        return f"len({show(rest[0])})"
    if kind == "not":
        return f"(not {show(rest[0])})"
    return f"({show(rest[0])} {kind} {show(rest[1])})"


def value(one: Any, names: dict[str, Any]) -> Any:
    """The value of a condition or term. Raises UndefinedError."""
    kind, *rest = one
    if kind == "const":
        return rest[0]
    if kind in ("state", "before", "result"):
        held = names[kind]
        if not isinstance(held, dict) or rest[0] not in held:
            raise UndefinedError
        return held[rest[0]]
    if kind == "arg":
        return names["args"].get("n")
    if kind == "calls":
        return len(names["calls"])
    if kind == "not":
        return not value(rest[0], names)
    if kind == "and":
        return value(rest[0], names) and value(rest[1], names)
    if kind == "or":
        return value(rest[0], names) or value(rest[1], names)
    left = value(rest[0], names)
    if kind == "size":
        if isinstance(left, str | list | dict):
            return len(left)
        raise UndefinedError
    return compute(kind, left, value(rest[1], names))


def compute(kind: str, left: Any, right: Any) -> Any:
    if kind == "==":
        return left == right
    numbers = type(left) in (int, float) and type(right) in (int, float)
    if not numbers and not (isinstance(left, str) and isinstance(right, str)):
        raise UndefinedError
    return left + right if kind == "+" else ORDER[kind](left, right)


def holds(conditions: list[Any], **names: Any) -> bool:
    """Whether all conditions are true; one without a value is not."""
    try:
        return all(value(each, names) is True for each in conditions)
    except UndefinedError:
        return False


@cache  # building one takes longer than drawing from it
def terms(*kinds: str) -> st.SearchStrategy[Any]:
    """Terms over these sources."""
    plain: list[Any] = [st.tuples(st.just("const"), st.sampled_from([-9, -9, 0, 0, 1, 1, 2, 2, 3, 9, 9, "x"]))]
    for kind in kinds:
        keys = ["v"] if kind == "result" else [*"aaaaabbbbbbcc", "d"]
        bare = kind in ("arg", "calls")
        plain.append(st.just((kind,)) if bare else st.tuples(st.just(kind), st.sampled_from(keys)))
    one = st.one_of(plain)
    return st.one_of(*[one] * 8, st.tuples(st.just("+"), one, one), st.tuples(st.just("size"), one))


@cache
def conditions(*kinds: str) -> st.SearchStrategy[Any]:
    """Conditions over these sources; some have no value in some states."""
    one = st.tuples(st.sampled_from([*ORDER, "=="]), terms(*kinds), terms(*kinds))
    likely = st.tuples(st.just("<"), terms(*kinds), st.just(("const", 9)))
    one = st.one_of(one, likely, likely)
    return st.one_of(one, one, one, st.tuples(st.sampled_from(["and", "or"]), one, one), st.tuples(st.just("not"), one))


values = st.sampled_from([0, 1, 2, 3, 5, 0, 1, 2, 3, -2, "x", "", None, True, [], [1], {"k": 1}])
setting = st.builds(lambda key, one: {"op": "add", "path": f"/{key}", "value": one}, st.sampled_from(KEYS), values)
operations = st.one_of(
    *[setting] * 8,
    st.builds(lambda key: {"op": "remove", "path": f"/{key}"}, st.sampled_from(KEYS)),
    st.builds(lambda a, b: {"op": "move", "from": f"/{a}", "path": f"/{b}"}, *[st.sampled_from(KEYS)] * 2),
    st.sampled_from([{"op": "add", "path": "", "value": 7}, {"op": "add", "path": "/a/0", "value": 7}]),
)
lies = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["ok", "ok", "ok", "error"]),
        "result": st.one_of(values, *[st.builds(lambda one: {"v": one}, values)] * 4),
        "patch": st.one_of(st.just([]), st.lists(operations, max_size=2)),
    }
)
states = st.fixed_dictionaries({"a": st.integers(-1, 3), "b": st.integers(-1, 3), "c": st.sampled_from([0, 2, "x"])})


@st.composite
def contracts(draw: Any) -> dict[str, Any]:
    """One tool: `requires`, `ensures`, perhaps `effects`, each as conditions and terms of this module."""
    free = st.one_of(conditions("state"), conditions("state", "calls"))
    tool: dict[str, Any] = {
        "requires": draw(st.lists(st.one_of(free, conditions("state", "arg")), max_size=2)),
        "ensures": draw(st.lists(conditions("state", "before", "result", "arg"), max_size=2)),
        "effects": None,
        "fine": draw(st.booleans()),
    }
    if draw(st.booleans()):
        effect = st.tuples(st.sampled_from(KEYS), terms("state", "arg"))
        tool["effects"] = draw(st.lists(effect, max_size=2))
        tool["returns"] = draw(terms("state", "arg"))
    return tool


NOTHING: dict[str, Any] = {"requires": [], "ensures": [], "effects": None, "fine": False}


@st.composite
def worlds(draw: Any) -> dict[str, Any]:
    """A start state, its tools, and invariants that hold in it; what cannot be loaded at all is left out."""
    start = draw(states)
    wanted = [each for each in draw(st.lists(conditions("state"), max_size=2)) if holds([each], state=start)]
    world = {"start": {**start, "runtime_state": {}}, "tools": [], "invariants": [], "typed": draw(st.booleans())}
    for tool in draw(st.lists(contracts(), min_size=2, max_size=4)):
        bare = {**tool, "requires": [], "ensures": []}
        bare = bare if loads({**world, "tools": [bare]}) else {**bare, "effects": None}
        for part in ("requires", "ensures"):
            for each in tool[part]:
                more = {**bare, part: [*bare[part], each]}
                bare = more if loads({**world, "tools": [more]}) else bare
        world["tools"].append(bare)
    world["invariants"] = [each for each in wanted if loads({**world, "tools": [], "invariants": [each]})]
    return world


@lru_cache(maxsize=20_000)
def _loads(text: str) -> bool:
    world = ast.literal_eval(text)
    try:
        toolkit_of({**world, "tools": world["tools"] or [NOTHING]})
    except ContractError:
        return False
    return True


def loads(world: dict[str, Any]) -> bool:
    """Whether the package takes the contracts: a clash of types that is there in every state is refused at load."""
    return _loads(repr({**world, "start": {}}))


def contract_of(tool: dict[str, Any]) -> dict[str, Any]:
    """The contract as the package reads it; a broken requirement may declare effects of its error."""
    data: dict[str, Any] = {
        "requires": [{"check": show(each), "error": f"not {show(each)}"} for each in tool["requires"]],
        "ensures": [{"check": show(each), "error": f"not {show(each)}"} for each in tool["ensures"]],
    }
    if tool["fine"] and data["requires"]:
        data["requires"][0]["effects"] = [{"op": "add", "path": ["b"], "value": 99}]
    if tool["effects"] is not None:
        changes = [(key, f"{{{{ {show(term)} }}}}") for key, term in tool["effects"]]
        data["effects"] = [{"op": "add", "path": [key], "value": text} for key, text in changes]
        data["returns"] = {"v": f"{{{{ {show(tool['returns'])} }}}}"}
    return data


PARAMETERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def toolkit_of(world: dict[str, Any], **more: Any) -> Toolkit:
    names = [f"tool_{number}" for number in range(len(world["tools"]))]
    functions = [{"name": name, "description": f"Do {name}.", "parameters": PARAMETERS} for name in names]
    typed = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    return Toolkit.from_tools(
        [Tool(one, contract=contract_of(tool)) for one, tool in zip(functions, world["tools"], strict=True)],
        invariants=[{"check": show(each), "error": f"not {show(each)}"} for each in world["invariants"]],
        state_schema=typed if world["typed"] else None,
        **more,
    )


def check_step(world: dict, step: dict, seen: dict, now: dict, calls: list, *, strict: bool) -> tuple[dict, bool]:
    """Check one step of a record; return the state after it, and whether it was committed.

    Args:
        world: What is true of tools and states.
        step: The step.
        seen: The state in which the call was answered.
        now: The state to which it was committed.
        calls: The calls that ran before it.
        strict: True where nothing at all may be left by a call that was not committed.
    """
    outcome = step.get("outcome")
    if outcome is None:
        return now, False
    tool, args = world["tools"][int(step["call"]["name"].removeprefix("tool_"))], step["call"]["args"]
    patch = outcome["patch"] or []
    if outcome["status"] == "error":
        assert not patch or not strict, "an error has left a change"
        declared = outcome["rung"] != "contract" or not holds(tool["requires"], args=args, state=seen, calls=calls)
        assert not patch or declared, "an error without a broken requirement has left a change"
        after = apply(now, patch)
        assert patch == [] or good(world, after), "an error has broken an invariant"
        return after, False
    assert holds(tool["requires"], args=args, state=seen, calls=calls), "P is broken"
    alone, after = apply(seen, patch), apply(now, patch)
    result = outcome["result"]
    assert holds(tool["ensures"], args=args, state=alone, before=seen, result=result, calls=calls), "Q is broken"
    if patch:  # of several calls of one message each also follows the ones before it
        assert holds(tool["requires"], args=args, state=now, calls=calls), "P is broken where it is committed"
        ends = {"state": after, "before": now, "result": result, "calls": calls}
        assert holds(tool["ensures"], args=args, **ends), "Q is broken where it is committed"
    assert good(world, after), "an invariant is broken"
    return after, True


def good(world: dict[str, Any], state: dict[str, Any]) -> bool:
    """GoodState: the invariants hold, and the types."""
    typed = not world["typed"] or (type(state.get("a")) is int)
    return typed and holds(world["invariants"], state=state)


def apply(state: dict[str, Any], patch: list[dict[str, Any]]) -> Any:
    return jsonpatch.apply_patch(copy.deepcopy(state), patch)


def check_trajectory(world: dict, steps: list[dict], start: dict, end: dict, *, strict: bool) -> int:
    """Check a whole record, each call in the state that the one before left; return how many were committed."""
    now, calls, committed = start, list[dict](), 0
    for step in steps:
        now, done = check_step(world, step, now, now, calls, strict=strict)
        committed += done
        calls += [step] if "outcome" in step else []
    assert now == end
    return committed
