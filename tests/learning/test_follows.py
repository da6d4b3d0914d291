"""What a service does beside its document: learned from rows, simulated, withdrawn by one contradiction."""

import pickle
from copy import deepcopy

import pytest

from gecko_graph import Toolkit, World
from gecko_graph.cli import main
from gecko_graph.derive.contracts import add_derived
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.real.learned import teach
from gecko_graph.values.documents import format_document, parse_document
from gecko_graph.values.observation import Observation
from gecko_graph.world.rung import Answer
from tests.derive.conftest import RULES
from tests.learning.shop import write_rows

from . import projects
from .projects import Projects

NAMES = ("projects.boards by their paths", "tasks by project_id")


def learn(*services, **more):
    return learn_contracts(projects.toolkit(), projects.rows(*services, **more)).contracts


def follows(contracts, tool):
    found = contracts[tool]["evidence"].get("follows", ())
    return {one["id"]: (one["evidence"]["status"], one["evidence"]["for"]) for one in found}


def taken(contracts):
    return next((one for one in contracts["begin"]["requires"] if one.get("id") == "title must be new"), None)


def taught(contracts, **state):
    return World(teach(projects.toolkit(), {"contracts": contracts}), context=RULES, **state)


def call(world, tool, /, **args):
    return world.call({"name": tool, "args": args})["outcome"]


def really(world, service, tool, /, **args):
    status, result = service(tool, args)
    still = status == "error" or world.toolkit[tool].reads
    return result, world.record({"name": tool, "args": args}, Answer(status, result, [] if still else None))


@pytest.fixture(scope="module")
def learned():
    return learn(Projects())


def test_rows_establish_what_goes_what_comes_and_what_must_be_new(learned):
    assert follows(learned, "end") == {"tasks by project_id": ("established", 12)}
    assert follows(learned, "begin") == dict.fromkeys(NAMES, ("established", 11))  # reads of one are of another world
    rule = taken(learned)["evidence"]
    assert (rule["status"], rule["for"], rule["against"], rule["by"]) == ("established", 24, [], "rows")
    others = {tool: kinds for tool in learned if tool not in ("begin", "end") and (kinds := follows(learned, tool))}
    assert others == {}


def test_rows_that_contradict_withdraw_it_and_few_only_propose():
    contracts = learn(Projects(), Projects(keeps=True, bare=True, twice=True))
    assert follows(contracts, "end") == {"tasks by project_id": ("refuted", 12)}
    assert {status for status, _ in follows(contracts, "begin").values()} == {"refuted"}
    assert taken(contracts) is None
    assert {status for status, _ in follows(learn(Projects(), rounds=5), "begin").values()} == {"proposed"}
    assert follows(learn(Projects(keeps=True)), "end") == {}


def test_a_simulation_does_what_the_service_does(learned):
    world = taught(learned, state={"projects": {}, "tasks": {}, "notes": {}, "projects.boards": {}})
    key = call(world, "begin", title="a", owner="ann")["result"]["id"]
    assert call(world, "board", project=key, name="main")["result"] == {"name": "main", "style": "kanban"}
    listed = call(world, "tasks", project_id=key)
    assert [(one["kind"], one["project_id"]) for one in listed["result"]] == [("welcome", key)]
    assert "the service may have changed it" in str(listed["filled"])  # nobody knows its key
    assert call(world, "begin", title="a", owner="bob")["status"] == "error"
    tasks = [call(world, "add", project_id=key, kind="own")["result"]["id"] for _ in range(2)]
    note = call(world, "note", project_id=key)["result"]["id"]
    call(world, "end", project=key)
    assert [call(world, "task", task=one)["status"] for one in tasks] == ["error"] * 2
    assert (call(world, "tasks")["result"], call(world, "one_note", note=note)["status"]) == ([], "ok")
    assert "end may have changed it" in str(call(world, "one_note", note=note)["filled"])


def test_what_goes_in_reality_is_known_to_be_gone(learned):
    world, service = taught(learned), Projects()
    key = really(world, service, "begin", title="a", owner="ann")[0]["id"]
    tasks = [really(world, service, "add", project_id=key, kind="own")[0]["id"] for _ in range(2)]
    really(world, service, "end", project=key)
    assert [call(world, "task", task=one)["http"] for one in tasks] == [{"status": 404}] * 2
    for one in tasks:
        assert really(world, service, "task", task=one)[1]["drift"] == []
    key = really(world, service, "begin", title="a", owner="ann")[0]["id"]
    result, entry = really(world, service, "begin", title="a", owner="bob")
    assert ("exists" in result["detail"], entry["drift"]) == (True, [])
    assert world.check({"name": "begin", "args": {"title": "a", "owner": "cy"}})["violations"]


