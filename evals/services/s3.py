"""moto's S3, a third-party service: threads of random calls to learn from, others held out; states known only by reads.

It runs in a separate process, with the Python of `MOTO_PYTHON`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from gecko_graph import Tool, Toolkit
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.learning.observation import known_by_reads
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.state import CallStatus, Json, JsonObject
from gecko_graph.values.observation import Observation

from ..bfcl.fidelity import Recorded
from ..bfcl.learned import foreseen, tally

PYTHON = os.environ.get("MOTO_PYTHON", sys.executable)
CALLS = 40
"""Calls per thread."""
READS, ODD, LATEST, TRIES = 0.6, 0.1, 12, 20
"""Share of reads, share of unknown values, how many of the last known values are drawn from, tries of a draw."""
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
    """Return whether moto and boto3 are installed for `MOTO_PYTHON`."""
    command = [PYTHON, "-c", "import moto, boto3"]
    return Path(PYTHON).is_file() and not subprocess.run(command, capture_output=True, check=False).returncode


def learn_s3(seed: int, threads: int) -> JsonObject:
    """Learn from threads of calls, and return the predictions for the calls of a quarter as many other threads."""
    toolkit = Toolkit.from_tools(_tool(name, *about) for name, about in TOOLS.items()).with_contracts(
        {"contracts": SHOWN}
    )
    worker = [PYTHON, str(Path(__file__).with_name("moto_worker.py"))]
    with subprocess.Popen(worker, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={}) as process:
        assert process.stdin
        assert process.stdout
        said, heard = process.stdin, process.stdout

        def call(name: str, args: JsonObject) -> tuple[CallStatus, Json]:
            print(json.dumps([name, args]), file=said, flush=True)
            status, result = json.loads(heard.readline())
            return status, result

        def rows(thread: str) -> list[Observation]:
            print(file=said, flush=True)  # each thread starts without buckets
            return follow(Driver(toolkit, f"{seed}:{thread}", {key: [*some] for key, some in VALUES.items()}), call)

        known = [row for number in range(threads) for row in rows(f"learn {number}")]
        held = [row for number in range(threads // 4) for row in rows(f"held {number}")]
        said.close()
    begun = monotonic()
    learned = learn_contracts(toolkit, known)
    seconds, taught = monotonic() - begun, learned.apply(toolkit)
    judged = (row for row in held if toolkit[row.tool].contract is None)
    return {"rows": len(known), "seconds": seconds, **tally(foreseen(taught, recorded(row)) for row in judged)}


def recorded(row: Observation) -> Recorded:
    """Return a row as a recorded call of a class; without a change if the row knows of none."""
    before = row.before or {}
    after = row.after if row.after is not None else before
    raised = None if row.status == "ok" else str(row.result)
    return Recorded("service", row.tool, row.args, {"service": before}, {"service": after}, row.result, raised)


@dataclass
class Driver:
    """Draws calls that fit the documents: values met under the argument's name, sometimes unknown ones."""

    toolkit: Toolkit
    seed: str
    met: dict[str, list[Json]]

    def __post_init__(self) -> None:
        self._random = Random(self.seed)

    def draw(self) -> tuple[str, JsonObject]:
        for _ in range(TRIES):
            reads = self._random.random() < READS
            tool = self._random.choice([each for each in self.toolkit if each.reads == reads])
            args: Any = self._value(tool.parameters, "")
            if not find_complaints(tool, args):
                break
        return tool.name, args

    def meet(self, value: Json, name: str = "") -> None:
        """Remember the values of a result by the names of their members, and keys of objects as `id`."""
        if isinstance(value, dict):
            for key, each in value.items():
                self.meet(each, key)
                if isinstance(each, dict):
                    self.meet(key, "id")
        elif isinstance(value, list):
            for each in value:
                self.meet(each, name)
        elif value is not None:
            known = self.met.setdefault(name, [])
            self.met[name] = [*(each for each in known if each != value), value][-LATEST:]

    def _value(self, schema: Mapping[str, Any], name: str) -> Json:
        source = self._random
        if schema.get("type") == "object":
            needed, properties = schema.get("required", ()), schema.get("properties", {})
            kept = [key for key in properties if key in needed or source.random() < 0.5]
            return {key: self._value(properties[key], key) for key in kept}
        if met := [one for one in self.met.get(ALIKE.get(name, name), ()) if one]:
            one = str(source.choice(met))
            return one if source.random() > ODD else one[:-1] + source.choice("0X7")  # resembles an existing value
        return f"{name}-{source.randint(1, 99)}"


def follow(driver: Driver, call: Callable[[str, JsonObject], tuple[CallStatus, Json]]) -> list[Observation]:
    """Make a thread's calls, starting with reads without arguments; return rows that know what its reads have shown."""
    made: list[Observation] = []
    opening: list[tuple[str, JsonObject]] = [
        (tool.name, {}) for tool in driver.toolkit if tool.reads and not find_complaints(tool, {})
    ]
    for number in range(CALLS):
        name, args = opening[number] if number < len(opening) else driver.draw()
        status, result = call(name, args)
        if status == "ok":
            driver.meet(result)
        made.append(Observation(name, args, status, result, source=driver.seed))
    return list(known_by_reads(made, driver.toolkit))


def _tool(name: str, about: str, names: tuple[str, ...]) -> Any:
    properties = {key: {"type": "string"} for key in names}
    schema = {"type": "object", "properties": properties, "required": [*names]}
    function = {"name": name, "description": about, "parameters": schema}
    return Tool(function, effect="read" if name.startswith(("list", "get", "head")) else "write")
