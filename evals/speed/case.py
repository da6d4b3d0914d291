"""The paper's demonstration: file a report in a new folder, first wrongly, then correctly.

Seven tool calls in two attempts, with replies of fixed token counts, so that two implementations can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage

from gecko_graph import Toolkit, create_gecko
from gecko_graph.graph import Gecko
from gecko_graph.models.recorded import RecordedModel

TOOLS = Path(__file__).resolve().parents[2] / "examples" / "files" / "files.openapi.yaml"
TASK = (
    "Move 'final_report.pdf' within document directory to 'temp' directory in document. Make sure to create the "
    "directory."
)

REPLY_TOKENS: Mapping[str, int | Sequence[int]] = {
    "planner.call": 17,
    "planner.say": 40,
    "simulator": 40,
    "validator": 9,
    "checklist": 70,
    "bootstrapper": 64,
    "judge": [120, 60],
}

PLACE = "['workspace', 'contents', 'document', 'contents', 'temp']"

CHECKLIST = [
    {
        "id": "temp-in-document",
        "description": "document holds a directory named temp",
        "check": f"at(state.tree, {PLACE} + ['type'], '') == 'directory'",
    },
    {
        "id": "report-moved",
        "description": "final_report.pdf is in that directory",
        "check": f"'final_report.pdf' in at(state.tree, {PLACE} + ['contents'], {{}})",
    },
]

# The first attempt creates temp in the wrong place; its mv then renames the report to temp, which is no error of the
# tool\nand only the checklist finds. The task names every argument, so the validator is never asked: the case takes 20
# model\ncalls if a model simulates, and 9 if contracts simulate and checks judge.
PLANNER: list[list[dict[str, Any]]] = [
    [
        {"call": "mkdir", "args": {"dir_name": "temp"}},
        {"call": "cd", "args": {"folder": "document"}},
        {"call": "mv", "args": {"source": "final_report.pdf", "destination": "temp"}},
        {"say": "The report is in temp now."},
    ],
    [
        {"call": "cd", "args": {"folder": "document"}},
        {"call": "mkdir", "args": {"dir_name": "temp"}},
        {"call": "mv", "args": {"source": "final_report.pdf", "destination": "temp"}},
        {"call": "ls", "args": {}},
        {"say": "I made the directory temp inside document and moved final_report.pdf into it."},
    ],
]


def files_toolkit(*, contracts: bool) -> Toolkit:
    """Return BFCL's file system; without contracts a model has to simulate it."""
    toolkit = Toolkit.from_openapi(TOOLS)
    return toolkit if contracts else Toolkit([replace(tool, contract=None) for tool in toolkit])


def start_state(kilobytes: int, *, whole: bool) -> dict[str, Any]:
    """Return the task's world, padded to about this many kB; `whole` includes all runtime variables."""
    document = folder({"final_report.pdf": file("Final report"), "previous_report.pdf": file("Previous report")})
    contents = {"document": document, "archive": folder({})}
    text = "The quick brown fox jumps over the lazy dog. " * 10
    for number in range(max(0, kilobytes * 1000 - 400) // 500):
        shelf = contents.setdefault(f"shelf_{number // 40:03}", folder({}))
        shelf["contents"][f"note_{number:05}.txt"] = file(text[: 440 + number % 20])
    state: dict[str, Any] = {"tree": {"workspace": folder(contents)}, "cwd": ["workspace"]}
    return state if whole else {"tree": state["tree"]}


def folder(contents: dict[str, Any]) -> dict[str, Any]:
    return {"type": "directory", "contents": contents}


def file(content: str) -> dict[str, Any]:
    return {"type": "file", "content": content}


class CountedModel(RecordedModel):
    """Replies with the token counts of the case."""

    def _count(self, message: AIMessage, role: str, question: int) -> int:
        calls = len(message.tool_calls)
        kind = role if role != "planner" else "planner.call" if calls else "planner.say"
        given = REPLY_TOKENS.get(kind)
        if given is None:
            return super()._count(message, role, question)
        return (calls or 1) * (given if isinstance(given, int) else given[min(question, len(given) - 1)])


def recorded(*, simulator: Sequence[Any] = ()) -> RecordedModel:
    """Return a model with the replies of the case, in fixed token counts."""
    items = [{"description": item["description"]} for item in CHECKLIST]
    failed = {
        "items": [{"id": f"item-{n}", "status": "failed", "reason": "not so"} for n in (1, 2)],
        "feedback": "temp is elsewhere",
    }
    accepted = {"items": [{"id": f"item-{n}", "status": "success"} for n in (1, 2)]}
    turn = {
        "planner": PLANNER,
        "validator": [{"problems": []}] * 8,
        "simulator": list(simulator),
        "checklist": [{"items": items}],
        "bootstrapper": [{"domain": {}, "runtime_state": {"cwd": ["workspace"]}}],
        "judge": [failed, accepted],
        "state_updater": [{"patch": []}] * 8,
    }
    return CountedModel(turns=[turn])


def simulator_replies(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a simulator model's replies for a run that contracts have simulated."""
    return [
        {"status": step["outcome"]["status"], "result": step["outcome"]["result"], "patch": step["outcome"]["patch"]}
        for attempt in run["rehearsal"]["attempts"]
        for step in attempt["steps"]
    ]


def inputs(state: Mapping[str, Any], *, checks: bool) -> dict[str, Any]:
    """Return the graph's input; without checks the checklist is left to the model."""
    given: dict[str, Any] = {"messages": [("user", TASK)], "task_state": state}
    return given | ({"checklist": CHECKLIST} if checks else {})


def by_contract(model: RecordedModel) -> Gecko:
    return create_gecko(files_toolkit(contracts=True), model=model)


def by_model(*, kilobytes: int) -> Gecko:
    """Return the rehearsal whose tools a model simulates, with the same results as the contracts give."""
    run = by_contract(recorded()).invoke(inputs(start_state(kilobytes, whole=True), checks=True))
    model = recorded(simulator=simulator_replies(run))
    return create_gecko(files_toolkit(contracts=False), model=model)


class Swift(RecordedModel):
    """Replies what is recorded without reading the prompt: to read a long conversation is a model's time."""

    def _reply(self, messages: Any, run_manager: Any, kwargs: Mapping[str, Any]) -> Any:
        return super()._reply([], run_manager, {key: value for key, value in kwargs.items() if key != "tool_chars"})


def long_model(calls: int) -> Swift:
    names = [{"call": "touch", "args": {"file_name": f"file_{number}.txt"}} for number in range(calls)]
    return Swift(turns=[{"planner": [[*names, {"say": "done"}]], "validator": [{"problems": []}] * calls}])