@pytest.mark.parametrize("different", [{"keeps": True}, {"bare": True}])
def test_one_real_read_withdraws_what_it_contradicts(learned, different):
    world, service = taught(learned), Projects(**different)
    key = really(world, service, "begin", title="a", owner="ann")[0]["id"]
    really(world, service, "boards", project=key)
    task = really(world, service, "add", project_id=key, kind="own")[0]["id"]
    really(world, service, "end", project=key)
    really(world, service, "task", task=task)
    left = {name: [*world.toolkit[name].contract.follows] for name in ("begin", "end")}
    if different == {"keeps": True}:
        assert left == {"begin": [*NAMES], "end": []}
        assert [one["status"] for one in world.toolkit["end"].lessons.items.values()] == ["refuted"]
    else:
        assert left == {"begin": [NAMES[1]], "end": [NAMES[1]]}
    again = pickle.loads(pickle.dumps(world.toolkit["end"].contract))
    assert [*again.follows] == left["end"]
    other = really(world, service, "begin", title="b", owner="ann")[0]["id"]
    task = really(world, service, "add", project_id=other, kind="own")[0]["id"]
    call(world, "end", project=other)
    assert call(world, "task", task=task)["status"] == ("ok" if different == {"keeps": True} else "error")


def test_no_rule_of_what_must_be_new_where_the_number_of_things_may_be_the_reason():
    rows = list[Observation]()
    for number in range(12):
        there = {"id": f"p-{number}", "title": f"a{number}", "owner": "ann"}
        args = {"title": f"a{number}", "owner": "ann"}
        rows.append(Observation("begin", args, "ok", there, before={"projects": {}}))
        rows.append(
            Observation("begin", args, "error", {"detail": "full"}, before={"projects": {f"p-{number}": there}})
        )
    made = learn_contracts(projects.toolkit(), rows).contracts["begin"]["requires"]
    assert [one["evidence"]["status"] for one in made if one.get("id") == "title and owner must be new"] == ["proposed"]


class Hostile(Projects):
    """The service, whose texts and names of members would be expressions."""

    def _new(self, there, letter, **fields):
        return super()._new(there, letter, **fields, **{"{{ 7*7 }}": "{{ 7*7 }}", "for_each": "range(9)"})

    def _begin(self, title, owner):
        made = super()._begin(title, owner)
        return "{{ args }} is taken" if isinstance(made, str) else made


def test_texts_and_names_of_results_are_never_evaluated():
    contracts = learn(Hostile())
    assert taken(contracts)["evidence"]["status"] == "established"
    world = taught(contracts, state={"projects": {}, "tasks": {}, "notes": {}, "projects.boards": {}})
    key = call(world, "begin", title="a", owner="ann")["result"]["id"]
    (task,) = world.state["tasks"].values()
    assert task == {"{{ 7*7 }}": "{{ 7*7 }}", "for_each": "range(9)", "kind": "welcome", "project_id": key}
    again = call(world, "begin", title="a", owner="ann")["result"]
    assert "{{ args }} is taken" in again


def test_the_command_writes_what_follows_and_tells_it(tmp_path, capsys):
    document, rows, target = (tmp_path / name for name in ("api.json", "rows.jsonl", "api.contracts.yaml"))
    document.write_text(format_document(projects.DOCUMENT, ".json"), encoding="utf-8")
    write_rows(rows, projects.rows(Projects()))
    assert main(["learn", str(document), str(rows), "-o", str(target)]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "established: also changes tasks by project_id" in told
    assert "established: lawful if title must be new" in told
    made = Toolkit.from_openapi(document).with_contracts(target)["end"].contract
    assert [*made.follows] == ["tasks by project_id"]


def test_a_documented_refusal_of_a_second_name_is_established_by_rows_too():
    said = deepcopy(projects.DOCUMENT)
    said["paths"]["/projects"]["post"]["responses"]["409"] = {"description": "taken"}
    text = format_document(said, ".json").replace('"title"', '"name"')
    document = parse_document(text, where="projects.json")
    toolkit, rows = add_derived(Toolkit.from_openapi(document))[0], list[Observation]()
    for row in projects.rows(Projects()):
        renamed = format_document({"row": row.to_row(masked=False)}, ".json").replace('"title"', '"name"')
        rows.append(Observation.from_row(parse_document(renamed, where="rows.json")["row"]))
    made = learn_contracts(toolkit, rows).contracts["begin"]["requires"]
    rules = {one["id"]: one["evidence"]["status"] for one in made if "evidence" in one}
    assert rules["name must be new"] == "established"
    assert "project is new" not in rules  # by the document, which only proposes it


def test_a_real_removal_leaves_open_only_what_names_the_removed_thing():
    world, service = World(projects.toolkit(), context=RULES), Projects()
    one, other = (really(world, service, "begin", title=each, owner="ann")[0]["id"] for each in "ab")
    notes = [really(world, service, "note", project_id=each)[0]["id"] for each in (one, other)]
    really(world, service, "end", project=one)
    shown = [call(world, "one_note", note=each) for each in notes]
    assert [each["result"]["project_id"] for each in shown] == [one, other]  # known, as no list has shown them
    assert ["end may have changed it" in str(each.get("filled")) for each in shown] == [True, False]
