"""`gecko-graph tools SPEC --state FILE`: every contract is tried on an example of the task state."""

import json
from pathlib import Path

import pytest

from gecko_graph import Toolkit
from gecko_graph.errors import ToolkitError
from gecko_graph.values.documents import read_document
from gecko_graph.world.trial import examine_contracts

ROOT = Path(__file__).parents[2]

STATES = {
    "shop": {
        "now": "2025-11-03T10:15:00Z",
        "customer": {"name": "Lena Brandt", "credit": 40.0},
        "products": {
            "MUG-1": {"name": "Mug", "price": 9.5, "stock": 6},
            "TEA-1": {"name": "Tea", "price": 6, "stock": 3},
        },
        "cart": {"TEA-1": {"name": "Tea", "quantity": 1, "amount": 6.2}},
        "orders": {
            "order-1": {
                "lines": {"MUG-1": {"name": "Mug", "quantity": 1, "amount": 14.5}},
                "total": 14.5, "status": "placed", "placed_at": "2025-11-01T10:15:00Z",
            }
        },
    },
    "calendar": {
        "now": "2025-10-06T09:00:00Z",
        "people": [{"name": "Dana Okafor", "email": "dana@example.org", "team": "Facilities"}],
        "events": {
            "event-1": {
                "title": "Stand-up", "date": "2025-10-14", "start": "09:30", "end": "09:45",
                "attendees": ["dana@example.org"],
            }
        },
    },
    "order": {
        "balance": 120.0,
        "items": {"MUG-1": {"name": "Mug", "price": 14.5, "stock": 6}},
        "orders": {"order-1": {"sku": "MUG-1", "quantity": 1, "total": 14.5, "refunded": 0, "status": "placed"}},
    },
    "files": {
        "cwd": ["workspace"],
        "tree": {
            "workspace": {
                "type": "directory",
                "contents": {
                    "documents": {"type": "directory", "contents": {}},
                    "report.txt": {"type": "file", "content": "b\na\n"},
                    "old.txt": {"type": "file", "content": "a\n"},
                },
            }
        },
    },
}  # fmt: skip

MISSPELT = [
    ("shop", "(product.price * args.quantity)", "(product.prise * args.quantity)"),
    ("shop", "selectattr('status', 'eq', 'placed') | map(attribute='total')", "selectattr('state', 'eq', 'placed')"),
    ("shop", "for_each: before.cart | items", "for_each: before.carts | items"),
    ("shop", "line.value.quantity }}", "line.value.quantiy }}"),
    ("shop", 'path: [customer, credit], value: "{{ (state', 'path: [customer, kredit], value: "{{ (state'),
    ("shop", "check: order.status == 'placed'", "check: order.staus == 'placed'"),
    ("shop", "result.order_id in state.orders, error", "result.orderid in state.orders, error"),
    ("shop", "map(attribute='stock') | select", "map(attribute='stok') | select"),
    ("shop", "and (args.max_price is none", "and (args.maxprice is none"),
    ("calendar", "event.value.start < args.end", "event.value.begin < args.end"),
    ("calendar", "state.people | map(attribute='email')", "state.people | map(attribute='mail')"),
    ("calendar", "args.name | lower in person.name", "args.name | lower in person.nmae"),
    ("calendar", "found | sort(attribute='start')", "found | sort(attribute='strat')"),
    ("calendar", "result.id in state.events", "result.id in state.event"),
    ("calendar", "not strangers", "not stranger"),
    ("order", "order.refunded == 0", "order.refundet == 0"),
    ("order", 'path: [items, "{{ order.sku }}", stock]', 'path: [items, "{{ order.sku }}", stocks]'),
    ("order", "args.status is none or order.value.status", "args.status is none or order.value.statuss"),
    ("files", "item.path | length is odd", "item.paths | length is odd"),
    ("files", "check: args.dir_name not in here", "check: args.dirname not in here"),
    ("files", 'path: [cwd, "-"]', 'path: [cdw, "-"]'),
]


def source(name):
    return ROOT / "examples" / name / f"{name}.openapi.yaml"


