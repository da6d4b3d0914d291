"""Prompts as a model gets them: whole rehearsals with a model that writes down what it is told."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from pydantic import Field

from gecko_graph import Models, create_gecko
from gecko_graph.models.recorded import RecordedModel
from tests import desk


class Listener(RecordedModel):
    """A recorded model that keeps what each role was told."""

    heard: list[tuple[str, list[Any]]] = Field(default_factory=list)

    def _reply(self, messages, run_manager, kwargs):
        self.heard.append((run_manager.metadata["gecko_role"], list(messages)))
        return super()._reply(messages, run_manager, kwargs)

    def told(self, role):
        return [messages for who, messages in self.heard if who == role]

    def last(self, role):
        return self.told(role)[-1][-1].text


def listen(inputs, *, tools=None, context=None, **replies):
    model = Listener(turns=[replies])
    gecko = create_gecko(tools or desk.toolkit(), model=Models(**dict.fromkeys(replies, model)))
    return model, gecko.invoke(inputs, context=context)


HIDDEN = [
    {"id": "tray", "check": "'bills' in state.trays"},
    {"id": "deep", "check": "at(state.trays, ['bills', 0], '') == 'invoice' and state.trays.bills[0] == 'invoice'"},
]


def test_a_check_reaches_no_model_even_where_it_is_all_that_is_said_of_an_item():
    asked = {"items": [], "ask_user": False, "feedback": "it asked what it could have seen"}
    model, run = listen(
        desk.inputs(checklist=HIDDEN),
        planner=[[{"say": "Which tray do you mean?"}], desk.WRONG, desk.RIGHT],
        judge=[asked, asked, asked],
    )
    assert run["rehearsal"]["verdict"]["status"] == "accepted"
    assert len(model.told("judge")) == 1
    said = [message.text for _, messages in model.heard for message in messages]
    assert not [text for text in said if "state." in text or "at(" in text]
    retry = model.told("planner")[1][-1].text
    assert "- item tray: failed\n- item deep: failed\nit asked what it could have seen" in retry
    assert "(no calls)\nanswer: Which tray do you mean?" in retry


def test_what_a_role_is_told_first_never_changes():
    model, _ = listen(desk.inputs(), planner=[desk.WRONG, desk.RIGHT], validator=[{"problems": []}] * 5)
    for role in ("planner", "validator"):
        assert len({messages[0].text for messages in model.told(role)}) == 1
    asked = model.told("planner")
    for before, after in pairwise(asked[:3]):
        assert after[: len(before)] == before, "what was sent before is sent again, unchanged: providers cache it"
