"""Images, sounds and files in results: the planner sees them, everything else a reference."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from gecko_graph import GeckoContext, Models, Tool, Toolkit, create_gecko
from gecko_graph.display.page import html_page
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.values import media
from gecko_graph.values.media import set_media_aside, show_media
from tests.agents import call, make_agent, thread

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"pixels" * 40).decode()
SIZE = len(base64.b64decode(PNG))
DIGEST = "sha256:" + hashlib.sha256(base64.b64decode(PNG)).hexdigest()
IMAGE = {"type": "image", "base64": PNG, "mime_type": "image/png"}
REFERENCE = {"type": "image", "mime_type": "image/png", "bytes": SIZE, "digest": DIGEST}
NOWHERE = PNG[20:60]

SHAPES: list[tuple[dict[str, Any], str, str]] = [
    (IMAGE, "image", "image/png"),
    ({"type": "image", "source_type": "base64", "data": PNG, "mime_type": "image/png"}, "image", "image/png"),
    ({"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": PNG}}, "image", "image/jpeg"),
    ({"type": "image", "url": f"data:image/png;base64,{PNG}"}, "image", "image/png"),
    ({"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}}, "audio", "audio/wav"),
    ({"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PNG}"}}, "file",
     "application/pdf"),
    ({"type": "video", "base64": PNG, "mime_type": "video/mp4"}, "video", "video/mp4"),
    ({"type": "image", "data": PNG, "mimeType": "image/png"}, "image", "image/png"),
    ({"type": "resource", "resource": {"uri": "file:///a", "blob": PNG}}, "file", "application/octet-stream"),
]  # fmt: skip


@pytest.mark.parametrize(("block", "kind", "mime"), SHAPES)
@pytest.mark.parametrize("place", [lambda each: each, lambda each: {"shot": ["text", each]}])
def test_the_blocks_of_every_provider_are_set_aside_and_shown_as_they_were(block, kind, mime, place):
    found = set_media_aside(place(block))
    assert NOWHERE not in json.dumps(found)
    (reference,) = media.list_references(found)
    expected = {"type": kind, "mime_type": mime, "bytes": SIZE, "digest": DIGEST}
    assert {key: reference[key] for key in expected} == expected
    (shown,) = show_media(found)
    is_mcp = "mimeType" in block or "resource" in block
    assert shown == ({"type": kind, "base64": PNG, "mime_type": mime} if is_mcp else block)
    assert set_media_aside(found) == found, "a reference stays one"


def test_names_stay_and_what_a_text_claims_to_be_a_reference_shows_nothing():
    found = set_media_aside({"type": "resource", "resource": {"uri": "file:///a.png", "blob": PNG, "title": "A"}})
    assert (found["uri"], found["title"]) == ("file:///a.png", "A")
    assert show_media({"type": "image", "mime_type": "image/png", "bytes": 1, "digest": "sha256:" + "0" * 64}) == []
    assert show_media({"mime_type": "image/png", "digest": ["x"]}) == []


@pytest.mark.parametrize("value", [
    {"type": "image", "url": "https://example.com/a.png", "mime_type": "image/png"},
    {"type": "file", "name": "a.txt", "data": "note"},
    {"type": "image", "data": "no base64!", "mimeType": "image/png"},
    {"type": "text", "text": PNG},
    {"type": "resource", "resource": {"uri": "file:///a", "text": "a", "mimeType": "text/plain"}},
    {"type": ["image"], "data": PNG}, {"data": PNG, "mime_type": "image/png"},
    {"type": "image", "source_type": "base64", "data": {}, "mime_type": []},
    {"type": "image", "url": "data:text"}, [1, None, "image", {"a": {"type": 3}}],
])  # fmt: skip
def test_what_holds_no_bytes_stays_as_it_is(value):
    assert set_media_aside(value) == value
    assert show_media(value) == []


def test_what_is_too_large_is_left_out_and_what_is_old_is_let_go(monkeypatch):
    monkeypatch.setattr(media, "MOST_BYTES", 100)
    large = set_media_aside(IMAGE | {"base64": base64.b64encode(b"q" * 200).decode()})
    assert "larger than 100 bytes" in large["left_out"]
    assert show_media(large) == []
    monkeypatch.setattr(media, "KEPT_BYTES", 250)
    kept = [set_media_aside(IMAGE | {"base64": base64.b64encode(bytes([n]) * 90).decode()}) for n in range(4)]
    assert [len(show_media(each)) for each in kept] == [0, 0, 1, 1]
    monkeypatch.setattr(media, "MOST_SHOWN", 1)
    assert len(show_media(kept)) == 1


def photo(room: str) -> list[dict]:
    """Return a photo of a room."""
    return [{"type": "text", "text": f"The {room}:"}, IMAGE]


def paint(room: str) -> dict:
    """Paint a room."""
    return {"done": True}


class Seeing(RecordedModel):
    """Keeps what each role is asked."""

    seen: Any

    def _reply(self, messages, run_manager, kwargs):
        self.seen.append((run_manager.metadata["gecko_role"], json.dumps([m.content for m in messages]), messages))
        return super()._reply(messages, run_manager, kwargs)


PLAN = [call("photo", room="kitchen"), call("paint", room="kitchen"), {"say": "Painted."}]
TASK: Any = {"messages": [("user", "Look at the kitchen and paint it")], "task_state": {"rooms": ["kitchen"]}}


def rooms(**more: Any) -> Toolkit:
    painting = Tool(paint, effect="write", simulate=lambda state, room: {"done": True})
    return Toolkit.from_tools([Tool(photo, effect="read", **more), painting])


def seeing(**roles: Any) -> tuple[Seeing, Models]:
    model = Seeing(turns=[roles], seen=[])
    return model, Models(**dict.fromkeys(roles, model))


def test_a_real_image_reaches_the_planner_unchanged_and_nobody_else():
    judged = {"items": [{"id": "item-1", "status": "success"}]}
    roles: Any = {"checklist": [{"items": [{"description": "painted"}]}], "validator": [{"problems": []}] * 4}
    model, models = seeing(planner=[PLAN], judge=[judged], **roles)
    run = create_gecko(rooms().open("photo"), model=models).invoke(TASK)
    planner = [messages for role, _, messages in model.seen if role == "planner"]
    (told,) = [message for message in planner[1] if isinstance(message, ToolMessage)]
    assert IMAGE in told.content
    assert "The kitchen:" in told.text
    assert DIGEST in told.text
    others = [text for role, text, _ in model.seen if role != "planner"]
    assert others
    assert not any(NOWHERE in text for text in others)
    step = run["rehearsal"]["attempts"][0]["steps"][0]
    assert step["outcome"]["result"] == [{"type": "text", "text": "The kitchen:"}, REFERENCE]
    assert NOWHERE not in json.dumps({key: value for key, value in run.items() if key != "messages"})
    assert NOWHERE not in str(run["messages"])
    page = html_page(run)
    assert f'<img src="data:image/png;base64,{PNG}"' in page
    assert page.count("<img") == 1
    assert "img-src data:" in page, "its policy lets the picture in, and nothing else"


def test_an_agent_s_real_call_keeps_a_reference():
    agent = make_agent(rooms(simulate=lambda state, room: "?"), PLAN)
    out = agent.invoke(TASK | {"checklist": [{"check": "calls"}]}, thread())
    assert out["execution"]["calls"][0]["result"] == [{"type": "text", "text": "The kitchen:"}, REFERENCE]
    assert NOWHERE not in str(out)
    assert "<img" in html_page(out)


def test_a_page_of_another_process_names_what_it_does_not_have(monkeypatch):
    _, models = seeing(planner=[PLAN])
    run = create_gecko(rooms().open("photo"), model=models, context=GeckoContext(max_retries=0)).invoke(TASK)
    monkeypatch.setattr(media, "_KEPT", type(media._KEPT)())
    page = html_page(run)
    assert "<img" not in page
    assert "image/png" in page
    assert f"{SIZE} bytes" in page


def test_an_image_that_a_model_makes_up_is_a_named_placeholder():
    known = {"type": "image", "name": "kitchen.png"}
    made = {"status": "ok", "result": [{**known, "data": "iVBOR…", "mimeType": "image/png"}]}
    _, models = seeing(planner=[PLAN], simulator=[made] * 3)
    run = create_gecko(rooms(), model=models, context=GeckoContext(max_retries=0)).invoke(TASK)
    (found,) = run["rehearsal"]["attempts"][0]["steps"][0]["outcome"]["result"]
    assert found == {**known, "mime_type": "image/png", "placeholder": "a simulated image"}
    page = html_page(run)
    assert "<img" not in page
    assert "a simulated image" in page


def test_the_toolkit_s_own_tools_give_an_agent_the_block():
    shown = next(each for each in rooms().as_tools() if each.name == "photo")
    message = shown.invoke({"type": "tool_call", "id": "1", "name": "photo", "args": {"room": "hall"}})
    assert IMAGE in message.content
    assert message.artifact == {"structured_content": [{"type": "text", "text": "The hall:"}, REFERENCE]}


def look(room: str) -> ToolMessage:
    """Look at a room."""
    content: Any = [{"type": "text", "text": '{"light": true}'}, IMAGE]
    return ToolMessage(content, tool_call_id="", artifact={"structured_content": {"light": True}})


def test_an_image_beside_structured_content_reaches_the_planner_too():
    toolkit = Toolkit.from_tools([Tool(look, effect="read")]).open("look")
    model, models = seeing(planner=[[call("look", room="hall"), {"say": "It is light."}]])
    run = create_gecko(toolkit, model=models, context=GeckoContext(max_retries=0)).invoke(TASK)
    outcome = run["rehearsal"]["attempts"][0]["steps"][0]["outcome"]
    assert (outcome["result"], outcome["media"]) == ({"light": True}, [REFERENCE])
    assert IMAGE in next(m for m in model.seen[-1][2] if isinstance(m, ToolMessage)).content
    assert "<img" in html_page(run)
    assert IMAGE in toolkit.as_tools()[0].invoke({"room": "hall"})


def test_a_client_of_the_mcp_face_is_given_the_block():
    mcp = pytest.importorskip("gecko_graph.serve.mcp", reason="the extras `mcp` and `serve` are not installed")
    text, image = mcp._result(set_media_aside([{"type": "file", "base64": PNG, "mime_type": "image/png"}])).content
    assert json.loads(text.text) == [REFERENCE]
    assert (image.type, image.data, image.mime_type) == ("image", PNG, "image/png")
    file = mcp._result(set_media_aside({"type": "file", "base64": PNG, "mime_type": "application/pdf"})).content[1]
    assert (file.type, file.resource.blob) == ("resource", PNG)


def test_a_person_s_picture_is_for_the_planner_alone():
    judged = {"items": [{"id": "item-1", "status": "success"}]}
    roles: Any = {"checklist": [{"items": [{"description": "painted"}]}], "judge": [judged], "simulator": [
        {"status": "ok", "result": []}] * 2, "validator": [{"problems": []}] * 4}  # fmt: skip
    model, models = seeing(planner=[PLAN], **roles)
    said = [{"type": "text", "text": "Look at the kitchen and paint it like this"}, IMAGE]
    create_gecko(rooms(), model=models).invoke({**TASK, "messages": [("user", said)]})
    asked = {role: any(NOWHERE in text for who, text, _ in model.seen if who == role) for role, *_ in model.seen}
    assert asked.pop("planner")
    assert asked.keys() == {"checklist", "simulator", "judge"}
    assert not any(asked.values())


def test_a_run_that_goes_on_elsewhere_has_the_picture_in_its_checkpoints(monkeypatch):
    def ask(state: dict, room: str) -> dict:
        return {"done": interrupt("May I?")}

    toolkit = Toolkit.from_tools([Tool(photo, effect="read"), Tool(paint, effect="write", simulate=ask)]).open("photo")
    model, models = seeing(planner=[PLAN])
    gecko = create_gecko(toolkit, model=models, context=GeckoContext(max_retries=0), checkpointer=InMemorySaver())
    gecko.invoke(TASK, thread())
    monkeypatch.setattr(media, "_KEPT", type(media._KEPT)())
    gecko.invoke(Command(resume=True), thread())
    told = [message for message in model.seen[-1][2] if isinstance(message, ToolMessage)]
    assert IMAGE in told[0].content
    assert told[1].text == '{"done": true}'
