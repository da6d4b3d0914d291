"""Whether a tool may be called at all, before its arguments are known (ToolGate, equations 9 and 16).

Three values: a requirement that holds or not, or one that cannot be evaluated in this state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, NoReturn, TypeAlias

from ..errors import EvaluationFailed, NotKnown
from .clauses import Clause
from .language.expression import Scope
from .language.sandbox import Fault
from .lets import Lets, find_used_lets

NEEDS_CALL = frozenset(("args", "call"))
FAILED = "a condition of this tool does not hold"

Word: TypeAlias = Literal["yes", "no", "unknown"]


class Admissibility(NamedTuple):
    """Whether a tool may be called in a state, and why not: its own error, or what cannot be evaluated."""

    word: Word
    reason: str = ""


def find_free(requires: Iterable[Clause], lets: Lets) -> list[Clause]:
    """Return the requirements that need neither the arguments nor the call, also not through their lets."""
    refusing = (clause for clause in requires if not clause.passes)
    return [clause for clause in refusing if not NEEDS_CALL & _find_names(clause, lets)]


def _find_names(clause: Clause, lets: Lets) -> set[str]:
    used = find_used_lets(clause.condition, lets)
    return {name for each in clause.condition for name in each.names}.union(
        *(expression.names for let in used for expression in lets[let].expressions)
    )


def judge_clauses(free: Sequence[Clause], begin: Callable[[], Scope], *, where: str) -> Admissibility:
    """Return whether all of them hold; one that fails outweighs one that cannot be evaluated.

    Args:
        free: Requirements without arguments.
        begin: Returns the scope anew, with its budgets of time and memory.
        where: Document and tool, left out of the reasons.
    """
    unknown: list[str] = []
    for clause in free:
        try:
            if clause.fails(scope := begin()):
                return Admissibility("no", _explain(clause, scope))
        except NotKnown:
            continue
        except EvaluationFailed as failure:
            unknown.append(str(failure).removeprefix(f"{where}: "))
    return Admissibility("unknown", "; ".join(unknown[:3])) if unknown else Admissibility("yes")


def _explain(clause: Clause, scope: Scope) -> str:
    """Return the requirement's error; a plain sentence where the error names arguments."""
    try:
        return clause.error_text(scope)
    except EvaluationFailed:
        return FAILED


def refuse_identity() -> NoReturn:
    """Take the place of a call's identity, of which there is none yet. Raises Fault."""
    raise Fault("it depends on the call")
