"""One contract as written, loaded and called: `opened` and `change` take the state that a test module gives them."""

from __future__ import annotations

from gecko_graph.contracts.contract import Contract
from gecko_graph.contracts.run import ContractRun
from gecko_graph.values.documents import parse_document
from gecko_graph.values.patch import apply_patch


def load(data, lets=None) -> Contract:
    data = parse_document(data, where="f.yaml") if isinstance(data, str) else data
    return Contract.load(data, lets=lets, where="f.yaml: tool t")


def opened(data, lets=None, *, state, parameters=None, now=None, seed=0, **args) -> ContractRun:
    contract = data if isinstance(data, Contract) else load(data, lets)
    call = {"id": "c1", "name": "t", "args": args}
    return contract.open(args=args, parameters=parameters or {}, state=state, call=call, now=now, seed=seed)


def effect(**operation) -> dict:
    return {"effects": [operation]}


def change(effects, *, state, **more):
    """The state after these effects."""
    return apply_patch(state, opened({"effects": effects}, state=state, **more).answer().patch)
