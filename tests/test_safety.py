"""Safety (ToolGate, equations 14, 19 to 21): whatever rungs and models answer, what breaks P or Q is not committed.

About 10,000 calls in all, of random contracts, by oracle: `tests/safe.py`.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from langgraph.checkpoint.memory import InMemorySaver

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import GeckoContext, Models, Rung, World, create_gecko, create_toolgate
from gecko_graph.world.rung import Answer, Pass
from tests import safe
from tests.shop import Acting

pytestmark = pytest.mark.slow
SHARE = float(os.environ.get("GECKO_SAFETY", "0.25"))
"""How many of the steps are made: 1 is 10,000."""
COUNTS: Counter = Counter()
QUICK = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck), "print_blob": True}


def examples(number: int) -> int:
    return max(5, int(number * SHARE))


class Calls(RuleBasedStateMachine):
    """One world, many calls, several of one message at once; rungs that answer anything; restored from JSON between."""

    @initialize(
        spec=safe.worlds(),
        lies=st.lists(safe.lies, min_size=8, max_size=8),
        mode=st.sampled_from(["serial", "serial", "snapshot", "strict"]),
        order=st.permutations(["contract", "liar"]),
        invents=st.booleans(),
    )
    def begin(self, spec, lies, mode, order, invents):
        self.spec, self.mode, self.lies = spec, mode, [*lies, None]
        self.context = GeckoContext(gate="strict", parallel_calls=mode, ladder=tuple(order))
        self.rung = Rung("liar", self.answer, invents=invents)
        self.toolkit = safe.toolkit_of(spec)
        self.world = World(self.toolkit, state=spec["start"], context=self.context, rungs=[self.rung])

    def answer(self, request):
        lie = self.dice.choice(self.lies)
        return Pass("silent") if lie is None else Answer(lie["status"], lie["result"], lie["patch"])

    @rule(seed=st.integers(0, 10**6))
    def call(self, seed):
        self.dice = random.Random(seed)
        for _ in range(5):
            self.send([self.dice.choice([*range(9), "n"]) for _ in range(self.dice.choice([1, 1, 2, 3]))])

    def send(self, numbers):
        before = now = self.world.state
        ran, tools = [each for each in self.world.log if "outcome" in each], len(self.spec["tools"])
        calls = [{"name": f"tool_{self.dice.randrange(tools)}", "args": {"n": number}} for number in numbers]
        for step in self.world.call_all(calls):
            seen = now if self.mode == "serial" else before
            now, committed = safe.check_step(self.spec, step, seen, now, ran, strict=False)
            ran = [*ran, step] if self.mode == "serial" and "outcome" in step else ran
            COUNTS.update(steps=1, committed=committed)
        assert self.world.state == now

    @rule()
    def restart(self):
        kept = json.loads(json.dumps(self.world.snapshot()))
        self.world = World.restore(self.toolkit, kept, context=self.context, rungs=[self.rung])

    @rule()
    def undo(self):
        self.world.undo()


def test_no_call_of_a_world_commits_what_breaks_its_contract():
    COUNTS.clear()
    while COUNTS["steps"] < 9_000 * SHARE:
        run_state_machine_as_test(Calls, settings=settings(**QUICK, max_examples=examples(25), stateful_step_count=40))
    assert COUNTS["committed"] >= COUNTS["steps"] // 200


@pytest.mark.parametrize(
    ("place", "without"),
    [
        ("gecko_graph.world.made.gate", lambda request: (request, None)),
        ("gecko_graph.world.commit._violations", lambda *_: []),
    ],
)
def test_the_oracle_notices_what_is_not_checked(monkeypatch, place, without):
    monkeypatch.setattr(place, without)
    quick = settings(**QUICK, max_examples=2_000, stateful_step_count=6, phases=[Phase.generate])  # many short worlds
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Calls, settings=quick)


class Liar:
    """Every role's words, drawn from a seed: needs, rankings, arguments and results that fit or do not."""

    def __init__(self, seed: int, tools: int, lies: list, needs: int) -> None:
        self.seed, self.tools, self.lies, self.needs = seed, tools, lies, needs
        roles = ("reasoner", "reranker", "planner", "simulator", "state_updater", "validator", "judge", "checklist")
        self.roles = {role: getattr(self, role, self.nonsense) for role in roles}

    def dice(self, *place):
        return random.Random(f"{self.seed} {place}")

    def nonsense(self, number, text, tool):
        return self.dice("nonsense", number, len(text)).choice(["", {"problems": []}, {"a": 1}])

    def reasoner(self, number, text, tool):
        return {"need": f"Do something, {number}."} if number < self.needs else {"answer": "Done."}

    def reranker(self, number, text, tool):
        dice = self.dice("rank", number)
        names = [f"tool_{index}" for index in range(self.tools + 1)]
        return {"tools": [{"name": name, "score": dice.random()} for name in dice.sample(names, len(names))]}

    def planner(self, number, text, tool):
        dice = self.dice("plan", number, len(text))
        call = {"call": tool or "tool_0", "args": {"n": dice.choice([0, 1, 2, 3, 3, "n"])}}
        if self.needs:  # forward execution
            return dice.choice([*[call] * 8, {"say": "No."}, {**call, "call": "tool_9"}, {**call, "malformed": "{"}])
        calls = [{**call, "call": f"tool_{dice.randrange(self.tools)}"} for _ in range(dice.choice([1, 1, 2]))]
        return {"calls": calls} if number < 7 else {"say": "Done."}

    def simulator(self, number, text, tool):
        return self.dice("lie", number, len(text)).choice(self.lies)

    def state_updater(self, number, text, tool):
        return {"patch": self.dice("patch", number, len(text)).choice(self.lies)["patch"]}


