"""Draws the pictures of this folder in Chromium: `python docs/images/draw.py`."""

import base64
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
from langchain.agents import create_agent
from langchain_core.runnables import RunnableLambda

HERE, ROOT = Path(__file__).resolve().parent, Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from gecko_graph.testing import scripted  # noqa: E402
from gecko_graph.values.documents import read_document  # noqa: E402
from tests.browser import Browser  # noqa: E402

GECKO = [sys.executable, "-m", "gecko_graph"]
SHOP = "examples/shop/cancel-the-mug.gecko.yaml"
REQUESTS = (
    ("GET", "/products", None), ("PUT", "/cart/TEA-100", {"quantity": 2}), ("PUT", "/cart/TEA-100", {"quantity": "x"}),
    ("POST", "/orders/order-9/cancellation", None), ("POST", "/orders/order-2/cancellation", None),
)  # fmt: skip
HELD: Counter[str] = Counter()


def flaky(tools: Any) -> Any:
    """Return a good agent of examples/library, whose second trial of a case is a bad one."""

    def reply(values: Any) -> Any:
        opening = values["messages"][0].text
        cases = {read_document(file)["user"]["opening"]: file for file in ROOT.glob("examples/library/*.gecko.yaml")}
        does = read_document(cases[opening].parent / "agents" / cases[opening].name.replace(".gecko", ""))
        HELD[opening] += len(values["messages"]) == 1
        bad = next(each["does"] for each in does["bad"][1:] if "does" in each)
        return create_agent(scripted(*(bad if HELD[opening] == 2 else does["good"])), tools)

    return RunnableLambda(reply)


def shoot(browser: Browser, name: str, url: str, height: int, *, ready: str = "true", then: str = "0") -> None:
    """Draw the upper part of a page."""
    size = {"width": 1040, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.ask("Emulation.setDeviceMetricsOverride", **size)
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    browser.open(url)
    browser.until(ready)
    browser.run(then)
    (HERE / f"{name}.png").write_bytes(base64.b64decode(browser.ask("Page.captureScreenshot", format="png")["data"]))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        test = ["test", "examples/library", "--agent", "draw:flaky", "--trials", "2"]
        for name, words in (("run", ["demo", "files"]), ("question", ["demo", "order"]), ("report", test)):
            environment = {**os.environ, "PYTHONPATH": f"{HERE}:{ROOT}"}
            given = [*GECKO, *words, "--html", f"{folder}/{name}.html"]
            subprocess.run(given, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        served = [*GECKO, "serve", "--scenario", SHOP, "--port", "0"]
        server = subprocess.Popen(served, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        browser = Browser(Path(folder))
        try:
            url = next(line.split(" tools at ")[1].split()[0] for line in server.stderr or () if " tools at " in line)
            for method, path, body in REQUESTS:
                httpx.request(method, url + path, json=body)
            ready = f"document.querySelectorAll('.call').length === {len(REQUESTS)}"
            shoot(
                browser, "serve", f"{url}/_gecko/", 720, ready=ready, then="document.querySelector('summary').click()"
            )
            for name, height in (("run", 860), ("question", 760), ("report", 1000)):
                shoot(browser, name, Path(folder, f"{name}.html").as_uri(), height)
        finally:
            browser.close()
            server.kill()
