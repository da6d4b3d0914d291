"""The flows of the real model: single questions of each role, rehearsals, conversations, forward execution, data.

A flow is a function of `Turn` that returns its outcome, and raises only for a fault of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel

from gecko_graph import ChatDecisionModel, GeckoContext, Models, Scenario, Tool, Toolkit, create_gecko, create_toolgate
from gecko_graph.conversation.graph import create_conversation
from gecko_graph.models.answer import answer
from gecko_graph.models.ask import Ask, QuestionId
from gecko_graph.models.decisions import ROLES as DECIDED
from gecko_graph.models.prompts import variables_of
from gecko_graph.models.roles import REPLIES
from gecko_graph.state import ROLES, JsonObject
from gecko_graph.testing import scripted
from gecko_graph.training.dialogues import SAMPLES, make_dialogues
from gecko_graph.training.probe import ask_policy, read_outputs
from gecko_graph.training.samples import Sample
from gecko_graph.values.rows import read_lines

from ..harness.options import ROOT

TEXT = {"type": "string", "minLength": 1}


def _function(name: str, about: str, **arguments: JsonObject) -> JsonObject:
    parameters = {"type": "object", "properties": arguments, "required": [*arguments], "additionalProperties": False}
    return {"name": name, "description": about, "parameters": parameters}


SELL: JsonObject = {
    "requires": [{"check": "args.item in state.stock", "error": "there is no {{ args.item }}"}],
    "effects": [{"op": "replace", "path": ["till"], "value": "{{ state.till + args.price }}"}],
    "returns": {"sold": "{{ args.item }}"},
    "ensures": [{"check": "state.till > before.till", "error": "nothing was paid"}],
}
STOCK = Tool(_function("stock", "Show what is left."), effect="read", contract={"returns": "{{ state.stock }}"})
SHOP = Toolkit.from_tools(
    [
        STOCK,
        Tool(_function("sell", "Sell one item.", item=TEXT, price={"type": "number", "minimum": 0}), contract=SELL),
        Tool(_function("note", "Write a note down.", text=TEXT), effect="write"),
    ]
)
"""A shop of three tools; the model makes up the effect of a note."""
STATE: JsonObject = {"till": 0, "stock": {"pen": 1, "ink": 4}, "notes": []}
TASK = "Sell a pen for 2, and note that ink is low."
CALLS = (
    {"call": "stock", "args": {}},
    {"call": "sell", "args": {"item": "pen", "price": 2}},
    {"call": "note", "args": {"text": "ink is low"}},
    {"say": "A pen was sold for 2, and I noted that ink is low."},
)
SOLD = {"id": "sold", "description": "the till has come to hold 2", "check": "state.till == before.till + 2"}
KNOBS = GeckoContext(max_retries=1, max_steps=4, time_budget_s=240)
ANSWERS = {
    "honest": "Those in green have all gone, I am afraid, so your basket is as empty as it was.",
    "another": "Green is a lovely colour for a mug.",
}
VALUES = {
    "tool": '{"name": "sell", "parameters": {"item": "string", "price": "number"}}', "state": '{"till": 0}',
    "call": 'sell({"item": "pen", "price": 2})', "arguments": '{"item": "pen", "price": 2}', "undecided": "item, price",
    "items": "item-1: the pen was sold", "steps": "1. sell: ok", "answer": "The pen is sold.", "taken": "sell, stock",
    "tools": "sell: Sell one item. stock: Show what is left.", "claim": "says: the pen was sold", "kinds": "call",
    "conversation": "user: Sell a pen. agent: Done.", "demand": "2 parameters, flat, object, no errors",
}  # fmt: skip
"""Values of a prompt's variables if a role is asked alone; other variables have the task."""


@dataclass(frozen=True)
class Turn:
    """The input of a flow: the model in all roles, itself, and as the agent under test, its replies recorded."""

    url: str
    models: Models
    chat: BaseChatModel
    agent: BaseChatModel
    name: str


Flow: TypeAlias = Callable[[Turn], JsonObject]
"""Returns `end`, and counts if any: `lost` (rows) or `false_done` (reported as done, but not done)."""


def ask_role(turn: Turn, *, models: Models | None = None, ids: tuple[str, ...] = ()) -> JsonObject:
    """Ask a role alone, once for each class of reply."""
    role = next(each for each in ROLES if each == turn.name.split()[0])
    variables = {name: VALUES.get(name, TASK) for name in variables_of(role)}
    ids = ids or (("item-1",) if role == "judge" else ())
    asks = [Ask(role, variables, reply, QuestionId(), ids=ids) for reply in REPLIES[role]]
    return {"end": ", ".join("read" if each.value else "a reason" for each in answer(asks, models or turn.models))}


def decide(turn: Turn) -> JsonObject:
    """Ask a judging role through a decision model made from the model, by logprobs or by samples."""
    chat = turn.agent.bind(logprobs=None, top_logprobs=None) if "by samples" in turn.name else turn.agent
    models = turn.models.replace(**dict.fromkeys(DECIDED, ChatDecisionModel(chat, samples=3)))
    return ask_role(turn, models=models, ids=("item-1", "item-2"))


