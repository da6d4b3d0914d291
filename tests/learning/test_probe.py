"""Probing a sandbox: a bounded number of calls, which find kinds of refusal that no row had shown."""

import json

from gecko_graph import Toolkit
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.learning.probe import probe
from gecko_graph.learning.readers import read_file
from gecko_graph.values.observation import BadRows
from tests.learning.traffic import OrderService, bare_spec, har, write_har


def sandbox(service) -> Toolkit:
    return Toolkit.from_openapi(bare_spec(), server=service.url, auth={"ApiKey": service.key})


def lawful_rows(toolkit, tmp_path):
    """Traffic in which nothing was refused."""
    keep = []
    document = har(80, keep=keep)
    file = write_har(tmp_path / "a.har", json.loads(json.dumps(document).replace(keep[0], "http://shop.test")))
    rows = read_file(file, BadRows(), Toolkit.from_openapi({**bare_spec(), "servers": [{"url": "http://shop.test"}]}))
    return [row for row in rows if row.status == "ok"]


def test_probes_meet_refusals_that_were_never_seen(tmp_path):
    told = []
    with OrderService() as service:
        toolkit = sandbox(service)
        rows = lawful_rows(toolkit, tmp_path)
        learned = learn_contracts(toolkit, rows)
        found = probe(toolkit, learned, limit=60, progress=lambda *words: told.append(words))
        assert len(service.log()) > 0
    assert len(found) == 60
    assert [number for _, number, _ in told] == list(range(1, 61))
    assert {row.source for row in found} == {"probe"}
    after = learn_contracts(toolkit, [*rows, *found])
    kinds = {name: set(one["evidence"]["refusals"]) for name, one in after.contracts.items()}
    assert any("there is no item" in kind for kind in kinds["placeOrder"])
    assert any("there is no order" in kind for kind in kinds["showOrder"])


def test_without_rows_the_document_alone_is_probed_and_a_call_whose_effect_is_unknown_is_no_row():
    with OrderService(faults=["500 after"] * 50) as service:
        toolkit = sandbox(service)
        found = probe(toolkit, learn_contracts(toolkit, []), limit=20)
    assert found
    assert all(toolkit[row.tool].reads for row in found)
