"""Real calls beside what a document tells: what is known afterwards, what is drift, which rules come to refuse."""

from dataclasses import replace
from itertools import count

import pytest
from langchain.agents import create_agent

from gecko_graph import Toolkit, World
from gecko_graph.derive.contracts import add_derived
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.learning.observation import known_by_reads
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.real.learned import teach
from gecko_graph.testing import scripted
from gecko_graph.values.observation import Observation
from gecko_graph.world.rung import Answer

from . import documents
from .conftest import RULES
from .documents import FASTAPI, TEXT, TIME, WHOLE, op, thing

JOB = thing(["id", "title", "state", "version", "made"], id=TEXT, title=TEXT, state=TEXT, version=WHOLE, made=TIME)
SENT = thing(["title"], title=TEXT)
JOBS = documents.document(
    {
        "/jobs": {"get": op("jobs", gives=documents.many(JOB)), "post": op("make", body=SENT, gives=JOB)},
        "/jobs/{job}": {
            "get": op("job", gives=JOB),
            "patch": op("change", body=SENT, gives=JOB),
            "delete": op("drop", status="204"),
        },
        "/jobs/{job}/retry": {"post": op("retry")},
    }
)


class Service:
    """Jobs as the document has them, with what it does not tell: times, a version, a state that goes on by itself."""

    def __init__(self, *, forgives: bool = False) -> None:
        self.jobs, self.forgives, self.numbers = {}, forgives, count(1)

    def __call__(self, tool: str, args) -> tuple[str, object]:
        key = args.get("job")
        if tool == "jobs":
            return "ok", [*map(dict, self.jobs.values())]
        if tool == "make":
            number = next(self.numbers)
            key, made = f"j-{number}", f"2026-03-04T05:06:{number % 60:02}Z"
            self.jobs[key] = {"id": key, "title": args["title"], "state": "queued", "version": 1, "made": made}
        elif key not in self.jobs:
            return ("ok", None) if self.forgives and tool != "change" else ("error", {"detail": f"Job {key} not found"})
        if tool == "drop":
            self.jobs.pop(key)
            return "ok", None
        if tool == "change":
            self.jobs[key] |= {"title": args["title"], "version": self.jobs[key]["version"] + 1}
        shown = dict(self.jobs[key])
        self.jobs[key]["state"] = "done"
        return "ok", shown


def derived(document=JOBS):
    return add_derived(Toolkit.from_openapi(document))[0]


def runner(world, service):
    """Return a function that makes a call on the service, books it, and returns the result with the entry."""

    def run(tool, /, **args):
        status, result = service(tool, args)
        still = status == "error" or world.toolkit[tool].reads
        return result, world.record({"name": tool, "args": args}, Answer(status, result, [] if still else None))

    return run


def calls(service, rounds=12):
    """Return calls on the service: each job is made, changed, read, dropped, and asked for again."""
    done = list[tuple[str, dict]]()

    def make(tool, **args):
        status, result = service(tool, args)
        done.append((tool, args, status, result))
        return result

    for number in range(rounds):
        job = make("make", title=f"a{number}")["id"]
        make("job", job=job)
        make("change", job=job, title=f"b{number}")
        make("job", job=job)
        make("drop", job=job)
        for tool, more in (("job", {}), ("change", {"title": "c"}), ("drop", {})):
            make(tool, job=job, **more)
    return [Observation(tool, args, status, result, source="t") for tool, args, status, result in done]


def learned_of(service):
    toolkit = derived()
    return toolkit, learn_contracts(toolkit, known_by_reads(calls(service), toolkit))


def test_a_real_write_is_known_by_its_real_key_and_result():
    world = World(derived(), context=RULES)
    run = runner(world, Service())
    job, entry = run("make", title="a")
    assert (world.state["jobs"], entry["drift"]) == ({job["id"]: job}, [])
    changed, entry = run("change", job=job["id"], title="b")
    assert (world.state["jobs"], entry["drift"]) == ({job["id"]: changed}, [])
    assert run("drop", job=job["id"])[1]["drift"] == []
    assert world.state["jobs"] == {}
    assert world.call({"name": "job", "args": {"job": job["id"]}})["outcome"]["http"] == {"status": 404}
    assert world.call({"name": "job", "args": {"job": "other"}})["outcome"]["rung"] == "schema"  # nobody knows
    assert all(step["outcome"]["patch"] == [] for step in world.log if not step["outcome"]["simulated"])  # no evidence


def test_the_key_of_a_new_thing_is_the_real_one_also_if_the_answer_has_it_alone():
    bare = thing(["id"], id=TEXT)
    paths = {"/jobs": {"post": op("make", body=SENT, gives=bare)}, "/jobs/{job}": JOBS["paths"]["/jobs/{job}"]}
    world = World(derived(documents.document(paths)), context=RULES)
    world.record({"name": "make", "args": {"title": "a"}}, Answer("ok", {"id": "j-1"}, None))
    assert world.state["jobs"] == {"j-1": {"id": "j-1", "title": "a"}}
    world.record({"name": "make", "args": {"title": "b"}}, Answer("ok", None, None))  # it says nothing
    assert world.state["jobs"] == {"j-1": {}}  # it may have changed all
    world = World(derived(FASTAPI), context=RULES)
    pet = {"id": 7, "name": "a", "tag": None, "status": "new", "made_at": "2026-01-01T00:00:00Z"}
    world.record({"name": "create_pet", "args": {"name": "a"}}, Answer("ok", pet, None))
    asked = {"name": "read_visit", "args": {"pet_id": 7, "visit": "v"}}
    assert world.call(asked)["outcome"]["rung"] == "schema"  # nothing is said to be empty below it


