"""A small world for the graph's tests: a desk with trays, simulated in Python."""

from __future__ import annotations

from gecko_graph import Models, Tool, Toolkit, create_gecko
from gecko_graph.models.recorded import RecordedModel


def add_tray(state: dict, name: str) -> dict:
    if name in state["trays"]:
        raise ValueError(f"tray {name} exists")
    state["trays"][name] = []
    return {"added": name}


def put(state: dict, tray: str, paper: str) -> dict:
    if tray not in state["trays"]:
        raise KeyError(f"no tray {tray}")
    state["trays"][tray].append(paper)
    return {"papers": len(state["trays"][tray])}


def look(state: dict) -> dict:
    return {"trays": state["trays"]}


TEXT = {"type": "string", "minLength": 1}


def function(name: str, description: str, *arguments: str) -> dict:
    properties = {argument: {**TEXT, "description": f"the {argument}"} for argument in arguments}
    parameters = {"type": "object", "properties": properties, "required": list(arguments)}
    return {"name": name, "description": description, "parameters": parameters}


FUNCTIONS = [
    function("add_tray", "Add an empty tray to the desk.", "name"),
    function("put", "Put a paper into a tray.", "tray", "paper"),
    function("look", "Look at all trays."),
]


def toolkit(**more) -> Toolkit:
    simulate = {"add_tray": add_tray, "put": put, "look": look} | more
    return Toolkit.from_tools(
        Tool(one, effect="read" if one["name"] == "look" else "write", simulate=simulate[one["name"]])
        for one in FUNCTIONS
    )


CHECKLIST = [
    {"id": "tray", "description": "there is a tray named bills", "check": "'bills' in state.trays"},
    {"id": "filed", "description": "the invoice is in it", "check": "'invoice' in at(state.trays, ['bills'], [])"},
]

WRONG = [
    {"call": "add_tray", "args": {"name": "bill"}},
    {"call": "put", "args": {"tray": "bill", "paper": "invoice"}},
    {"say": "Filed under bill."},
]
RIGHT = [
    {"call": "add_tray", "args": {"name": "bills"}},
    {"call": "put", "args": {"tray": "bills", "paper": "invoice"}},
    {"say": "The invoice is in bills."},
]


def start() -> dict:
    return {"trays": {"letters": ["from mum"]}, "runtime_state": {}}


def inputs(**more) -> dict:
    return {
        "messages": [("user", "File the invoice in a new tray called bills")],
        "task_state": start(),
        "checklist": CHECKLIST,
    } | more


def gecko(*attempts, tools=None, turns=None, **options):
    """The desk's rehearsal with these planner attempts; other roles have no model unless `turns` gives replies."""
    model = RecordedModel(turns=turns if turns is not None else [{"planner": list(attempts)}])
    roles = {role for turn in model.turns for role in turn}
    return create_gecko(tools or toolkit(), model=Models(**dict.fromkeys(roles, model)), **options)


def words(run):
    """The verdicts of a run's attempts."""
    return [attempt["verdict"]["status"] for attempt in run["rehearsal"]["attempts"]]


def print_paper(paper: str) -> str:
    """Print a paper."""
    return paper
