"""A headless Chromium over its DevTools protocol, for pages of loopback: no other name resolves.

The program is the first of `NAMES` on the PATH (Debian's package `chromium`).
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--window-size=1200,800",
    "--remote-debugging-port=0", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip
PATIENCE_S = 60
FAINT = """(() => {
  const rgba = text => {
    const c = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    c.fillStyle = text; c.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = c.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
  };
  const over = (top, below) => top.slice(0, 3).map((x, i) => x * top[3] + below[i] * (1 - top[3]));
  const light = ([...rgb]) => rgb.map(x => x / 255).map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => e ? over(rgba(getComputedStyle(e).backgroundColor), behind(e.parentElement)) : [255, 255, 255];
  const found = document.documentElement.scrollWidth > innerWidth ? ["wider than " + innerWidth] : [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const e = node.parentElement;
    if (!node.data.trim() || !e.checkVisibility() || e.closest("style, script")) continue;
    const back = behind(e), [a, b] = [light(over(rgba(getComputedStyle(e).color), back)), light(back)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.push(contrast.toFixed(2) + " " + node.data.trim().slice(0, 40));
  }
  return found;
})()"""
"""Texts below the contrast of WCAG AA, and whether the page must be scrolled sideways."""


class Browser:
    """One page."""

    def __init__(self, folder):
        connect = pytest.importorskip("websockets.sync.client").connect
        program = next(filter(None, map(shutil.which, NAMES)), None)
        if program is None:
            pytest.skip(f"no browser: none of {', '.join(NAMES)} is on the PATH")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        self.process = subprocess.Popen([program, *OPTIONS, f"--user-data-dir={folder}"], **quiet)
        self.number, self.session, self.faults, self.stack = 0, {}, [], ExitStack()
        try:
            port, path = self._find_address(folder / "DevToolsActivePort")
            sock = socket.create_connection(("127.0.0.1", int(port)), PATIENCE_S)  # past a proxy of the environment
            self.socket = self.stack.enter_context(connect(f"ws://127.0.0.1:{port}{path}", max_size=None, sock=sock))
            target = self.ask("Target.createTarget", url="about:blank")["targetId"]
            attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
            self.session = {"sessionId": attached["sessionId"]}
            for domain in ("Page", "Runtime"):
                self.ask(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def _find_address(self, file):
        for _ in range(PATIENCE_S * 20):
            if file.exists() and len(lines := file.read_text().split()) == 2:
                return lines
            assert self.process.poll() is None, "the browser ended"
            time.sleep(0.05)
        raise AssertionError("the browser does not answer")

    def ask(self, method, **params):
        """Return what a command of the protocol comes to; faults of the page are kept meanwhile."""
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params, **self.session}))
        while True:
            told = json.loads(self.socket.recv(PATIENCE_S))
            if told.get("id") == self.number:
                assert "error" not in told, told
                return told["result"]
            if told["method"] == "Runtime.exceptionThrown":
                self.faults.append(told["params"])
            if told["method"] == "Page.javascriptDialogOpening":
                raise AssertionError(f"a dialog: {told['params']['message']}")

    def open(self, url):
        """Load a page."""
        assert "errorText" not in self.ask("Page.navigate", url=url)
        self.until("location.href !== 'about:blank' && document.readyState === 'complete'")

    def look(self, url, widths=(420, 1000, 1600), themes=("light", "dark")):
        """Return what cannot be read well, at each width in each theme, with everything unfolded."""
        found = []
        self.open(url)
        self.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        for theme in themes:
            self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
            for width in widths:
                size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
                self.ask("Emulation.setDeviceMetricsOverride", **size)
                self.until(f"innerWidth === {width} && matchMedia('(prefers-color-scheme: {theme})').matches")
                found += [(theme, width, each) for each in self.run(FAINT)]
        return found

    def run(self, expression):
        """Return the value of an expression of JavaScript in the page."""
        told = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def until(self, expression):
        """Wait until an expression is true, and return its value."""
        for _ in range(PATIENCE_S * 20):
            if value := self.run(expression):
                return value
            time.sleep(0.05)
        raise AssertionError(f"not so: {expression}; the page: {self.run('document.body.innerText')}")

    def click(self, element):
        """Press and release the mouse on an element, an expression of JavaScript, once nothing lies over it."""
        place = f"(() => {{ const e = {element}, b = e && e.getBoundingClientRect(); if (!b || !b.width) return null;"
        place += "const x = b.x + b.width / 2, y = b.y + b.height / 2;"
        place += "return document.elementFromPoint(x, y) === e ? {x, y} : null; })()"
        at = self.until(place)
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)

    def type(self, text):
        """Put a text in the place of all that the focused field holds."""
        self.run("document.activeElement.select()")
        self.ask("Input.insertText", text=text)

    def close(self):
        """End the browser."""
        self.stack.close()
        self.process.kill()
        self.process.wait(20)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser for the tests of a file."""
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()
