"""Traffic with the order service of the examples, as a HAR file and as what it leaves in rows."""

import base64
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import httpx

from gecko_graph import Toolkit
from gecko_graph.scenario.examples import service_module
from gecko_graph.values.documents import read_document

OrderService = service_module()["OrderService"]

SPEC = Path(__file__).resolve().parents[2] / "examples" / "order" / "order.openapi.yaml"


def bare_spec() -> dict:
    """The service's document without contracts, as one has it at first."""
    document = read_document(SPEC)
    gecko = [key for key in document if key.startswith("x-")]
    for key in gecko:
        del document[key]
    for item in document["paths"].values():
        for one in item.values():
            one.pop("x-contract", None)
    return document


def entry(request: httpx.Request, response: httpx.Response, number: int = 0) -> dict:
    """One request and its answer as browsers write them."""
    body = request.read()
    made = {
        "startedDateTime": f"2026-11-23T10:{number // 60:02d}:{number % 60:02d}Z",
        "request": {"method": request.method, "url": str(httpx.URL(request.url)),
                    "headers": [{"name": name, "value": value} for name, value in request.headers.items()],
                    "cookies": []},
        "response": {"status": response.status_code,
                     "headers": [{"name": name, "value": value} for name, value in response.headers.items()],
                     "content": {"size": len(response.content), "mimeType": response.headers.get("content-type", "")}},
    }  # fmt: skip
    if body:
        made["request"]["postData"] = {"mimeType": request.headers["content-type"], "text": body.decode()}
    if number % 2:
        text = base64.b64encode(response.content).decode()
        made["response"]["content"] |= {"text": text, "encoding": "base64"}
    else:
        made["response"]["content"]["text"] = response.text
    return made


def make_calls(toolkit: Toolkit, count: int, *, seed: int = 0) -> None:
    """Call the service as its users do: mostly right, now and then wrong."""
    source, orders = Random(seed), ["A-9999"]
    for _ in range(count):
        sku = source.choice(["MUG", "TEA", "POT", "TIN", "CAN"])
        order = source.choice(orders[-6:])
        name, args = source.choice(
            [
                ("findItems", {"max_price": source.choice([5, 10, 50])}),
                ("showAccount", {}),
                ("showOrder", {"order_id": order}),
                ("placeOrder", {"sku": sku, "quantity": source.randint(1, 3)}),
                ("cancelOrder", {"order_id": order}),
            ]
        )
        answer = toolkit[name].real(**args)
        if name == "placeOrder" and isinstance(answer, dict):
            orders.append(answer["order_id"])


def shop(toolkit: Toolkit, count: int, *, seed: int = 0) -> None:
    """Shop so many times as people do: look, see what is left, order, think again."""
    source, orders = Random(seed), ["A-9999"]
    for _ in range(count):
        toolkit["findItems"].real()
        toolkit["showAccount"].real()
        sku = source.choice(["MUG", "TEA", "TEA", "POT", "TIN", "CAN", "JUG", "BOX"])
        answer = toolkit["placeOrder"].real(sku=sku, quantity=source.randint(1, 4))
        orders += [answer["order_id"]] if isinstance(answer, dict) else []
        if source.random() < 0.6:
            toolkit["cancelOrder"].real(order_id=source.choice(orders[-6:]))


HOST = "https://shop.example"


@cache
def files_to_learn_from() -> dict[str, str]:
    """What docs/learning.md begins with: a document without contracts, and what a browser has saved."""
    keep: list[str] = []
    text = json.dumps(har(100, keep=keep, users=shop)).replace(keep[0], HOST)
    return {"api.yaml": json.dumps({**bare_spec(), "servers": [{"url": HOST}]}), "traffic.har": text}


def har(count: int, *, seed: int = 0, keep: list | None = None, users: Callable[..., None] = make_calls) -> dict:
    """Return a HAR of so many calls, or of so many times that users do something."""
    entries: list[dict] = []

    def note(response: httpx.Response) -> None:
        response.read()
        entries.append(entry(response.request, response, len(entries)))

    with OrderService() as service, httpx.Client(event_hooks={"response": [note]}, trust_env=False) as client:
        toolkit = service.toolkit(client=client)
        users(toolkit, count, seed=seed)
        if keep is not None:
            keep.append(service.url)
    return {"log": {"version": "1.2", "creator": {"name": "test", "version": "1"}, "entries": entries}}


def write_har(path: Path, document: dict) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path
