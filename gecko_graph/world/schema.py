"""The rung `schema`: a seeded generator, the last resort that needs neither model nor contract (paper, A.4)."""

from __future__ import annotations

import json

from ..schemas.made_up.maker import Impossible, make_value
from .rung import Answer, Pass, RungRequest, RungResult


def schema_rung(request: RungRequest) -> RungResult:
    """Answer any call: the same arguments get the same answer, in every process, whatever the state.

    A successful write leaves its change open (`patch` None): no rule knows it.
    """
    tool, args = request.tool, request.call["args"]
    key = f"{tool.name}\0{json.dumps(args, sort_keys=True, ensure_ascii=False)}"
    schema = {"const": {"status": "ok"}} if tool.result is None else tool.result
    try:
        result = make_value(schema, seed=request.context.seed, key=key, hints=args, subject=tool.name)
    except Impossible as reason:
        return Pass(f"no made-up result fits the result schema: {reason}")
    return Answer("ok", result, [] if tool.reads else None)