@pytest.mark.parametrize(("name", "right", "wrong"), MISSPELT, ids=[wrong for _, _, wrong in MISSPELT])
def test_each_of_21_misspelt_names_is_found(tmp_path, name, right, wrong):
    text = source(name).read_text()
    assert right in text
    file = tmp_path / "tools.yaml"
    file.write_text(text.replace(right, wrong, 1))
    try:
        found = examine_contracts(Toolkit.from_openapi(file), STATES[name]).found
    except ToolkitError as error:
        found = [str(error)]
    assert found


def test_there_are_21():
    assert len(MISSPELT) == 21


@pytest.mark.parametrize("name", STATES)
def test_nothing_is_found_in_what_is_right(name):
    examined = examine_contracts(Toolkit.from_openapi(source(name)), STATES[name])
    assert examined.found == []
    assert examined.unreached == []


def test_the_states_of_the_examples_are_enough_to_find_nothing_wrong():
    for name, case in [("shop", "order-within-credit"), ("calendar", "meet-dana"), ("order", "order-with-refund")]:
        state = read_document(source(name).with_name(f"{case}.yaml"))["state"]
        assert examine_contracts(Toolkit.from_openapi(source(name)), state).found == []


TOOL = {"name": "pay", "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}}


def examined(contract, state, **more):
    return examine_contracts(Toolkit.from_tools([TOOL], contracts={"pay": contract}, **more), state)


@pytest.mark.parametrize(
    ("contract", "line"),
    [
        ({"returns": "{{ state.odrers }}"}, "pay: returns: unknown key state.odrers (did you mean orders"),
        ({"returns": "{{ at(state.orders, [args.id]).sum }}"}, "pay: returns: unknown key at(...).sum"),
        ({"requires": [{"check": "1 / state.zero > 1", "error": "x"}]}, "pay: requires[0].check: division by zero"),
        ({"returns": "{{ state.many | map('int') }}"}, "pay: returns: int cannot read 'x'"),
        ({"ensures": [{"check": "1 / state.zero > 1", "error": "x"}], "returns": 1}, "pay: ensures[0].check: division"),
        ({"effects": [{"op": "test", "path": ["zero"], "value": 1}]}, "pay: effects[0]: the change does not apply"),
    ],
)
def test_what_cannot_be_evaluated_is_named_by_tool_and_part(contract, line):
    state = {"orders": {"a": {"total": 1}}, "zero": 0, "many": ["x"]}
    (found,) = examined(contract, state).found
    assert found.startswith(line)


def test_optional_keys_that_the_example_lacks_are_no_mistake():
    contract = {
        "requires": [{"check": "state.promotion is not defined or at(state, ['tax'], 0) == 0", "error": "x"}],
        "effects": [
            {"op": "add", "path": ["orders", "{{ args.id }}", "paid_at"], "value": 1, "when": "args.id in state.orders"}
        ],
        "returns": "{{ state.discount | default(0) }}",
    }
    assert examined(contract, {"orders": {"a": {"total": 1}}}).found == []
    misspelt = {"returns": "{{ state.discont | default(0) }}"}
    assert "did you mean discount" in examined(misspelt, {"discount": 1}).found[0]


def test_an_example_that_breaks_the_rules_is_named_and_what_was_never_run_too():
    contract = {"requires": [{"check": "false", "error": "x", "id": "never"}], "returns": 1}
    done = examined(contract, {"n": "x"}, invariants=[{"check": "state.m > 0", "error": "x"}])
    assert "invariants[0].check: state.m is undefined" in done.found[0]
    assert done.unreached == ["pay: refused by never"]


def test_on_the_command_line(tmp_path, run):
    spec, state = tmp_path / "tools.yaml", tmp_path / "state.json"
    spec.write_text(source("shop").read_text())
    state.write_text(json.dumps(STATES["shop"]))
    code, out, _ = run("tools", spec, "--state", state)
    assert code == 0
    assert "6 contracts tried on" in out
    spec.write_text(source("shop").read_text().replace("order.status ==", "order.staus =="))
    code, out, _ = run("tools", spec, "--state", state)
    assert code == 1
    assert "cancelOrder: requires[1].check: unknown key order.staus (did you mean status" in " ".join(out.split())
    state.write_text("[]")
    code, _, err = run("tools", spec, "--state", state)
    assert code != 0
    assert "expected an object, got list" in err
