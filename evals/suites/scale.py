"""How the work scales, and what kills of workers, nodes, drivers and servers change."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from gecko_graph import Scenario, Tool, Toolkit, verify_samples
from gecko_graph.state import JsonObject
from gecko_graph.training import verify
from gecko_graph.training.tasks import save_tasks
from gecko_graph.values.mapping import Map, on_ray, processes

from ..harness.figures import Case, Record
from ..harness.options import ROOT
from ..harness.suite import Expectation, Suite, Summary
from ..services import many_servers

PHONE = ROOT / "examples" / "phone" / "cases"
WITHIN_RAY, WITHIN_MEMORY, SPEED_UP, WITHIN_SQLITE = 1.15, 1.2, 1.9, 1.5
ROUNDS = 3
"""Rounds in which each `map` verifies the rows: one run differs from the next by 4 %."""


class Given(NamedTuple):
    """The command's sizes, and a folder for files."""

    rows: int
    tasks: int
    kills: int
    memory: tuple[int, int]
    servers: many_servers.Size
    folder: Path


class Told(NamedTuple):
    """A line of a part's report; `holds` is None if it is no expectation."""

    text: str
    holds: bool | None = None


def take(item: str, count: int) -> dict[str, int]:
    """Take items from the shelf."""
    raise NotImplementedError


RULE = {"check": "state.shelf[args.item] >= args.count", "error": {"error": "not enough"}}
EFFECT = {"op": "replace", "path": ["shelf", "{{ args.item }}"], "value": "{{ state.shelf[args.item] - args.count }}"}
CONTRACT = {"requires": [RULE], "effects": [EFFECT], "returns": {"taken": "{{ args.count }}"}}
TOOLKIT = Toolkit.from_tools([Tool(take, effect="write", contract=CONTRACT)])


def write_rows(file: Path, count: int) -> Path:
    """Write rows; every third one is wrong."""
    shared = {"tools": TOOLKIT.as_openai(), "state": {"shelf": {"pen": 3}}}
    with file.open("w") as stream:
        for at in range(count):
            number = 9 if at % 3 == 0 else 2
            label = [{"name": "take", "arguments": {"item": "pen", "count": number}}]
            said = [{"role": "user", "content": f"{number} pens for room {at}"}]
            row = {"id": f"row-{at}", "messages": said, "label": label, "results": [{"taken": number}], **shared}
            stream.write(json.dumps(row) + "\n")
    return file


def mark(path: Path) -> str:
    """Return a digest of a file, or of all files of a folder."""
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    whole = hashlib.sha256()
    for each in files:
        whole.update(each.name.encode() + each.read_bytes())
    return whole.hexdigest() if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()