SEEDS = st.integers(0, 10**6)
LIES = st.lists(safe.lies, min_size=4, max_size=4)


@settings(**QUICK, max_examples=examples(90))
@given(
    spec=safe.worlds(),
    seed=SEEDS,
    lies=LIES,
    selection=st.sampled_from(["greedy", "sample"]),
    point=st.integers(3, 160),
)
def test_forward_execution_commits_nothing_that_breaks_a_contract_also_when_it_is_killed(
    spec, seed, lies, selection, point
):
    liar = Liar(seed, len(spec["tools"]), lies, needs=5)
    model, fate, thread = Acting(roles=liar.roles), Fate(point), {"configurable": {"thread_id": "a"}}
    context = GeckoContext(selection=selection, seed=seed, max_steps=18, ladder=("contract", "model"))
    toolgate = create_toolgate(safe.toolkit_of(spec), model=model, context=context, checkpointer=KillingSaver(fate))
    given_ = {"messages": [("user", "Do 1, 2 or 3.")], "task_state": spec["start"]}
    try:
        out = toolgate.invoke(given_, thread, durability="sync")
    except Killed:
        fate.kill_at = 0
        COUNTS.update(killed=1)
        has_begun = bool(toolgate.get_state(thread).values)
        out = toolgate.invoke(None if has_begun else given_, thread, durability="sync")
    record = out["record"]
    done = safe.check_trajectory(spec, record["steps"], spec["start"], out["task_state"], strict=True)
    assert [step["call"] for step in record["steps"] if step.get("outcome", {}).get("status") == "ok"] == record["plan"]
    assert done == len(record["plan"])
    COUNTS.update(steps=len(record["steps"]), committed=done, runs=1)


@settings(**QUICK, max_examples=examples(28))
@given(spec=safe.worlds(), seed=SEEDS, lies=LIES)
def test_parallel_attempts_commit_nothing_that_breaks_a_contract(spec, seed, lies):
    liar = Liar(seed, len(spec["tools"]), lies, needs=0)
    context = GeckoContext(parallel_attempts=3, max_retries=0, gate="strict", max_steps=12)
    context = context.model_copy(update={"ladder": ("contract", "model")})
    roles = {role: Acting(roles=liar.roles) for role in ("planner", "simulator", "state_updater")}
    gecko = create_gecko(safe.toolkit_of(spec), model=Models(**roles), context=context, checkpointer=InMemorySaver())
    check = {"id": "any", "description": "all is well", "check": "state.a == before.a or True"}
    out = gecko.invoke(
        {"messages": [("user", "Do 1, 2 or 3.")], "task_state": spec["start"], "checklist": [check]},
        {"configurable": {"thread_id": "a"}},
    )
    for attempt in out["rehearsal"]["attempts"]:
        end = safe.apply(spec["start"], attempt["change"])
        safe.check_trajectory(spec, attempt["steps"], spec["start"], end, strict=False)
        COUNTS.update(steps=len(attempt["steps"]))
    assert safe.good(spec, out["task_state"])
