"""Draws the pictures of this folder from pages of today, in Chromium: `python docs/images/draw.py`."""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import httpx
from langchain_core.runnables import RunnableLambda

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from gecko_graph.testing import scripted  # noqa: E402
from gecko_graph.values.documents import read_document  # noqa: E402
from tests.browser import Browser  # noqa: E402

WIDTH = 1040
PETS = """
openapi: 3.1.0
info: {title: A small pet store, version: "1"}
components: {schemas: {Pet: {type: object, required: [id, name], properties: {
  id: {type: integer}, name: {type: string}, tag: {type: string}}}}}
paths:
  /pets:
    get: {operationId: listPets, parameters: [{name: tag, in: query, schema: {type: string}}], responses: {"200": {
      description: pets, content: {application/json: {schema: {type: array, items: {$ref: "#/components/schemas/Pet"}}}}}}}
    post: {operationId: createPet, requestBody: {content: {application/json: {schema: {type: object, properties: {
      name: {type: string}, tag: {type: string}}}}}}, responses: {"201": {
      description: made, content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}}}}
  /pets/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
    get: {operationId: readPet, responses: {"200": {
      description: it, content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}}, "404": {description: none}}}
    delete: {operationId: deletePet, responses: {"204": {description: gone}}}
"""
REQUESTS = (
    ("POST", "", {"name": "Flo", "tag": "cat"}), ("POST", "", {"name": "Rex", "tag": "dog"}), ("GET", "?tag=cat", None),
    ("DELETE", "/1", None), ("GET", "/1", None), ("GET", "/one", None), ("GET", "/2", None),
)  # fmt: skip
HELD: Counter[str] = Counter()


def flaky(tools: object) -> object:
    """A good agent of examples/library, whose second trial is a bad one."""

    def reply(values: dict) -> object:
        opening = values["messages"][0].text
        for case in ROOT.glob("examples/library/*.gecko.yaml"):
            if read_document(case)["user"]["opening"] == opening:
                does = read_document(case.parent / "agents" / case.name.replace(".gecko", ""))
                HELD[opening] += len(values["messages"]) == 1
                return scripted(*(next(each["does"] for each in does["bad"] if "does" in each) if HELD[opening] == 2 else does["good"]))
        raise LookupError(opening)

    return RunnableLambda(reply)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "gecko_graph", *words]


def shoot(browser: Browser, name: str, url: str, height: int, *, ready: str = "true", then: str = "0") -> None:
    size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.ask("Emulation.setDeviceMetricsOverride", **size)
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    browser.open(url)
    browser.until(ready)
    browser.run(then)
    picture = base64.b64decode(browser.ask("Page.captureScreenshot", format="png", optimizeForSpeed=False)["data"])
    (HERE / f"{name}.png").write_bytes(picture)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for example, name in (("files", "run"), ("order", "question")):
            subprocess.run(command("demo", example, "--html", f"{work}/{name}.html"), cwd=ROOT, stdin=subprocess.DEVNULL)
        agent = ("--agent", "draw:flaky", "--html", f"{work}/report.html", "--trials", "2")
        subprocess.run(command("test", "examples/library", *agent), cwd=ROOT, env={"PYTHONPATH": f"{HERE}:{ROOT}"})
        (work / "pets.yaml").write_text(PETS, "utf-8")
        server = subprocess.Popen(command("serve", str(work / "pets.yaml"), "--port", "0"), cwd=ROOT, stderr=subprocess.PIPE, text=True)
        browser = Browser(work)
        try:
            url = next(line.split(" tools at ")[1].split()[0] for line in server.stderr or () if " tools at " in line)
            for method, path, body in REQUESTS:
                httpx.request(method, f"{url}/pets{path}", json=body)
            shoot(browser, "serve", f"{url}/_gecko/", 720, ready=f"document.querySelectorAll('.call').length === {len(REQUESTS)}",
                  then="document.querySelector('.call').open = true")  # fmt: skip
            for name, height in (("run", 860), ("question", 760), ("report", 1000)):
                shoot(browser, name, (work / f"{name}.html").as_uri(), height)
        finally:
            browser.close()
            server.kill()


if __name__ == "__main__":
    main()
