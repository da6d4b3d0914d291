"""Files with one mistake each, as a newcomer makes them."""

from pathlib import Path

CASE = "version: 1\nname: case\ntools: api.yaml\nstate: {}\nturns: [{user: Hi%s}]\n"
ITEM = ", checklist: [{description: a pen, check: %s}]"
API = """openapi: 3.1.0
info: {title: Pens, version: "1"}
paths:
  /pens:
    get: {operationId: listPens, description: List pens.%s responses: {"200": {description: it}}}
"""
FILES = {
    "api.yaml": API % ",",
    "broken.yaml": "a: [1\n",
    "bytes.yaml": b"\xff\xfe\x00a",
    "check.yaml": CASE % ITEM % "'state.'",
    "contract.yaml": API % ', x-contract: {requires: [{check: "state.", error: no}]},',
    "empty.yaml": "",
    "half.json": "{",
    "key.yaml": CASE % ", chekclist: []",
    "knob.yaml": CASE % "" + "limits: {max_retry: 1}\n",
    "later.yaml": "version: 9\nname: case\n",
    "missing.yaml": CASE.replace("api.yaml", "gone.yaml") % "",
    "notools.yaml": "version: 1\nname: case\nturns: [{user: Hi}]\n",
    "outside.yaml": CASE.replace("api.yaml", "../api.yaml") % "",
    "refused.yaml": CASE % (ITEM % "defined(state.pen)" + ", replies: {planner: [[{say: No.}]]}"),
    "swagger.yaml": "swagger: '1.2'\ninfo: {title: Pens, version: '1'}\npaths: {}\n",
    "twice.yaml": "a: 1\na: 2\n",
    "unrecorded.yaml": CASE % ITEM % "defined(state.pen)",
}


def write_bad_files(folder: Path) -> None:
    """Write them all to a folder."""
    for name, content in FILES.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
