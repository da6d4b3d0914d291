"""moto's S3, which nobody here wrote: in a process of its own, whose Python `MOTO_PYTHON` names; by reads alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from gecko_graph import Tool, Toolkit
from gecko_graph.state import CallStatus, Json, JsonObject
from gecko_graph.values.observation import Observation

from .local import CALLS, split
from .threads import Driver, Service, follow

PYTHON = os.environ.get("MOTO_PYTHON", sys.executable)
VALUES: dict[str, list[Json]] = {
    "Bucket": ["photos", "letters", "backups", "x"],
    "Key": ["a.txt", "b.txt", "c/d.txt", "e"],
    "Body": ["hello", "bye", ""],
}
ALIKE = {"SourceBucket": "Bucket", "SourceKey": "Key"}
TOOLS = {
    "create_bucket": ("Create a bucket.", ("Bucket",)),
    "delete_bucket": ("Delete a bucket.", ("Bucket",)),
    "list_buckets": ("List the buckets.", ()),
    "list_objects_v2": ("List a bucket's objects.", ("Bucket",)),
    "put_object": ("Store an object.", ("Bucket", "Key", "Body")),
    "get_object": ("Return an object.", ("Bucket", "Key")),
    "head_object": ("Return what is known of an object.", ("Bucket", "Key")),
    "delete_object": ("Delete an object.", ("Bucket", "Key")),
    "copy_object": ("Copy an object.", ("Bucket", "Key", "SourceBucket", "SourceKey")),
}
LISTED = "{{ {one.Name: one for one in at(result, ['Buckets'], [])} }}"
OBJECTS = "{{ {one.Key: one for one in at(result, ['Contents'], [])} }}"
SHOWN: JsonObject = {
    "list_buckets": {"observes": [{"op": "add", "path": ["buckets"], "value": LISTED}]},
    "list_objects_v2": {"observes": [{"op": "add", "path": ["objects", "{{ args.Bucket }}"], "value": OBJECTS}]},
}


def is_there() -> bool:
    """Return whether moto and boto3 are installed where `MOTO_PYTHON` says."""
    command = [PYTHON, "-c", "import moto, boto3"]
    return Path(PYTHON).is_file() and not subprocess.run(command, capture_output=True, check=False).returncode


def s3(seed: int, threads: int) -> Service:
    """Return S3: each thread begins with none of its buckets."""
    tools = (_tool(name, *about) for name, about in TOOLS.items())
    toolkit = Toolkit.from_tools(tools).with_contracts({"contracts": SHOWN})
    worker = [PYTHON, str(Path(__file__).with_name("moto_worker.py"))]
    process = subprocess.Popen(worker, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={})  # ends with us
    assert process.stdin
    assert process.stdout
    said, heard = process.stdin, process.stdout

    def call(name: str, args: JsonObject) -> tuple[CallStatus, Json]:
        print(json.dumps([name, args]), file=said, flush=True)
        status, result = json.loads(heard.readline())
        return status, result

    def rows(thread: str) -> list[Observation]:
        print(file=said, flush=True)
        driver = Driver(toolkit, f"{seed}:{thread}", {key: [*some] for key, some in VALUES.items()}, ALIKE)
        return follow(driver, CALLS, call)

    return Service(toolkit, rows, *split(threads))


def _tool(name: str, about: str, names: tuple[str, ...]) -> Any:
    properties = {key: {"type": "string"} for key in names}
    schema = {"type": "object", "properties": properties, "required": [*names]}
    function = {"name": name, "description": about, "parameters": schema}
    return Tool(function, effect="read" if name.startswith(("list", "get", "head")) else "write")