def cpu() -> float:
    """Return the processor seconds of this process and of its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def measure_same(given: Given) -> Iterator[Told]:
    """The same rows in the same order, and how fast from the first result on, since workers take time to start."""
    file, marks, walls = (
        write_rows(given.folder / "rows.jsonl", given.rows),
        set[str](),
        defaultdict[str, list[float]](list),
    )
    for name, find in [*ways().items()] * ROUNDS:
        begun, first, out = time.perf_counter(), list[float](), given.folder / f"{name}.jsonl"

        def tell(done: int, first: list[float] = first) -> None:
            if not first:
                first.append(time.perf_counter())

        verify_samples(file, out, toolkit=TOOLKIT, map=find(), tell=tell)
        walls[name].append(time.perf_counter() - first[0])
        marks.add(mark(out))
        out.unlink()
        rate, ready = given.rows / walls[name][-1], first[0] - begun
        yield Told(f"{name}: {rate:.0f} rows a second after {ready:.1f} s until the first result", len(marks) == 1)
    idle = os.cpu_count() or 1
    is_free = os.getloadavg()[0] < 2 * idle
    told = (
        f", medians of {ROUNDS}" if is_free else f" (no claim: loaded, {os.getloadavg()[0]:.1f} on {idle} processors)"
    )
    took = {name: median(each) for name, each in walls.items()}
    faster = took["map"] / took["processes"]
    yield Told(f"processes(2) is {faster:.2f} times map{told}", faster >= SPEED_UP if is_free else None)
    if "ray" in took:
        slower = took["ray"] / took["processes"]
        yield Told(f"Ray takes {slower:.2f} times processes(2){told}", slower <= WITHIN_RAY if is_free else None)


def ways() -> Mapping[str, Callable[[], Map]]:
    known: dict[str, Callable[[], Map]] = {"map": lambda: map, "processes": lambda: processes(2)}
    return known | ({"ray": lambda: on_ray(None, 2)} if find_spec("ray") else {})


def measure_kills(given: Given) -> Iterator[Told]:
    """Kill workers, drivers and nodes at random, and compare the bytes."""
    rng = random.Random(0)
    file = write_rows(given.folder / "rows.jsonl", given.rows)
    verify_samples(file, given.folder / "whole.jsonl", toolkit=TOOLKIT)
    whole = mark(given.folder / "whole.jsonl")
    out, killed, moments = given.folder / "workers.jsonl", 0, draw_moments(given, rng)

    def kill(done: int) -> None:
        nonlocal killed
        if moments and done >= moments[0] and (children := multiprocessing.active_children()):
            moments.pop(0)
            rng.choice(children).kill()
            killed += 1

    verify_samples(file, out, toolkit=TOOLKIT, map=processes(2), tell=kill)
    yield Told(f"{killed} of two workers killed: the same bytes", mark(out) == whole and killed == given.kills)
    out, killed = given.folder / "driver.jsonl", 0
    shard = max(1, given.rows // (5 * given.kills))
    while killed < given.kills and not out.exists():
        command = [sys.executable, "-m", "evals.suites.scale", str(file), str(out), str(shard)]
        driver = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        begun = count_shards(out)
        while count_shards(out) == begun and driver.poll() is None:
            time.sleep(0.05)
        time.sleep(rng.uniform(0, 0.3))
        driver.kill()
        killed += driver.wait() == -signal.SIGKILL
    subprocess.run([sys.executable, "-m", "evals.suites.scale", str(file), str(out), str(shard)], cwd=ROOT, check=True)
    told = f"the driver killed {killed} times, each time with a shard more: the same bytes"
    yield Told(told, mark(out) == whole and killed == given.kills)
    if find_spec("ray"):
        yield from kill_nodes(given, file, whole, rng)


def draw_moments(given: Given, rng: random.Random) -> list[int]:
    """Return numbers of rows after which something is killed: so many, one in each part of the rows."""
    part = given.rows // (given.kills + 1)
    return [number * part + rng.randrange(part) for number in range(given.kills)]


def count_shards(out: Path) -> int:
    return len([*Path(f"{out}.part").glob("part-*.jsonl")])


def kill_nodes(given: Given, file: Path, whole: str, rng: random.Random) -> Iterator[Told]:
    """Remove nodes from a cluster of two while it works, and add others."""
    import ray  # type: ignore[import-not-found, unused-ignore]
    from ray.cluster_utils import Cluster  # type: ignore[import-not-found, unused-ignore]

    ray.shutdown()
    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes, killed, out = [cluster.add_node(num_cpus=2)], 0, given.folder / "nodes.jsonl"
    ray.init(address=cluster.address, log_to_driver=False)
    how, go_on, waits = on_ray(None, 2, num_cpus=1), threading.Event(), threading.Event()
    moments = draw_moments(given, rng)

    def tell(done: int) -> None:
        if moments and done >= moments[0]:
            moments.pop(0)
            go_on.clear()
            waits.set()
            go_on.wait()

    more = {"toolkit": TOOLKIT, "map": how, "tell": tell}
    work = threading.Thread(target=verify_samples, args=(file, out), kwargs=more)
    work.start()
    while work.is_alive():
        if waits.wait(0.2):
            waits.clear()
            go_on.set()
            cluster.remove_node(nodes.pop(), allow_graceful=False)  # here: Ray sets signals, which only this thread may
            nodes.append(cluster.add_node(num_cpus=2))
            killed += 1
    ray.shutdown()
    cluster.shutdown()
    yield Told(f"{killed} nodes of Ray killed: the same bytes", mark(out) == whole and killed == given.kills)


def measure_memory(given: Given) -> Iterator[Told]:
    """Compare the driver's peak memory for few and for many rows."""
    peaks = []
    for count in given.memory:
        file = write_rows(given.folder / f"rows-{count}.jsonl", count)
        command = [sys.executable, "-m", "evals.suites.scale", str(file), str(given.folder / f"out-{count}.jsonl")]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        peaks.append(int(ran.stdout))
    few, many = given.memory
    told = f"the driver's peak at {few} rows {peaks[0] // 1024} MB, at {many} rows {peaks[1] // 1024} MB"
    yield Told(told, peaks[1] <= WITHIN_MEMORY * peaks[0])