def test_drift_is_what_was_sent_and_what_is_there():
    world, service = World(derived(), context=RULES), Service()
    run = runner(world, service)
    job, _ = run("make", title="a")
    other, _ = run("make", title="b")
    assert run("jobs")[1]["drift"] == []  # the state has gone on by itself
    service.jobs[job["id"]] |= {"title": "else", "made": "2027-01-01T00:00:00Z", "version": 9}
    drift = run("job", job=job["id"])[1]["drift"]
    assert [(one["kind"], one["path"]) for one in drift] == [("state", f"/jobs/{job['id']}/title")]
    del service.jobs[other["id"]]
    drift = run("jobs")[1]["drift"]
    assert [(one["kind"], one["path"]) for one in drift] == [("state", f"/jobs/{other['id']}")]
    assert world.call({"name": "job", "args": {"job": "x"}})["outcome"]["http"] == {"status": 404}
    forgetful = world.fork()  # a write of unknown effect forgets also what a list has shown whole
    forgetful.record({"name": "retry", "args": {"job": job["id"]}}, Answer("ok", None, None))
    assert forgetful.state["jobs"] == {job["id"]: {}}
    assert forgetful.call({"name": "job", "args": {"job": "x"}})["outcome"]["rung"] == "schema"
    service.jobs.clear()
    assert [one["kind"] for one in run("job", job=job["id"])[1]["drift"]] == ["status"]
    service.jobs[other["id"]] = other
    assert [one["kind"] for one in run("drop", job=other["id"])[1]["drift"]] == ["status"]


@pytest.mark.parametrize("forgives", [False, True])
def test_ten_real_refusals_let_a_rule_refuse_and_one_success_withdraws_it(forgives):
    toolkit = teach(derived())
    world, service = World(toolkit, context=RULES), Service(forgives=forgives)
    run = runner(world, service)
    for _ in range(10):
        job = run("make", title="a")[0]["id"]
        run("drop", job=job)
        assert world.check({"name": "drop", "args": {"job": job}}) is None
        run("drop", job=job)
        run("job", job=job)
    refused = world.check({"name": "drop", "args": {"job": job}})
    assert world.check({"name": "job", "args": {"job": job}}) is None  # a read is never refused
    again = world.fork().call({"name": "drop", "args": {"job": job}})["outcome"]
    if forgives:
        assert refused is None
        assert again["status"] == "ok", "what reality does not do, a simulation does not"
    else:
        assert refused["violations"][0]["evidence"]["by"] == "document"
        assert "by its document" in again["result"]
        service.forgives = True
        assert run("drop", job=job)[1]["refuted"] == ["exists_at(place)"]
        assert world.check({"name": "drop", "args": {"job": job}}) is None


def test_rows_establish_what_the_document_tells_or_withdraw_it():
    _, learned = learned_of(Service())
    rules = {name: learned.contracts[name]["requires"][0] for name in ("job", "change", "drop")}
    assert {name: (one["id"], one["evidence"]["status"]) for name, one in rules.items()} == dict.fromkeys(
        rules, ("job exists", "established")
    )
    assert rules["drop"]["evidence"]["for"] >= 10
    assert learned.contracts["change"]["evidence"]["sent"] == {"for": 24, "against": {}}  # the title and the key
    _, learned = learned_of(Service(forgives=True))
    (one,) = (each for each in learned.contracts["drop"]["requires"] if each.get("id") == "job exists")
    assert one["evidence"]["status"] == "refuted"
    assert one["evidence"]["against"]


def test_what_the_service_fills_takes_the_place_of_blanks():
    toolkit, learned = learned_of(Service())
    filled = {name: one["evidence"].get("filled", {}) for name, one in learned.contracts.items()}
    assert filled["make"]["/state"]["value"] == "queued"
    assert filled["change"]["/version"]["by"] == "counts"
    assert filled["job"]["/state"]["by"] == "changes"
    taught = toolkit.with_contracts({"contracts": {name: learned.contracts[name] for name in filled}})
    world = World(taught, state={"jobs": {}}, context=RULES.model_copy(update={"ladder": ("derived", "schema")}))

    def call(tool, /, **args):
        outcome = world.call({"name": tool, "args": args})["outcome"]
        return outcome["result"], outcome.get("filled", {}).get("places", {})

    job, blanks = call("make", title="a")
    assert (job["state"], job["version"], job["made"][:4]) == ("queued", 1, "2026")
    assert {"/state", "/version", "/made"} <= blanks.keys()  # it only looks real
    assert [call("change", job=job["id"], title=each)[0]["version"] for each in "bc"] == [2, 3]
    shown, blanks = call("job", job=job["id"])
    assert (shown["title"], shown["version"]) == ("c", 3)
    assert {"/state"} <= blanks.keys()


def test_a_guard_refuses_by_what_rows_have_established():
    toolkit, learned = learned_of(Service())
    service, sent = Service(), list[str]()

    def real(name):
        def run(**args):
            sent.append(name)
            return service(name, args)[1]

        return run

    tools = toolkit.replace(*(replace(tool, real=real(tool.name)) for tool in toolkit))
    calls = [("make", {"title": "a"}), ("drop", {"job": "j-1"}), ("drop", {"job": "j-1"}), ("drop", {"job": "other"})]
    script = [{"call": name, "args": args} for name, args in calls]
    guard = GeckoMiddleware(tools, mode="guard", learned={"contracts": learned.contracts})
    agent = create_agent(scripted(*script, {"say": "Done."}), tools=tools.as_tools(), middleware=[guard])
    told = [one for one in agent.invoke({"messages": [("user", "Go on.")]})["messages"] if one.type == "tool"]
    assert sent == ["make", "drop", "drop"]  # of the other nobody knows
    assert [one.status for one in told[:3]] == ["success", "success", "error"]
    assert "by its document, and 12 refusals" in told[2].text
