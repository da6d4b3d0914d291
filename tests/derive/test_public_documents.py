"""Things that are made by the operations of public documents are read, listed and removed again."""

import gzip
from collections import Counter, defaultdict

import pytest

from gecko_graph import Toolkit, World, derive_contracts
from gecko_graph.derive.paths import Paths
from gecko_graph.schemas.made_up import make_value
from gecko_graph.values.documents import parse_document

from .conftest import RULES


class Driver:
    """Makes one thing of each collection at the root of a document, and looks for it."""

    def __init__(self, document):
        tools = Toolkit.from_openapi(document)
        self.derived = derive_contracts(tools)
        self.toolkit = tools.with_contracts(self.derived.file)
        self.placed = {one.tool.name: one for one in Paths(tools).operations}
        self.found = Counter()
        self.by = defaultdict(dict)
        for name, kind in self.derived.kinds.items():
            if kind.things and name in self.derived.file["contracts"]:
                self.by[kind.things.root].setdefault(kind.word, name)

    def drive(self):
        for root, by in self.by.items():
            if "create" in by and not self.placed[by["create"]].variables:
                self.world = World(self.toolkit, state={key: {} for key in self.derived.made}, context=RULES)
                self.look(root, by)
        return self.found

    def look(self, root, by):
        made = self.call(by["create"])
        (key,) = self.world.state[root]
        assert made["status"] == "ok", made
        for word in ("read", "list", "update", "read", "remove", "read"):
            one = self.placed.get(by.get(word))
            if one is None or len(one.variables) != (word != "list"):
                continue
            if word == "list" and self.toolkit[by[word]].parameters.get("required"):
                continue  # a filter
            outcome = self.call(by[word], **dict.fromkeys(one.variables, key))
            gone = word == "read" and not self.world.state[root]
            assert outcome["status"] == ("error" if gone else "ok"), (word, outcome)
            assert word != "list" or key in str(outcome["result"]), (word, key, outcome)
            self.found["gone" if gone else word] += 1

    def call(self, name, /, **args):
        parameters = self.toolkit[name].parameters
        whole = make_value(parameters, seed=1, key=name)
        needed = {each: whole[each] for each in parameters.get("required", ())}
        numbers = {each for each in args if parameters["properties"][each].get("type") == "integer"}
        step = self.world.call(
            {"name": name, "args": needed | {k: int(v) if k in numbers else v for k, v in args.items()}}
        )
        assert "outcome" in step, step
        return step["outcome"]


@pytest.mark.parametrize(
    ("name", "least"), [("openai.yaml", 15), ("netlify.yml", 3), ("adyen_ManagementService-v3.json", 2)]
)
def test_a_thing_that_was_made_is_there_until_it_is_removed(shared_data, name, least):
    text = gzip.decompress((shared_data / "openapi_wild" / f"{name}.gz").read_bytes()).decode()
    found = Driver(parse_document(text, where=name)).drive()
    assert found["read"] >= least
    assert found["gone"] == found["remove"]
