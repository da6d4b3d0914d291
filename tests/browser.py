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


@pytest.fixture
def browser(tmp_path_factory):
    """A browser of its own for a test."""
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()