def rehearse(turn: Turn) -> JsonObject:
    """Rehearse the task: the model or a script plans, and the model or rules judge."""
    kind = turn.name
    models = turn.models if "model plans" in kind else turn.models.replace(planner=scripted(*CALLS))
    simulation: Any = "separate" if "separate" in kind else "fused"
    gecko = create_gecko(SHOP, model=models, context=KNOBS.model_copy(update={"simulation": simulation}))
    words = "Please. " * 9_000 if "too long" in kind else ""
    given: Any = {"messages": [("user", words + TASK)]}
    given |= {} if "no state" in kind else {"task_state": STATE}
    given |= {} if "judges" in kind else {"checklist": [SOLD]}
    run = gecko.invoke(given)
    status, sold = run["rehearsal"]["verdict"]["status"], "sell" in {each["name"] for each in run["rehearsal"]["plan"]}
    return {"end": status, "false_done": int(status == "accepted" and not sold)}


def converse(turn: Turn) -> JsonObject:
    """Run a conversation in which the model is the user, the agent, the auditor, or the simulator."""
    kind = turn.name
    agent = turn.agent if kind == "agent" else scripted(*CALLS)
    user: Any = ["Sell a pen for 2.", {"end": True}]
    if kind == "user":
        user = {"goal": TASK, "knows": ["The pen costs 2."], "max_messages": 8}
    roles = {"user": ("user",), "auditor": ("auditor",), "simulator": ("simulator", "validator")}.get(kind, ())
    models = turn.models.replace(**{role: turn.chat if role in roles else None for role in ROLES})
    found = create_conversation(agent, SHOP, user=user, model=models, context=KNOBS).invoke({"task_state": STATE})
    done = found["score"]["status"] == "passed" and found["score"]["end"] != "ended"
    return {"end": f"{found['score']['end']}: {found['score']['status']}", "false_done": int(done)}


def judge_claims(turn: Turn) -> JsonObject:
    """Let the model judge a claim that no rule decides."""
    case = Scenario.load(ROOT / "examples" / "shop" / "green-mug.gecko.yaml")
    agent = scripted({"call": "findProducts", "args": {"text": "mug"}}, {"say": ANSWERS[turn.name]})
    models = turn.models.replace(**dict.fromkeys({*ROLES} - {"claim_judge"}))
    found = create_conversation(agent, scenario=case, model=models).invoke({})["score"]
    return {"end": found["status"], "lost": int(found["status"] not in ("passed", "failed", "unknown"))}


def execute_forward(turn: Turn) -> JsonObject:
    """Run forward execution; the arguments are the model's, or a script's."""
    models = turn.models if turn.name == "all roles" else turn.models.replace(planner=scripted(*CALLS[1:]))
    graph = create_toolgate(SHOP, model=models, context=KNOBS)
    out = graph.invoke({"messages": [("user", "Sell a pen for 2.")], "task_state": STATE})
    committed = len(out["record"]["plan"])
    moved = out.get("task_state", STATE).get("till", 0) != 0
    return {"end": f"{out['record']['status']}, {committed} calls", "false_done": int(moved and not committed)}


def plan_dialogues(turn: Turn) -> JsonObject:
    """Make one dialogue: planned, played, verified; count rows that were lost."""
    with TemporaryDirectory() as folder:
        counts = make_dialogues(SHOP, folder, 1, tools="shop:TOOLS", model=turn.models, assistant=turn.agent)
        rows = sum(1 for _ in read_lines(Path(folder) / SAMPLES))
    return {"end": ", ".join(f"{count} {what}" for what, count in counts.items()), "lost": counts["rows"] - rows}


def probe(turn: Turn) -> JsonObject:
    """Ask the policy for rows, as the training loop does: each has an output, and a perplexity from real logprobs."""
    samples: list[Sample] = [
        {"v": 1, "id": f"row-{at}", "tools": SHOP.as_openai(), "label": [], "from": [],
         "messages": [{"role": "user", "content": text}]}
        for at, text in enumerate(("Say hi in five words.", "What is 2 + 2?"))
    ]  # fmt: skip
    with TemporaryDirectory() as folder:
        out = Path(folder) / "outputs.jsonl"
        ask_policy(turn.url, "smollm2-135m", samples, out, Path(folder) / "replies", lambda _done: None)
        outputs = read_outputs(out, [each["id"] for each in samples])
    known = [each["perplexity"] for each in outputs if each["perplexity"] is not None]
    told = f"perplexity {', '.join(f'{each:.3g}' for each in known)}"
    return {"end": told, "lost": len(samples) - len(outputs), "unknown": len(outputs) - len(known)}


FLOWS: Mapping[str, tuple[Flow, tuple[str, ...]]] = {
    "question": (ask_role, tuple(role for role in ROLES if REPLIES[role])),
    "text": (ask_role, ("simulator", "judge", "bootstrapper", "dialogue_planner")),
    "decision": (decide, ("risk", "risk by samples", "judge")),
    "rehearsal": (rehearse, (
        "model plans", "model plans and judges, no state", "script plans", "script plans, separate", "model judges",
        "model plans, prompt too long",
    )),
    "conversation": (converse, ("user", "agent", "auditor", "simulator")),
    "claims": (judge_claims, (*ANSWERS,)),
    "forward": (execute_forward, ("all roles", "script writes the arguments")),
    "dialogues": (plan_dialogues, ("one",)),
    "probe": (probe, ("two rows",)),
}  # fmt: skip
"""Flows with their cases, by group."""