def measure_tasks(given: Given) -> Iterator[Told]:
    """Tasks by one, two and four workers: of the phone, as a service of six tools has no 2,000 different ones."""
    cases, marks = [Scenario.load(file) for file in sorted(PHONE.glob("*.gecko.yaml"))], list[str]()
    tools, states = cases[0].tools, [each.state for each in cases]
    for count in (1, 2, 4):
        folder, used = given.folder / f"tasks-{count}", cpu()
        how = map if count == 1 else processes(count)
        save_tasks(folder, tools, states, given.tasks, tools="phone.openapi.yaml", map=how)
        marks.append(mark(folder))
        told = f"{given.tasks} tasks by {count}: {cpu() - used:.1f} s of processor time"
        yield Told(told, marks[-1] == marks[0])


def measure_servers(given: Given) -> Iterator[Told]:
    """Kill servers on one Postgres while clients call them; compare a call's cost with one server on SQLite."""
    found = many_servers.measure(given.servers)
    words = ("answered", "lost", "doubled", "torn", "killed")
    told = ", ".join(f"{found[each]} {each}" for each in words)
    yield Told(told, not any(found[each] for each in ("lost", "doubled", "torn")))
    one, kept, dealt = (found["cpu_ms"][name] for name in ("sqlite", "postgres", "dealt"))
    told = f"processor time a call: {one:.2f} ms by one server on SQLite; by several on Postgres {kept:.2f} ms"
    yield Told(f"{told}, {kept / one:.2f} times, with clients that stay at a server", kept / one <= WITHIN_SQLITE)
    yield Told(f"{dealt:.2f} ms, {dealt / one:.2f} times, if each call goes to a random server")


PARTS: Mapping[str, Callable[[Given], Iterator[Told]]] = {
    "same": measure_same, "kills": measure_kills, "memory": measure_memory, "tasks": measure_tasks,
    "servers": measure_servers,
}  # fmt: skip


class Scale(Suite):
    """Rows by `map`, processes and Ray; workers, nodes and drivers killed; memory; tasks; servers on Postgres.

    Ray needs its own environment (`pip install '.[ray]'`); without it the parts that need Ray are left out.
    """

    name = "scale"
    asks = False
    planner = None
    at_once = 1
    examples = ("--only servers", "--only same,kills --rows 5000 --kills 3")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--rows", type=int, default=50_000, metavar="N", help="rows that are verified (50000)")
        add("--tasks", type=int, default=2_000, metavar="N", help="tasks that are made (2000)")
        add("--kills", type=int, default=20, metavar="N", help="kills of each kind (20)")
        add("--memory", default="10000,1000000", metavar="N,N", help="rows whose memory is compared")
        add("--sessions", type=int, default=500, metavar="N", help="sessions of the servers (500)")
        add("--calls", type=int, default=20_000, metavar="N", help="calls that are made of them (20000)")

    def cases(self) -> Iterator[Case]:
        yield from (Case(name, measure) for name, measure in PARTS.items())

    async def run_case(self, case: Case) -> JsonObject:  # async, because Ray needs the main thread
        own = self.options.own
        few, many = map(int, own.memory.split(","))
        servers = many_servers.Size(own.sessions, own.calls)
        with tempfile.TemporaryDirectory() as folder:
            given = Given(own.rows, own.tasks, own.kills, (few, many), servers, Path(folder))
            return {"told": [[*each] for each in case.data(given)]}

    def summarise(self, records: Sequence[Record]) -> Summary:
        told = [(f"{one.id}: {text}", holds) for one in records if one.done for text, holds in one.values["told"]]
        expected = [Expectation(text, holds) for text, holds in told if holds is not None]
        return Summary([], expected, [text for text, holds in told if holds is None])


SUITE = Scale

if __name__ == "__main__":  # a separate driver: verifies a file with two processes, and prints its peak memory in KB
    verify.SHARD = int(sys.argv[3]) if len(sys.argv) > 3 else verify.SHARD
    verify_samples(sys.argv[1], sys.argv[2], toolkit=TOOLKIT, map=processes(2))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
