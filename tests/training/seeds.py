"""A model that plays every role of a dialogue by what it is shown, and spoils one thing if it is told to."""

import re
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from gecko_graph import Toolkit
from gecko_graph.models.recorded import RecordedModel, planner_message
from gecko_graph.training.dialogues import KINDS

FIND = "find_free_table"
BOOK = "book_free_table"


def _tool(name: str) -> dict[str, Any]:
    properties = {
        "place": {"type": "string", "description": "Name of the restaurant"},
        "guests": {"type": "integer", "description": "How many people"},
    }
    return {
        "name": name,
        "description": f"{name.replace('_', ' ').capitalize()} of a restaurant.",
        "parameters": {"type": "object", "properties": properties, "required": ["place", "guests"]},
        "result": {"type": "object", "properties": {"table": {"type": "string"}}, "required": ["table"]},
        "effect": "read",
        "errors": [],
    }


TOOLS = [_tool(FIND), _tool(BOOK)]


def toolkit() -> Toolkit:
    from gecko_graph.training.tool_writer import to_document

    return Toolkit.from_openapi(to_document("tables", TOOLS))


LINES = {
    "call": ["A table at Linde for 4, please"],
    "missing_argument": ["I need a table at Eiche", "We are 3 people at Eiche"],
    "no_tool": ["Sing me a song"],
    "several_calls": ["Tables at Linde for 5 and at Eiche for 7, please"],
    "correction": ["Make it 9 at Linde instead"],
}


class Player(RecordedModel):
    """Plays all roles; `spoil` names what goes wrong."""

    spoil: str = ""

    def _reply(self, messages: Any, run_manager: Any, kwargs: Any) -> AIMessage:
        role = str(((run_manager.metadata if run_manager else None) or {}).get("gecko_role", "planner"))
        text = "\n".join(str(each.content) for each in messages)
        made: Any = getattr(self, f"play_{role}")(messages, text)
        message = made if isinstance(made, AIMessage) else _as_message(made, kwargs.get("tools"))
        return self._counted(message, input_tokens=len(text) // 4, output_tokens=20)

    def play_dialogue_planner(self, messages: Any, text: str) -> Any:
        kinds = [line for line in str(messages[-1].content).splitlines() if line in KINDS]
        if self.spoil == "kinds":
            kinds = [*kinds, "call"]
        name = "fly_away" if self.spoil == "unknown tool" else FIND
        outlined = f"by {FIND}" if self.spoil == "named" else "for the family"
        turns = [
            {"kind": kind, "outline": f"{kind} {outlined}", "tools": [] if kind == "no_tool" else [name]}
            for kind in kinds
        ]
        state = {"deep": float("nan")} if self.spoil == "state" else {}
        return {"goal": "Eat out", "knows": ["Linde, Eiche"], "turns": turns, "state": state}

    def play_user(self, messages: Any, text: str) -> AIMessage:
        wished = re.findall(rf"^\d+\. ({'|'.join(KINDS)}) ", text, re.MULTILINE)
        lines = [line for kind in wished for line in LINES[kind]]
        said = sum(isinstance(each, AIMessage) for each in messages)
        if said >= len(lines) and self.spoil != "no end":
            return AIMessage("", tool_calls=[{"name": "end_conversation", "args": {}, "id": "end"}])
        return AIMessage(lines[min(said, len(lines) - 1)])

    def play_planner(self, messages: Any, text: str) -> AIMessage:
        if self.spoil == "silent":
            raise ValueError("no power")
        if isinstance(messages[-1], ToolMessage):
            return AIMessage("Here you are \ud83d" if self.spoil == "half" else "Here you are.")
        said = str(next(each.content for each in reversed(messages) if isinstance(each, HumanMessage)))
        pairs = [(place, int(guests)) for place, guests in re.findall(r"(Linde|Eiche) for (\d)", said)]
        pairs += [(place, int(guests)) for guests, place in re.findall(r"(\d) (?:people )?at (\w+)", said)]
        if self.spoil == "guessed" and "I need" in said:
            pairs = [("Eiche", 2)]
        if self.spoil == "one call":
            pairs = pairs[:1]
        if self.spoil == "no correction" and "instead" in said:
            return AIMessage("Fine.")
        if self.spoil == "sings" and "song" in said:
            pairs = [("Linde", 8)]
        if not pairs:
            return AIMessage("For how many people?" if "I need" in said else "I cannot do that.")
        name = BOOK if self.spoil == "other tool" else FIND
        calls = []
        for place, guests in pairs:
            count: Any = f"{guests} people" if self.spoil == "type" else guests
            calls.append({"call": name, "args": {"place": place, "guests": count}})
        return planner_message({"calls": calls}, prefix=f"c{len(messages)}")

    def play_label_judge(self, messages: Any, text: str) -> Any:
        return {"items": [{"id": "label", "status": "failed" if self.spoil == "judged" else "success"}]}


def _as_message(reply: Any, tools: Any) -> AIMessage:
    from gecko_graph.models.recorded import _role_message

    return _role_message(reply, tools)
