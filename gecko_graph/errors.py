"""The errors of the package: a user's mistakes, and failures inside a run.

```
GeckoError              a user's mistake; the message names the problem, its place, and what to do
├── ToolkitError        a source of tools cannot be read: names the document and the place in it
│   └── ContractError   a contract or an expression in it cannot be loaded: file, tool and place
├── ScenarioError       a scenario file is missing or wrong
├── StateError          a task state that is not JSON
├── TaskError           nothing to do: no messages, an empty task
├── InDoubt             a real call whose effect is unknown: it was sent, and no usable answer came
├── NotMade             a real call that was not sent: no connection, a missing credential, no graph around it
└── ModelError          an unknown model, a missing key
    └── NoReply         a model's server that refuses the key, the address or the name

Refused                 raised by a tool itself: it has done nothing, and this is its error result

RunFailure              something inside a run did not work; a node turns it into data, no user sees it raised
├── PatchConflict       a JSON Patch that does not apply; the document is untouched
└── EvaluationFailed    an expression or contract that cannot be evaluated on this state, or went over its limits
```
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from .masking import mask


class _Masked(Exception):
    """An error whose texts are masked, because a checkpoint stores an error's arguments."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(mask(arg) if isinstance(arg, str) else arg for arg in args))


class GeckoError(_Masked, ValueError):
    """A user's mistake. The message names the problem, its place, and what to do.

    A ValueError, because a LangGraph server reports all other errors as "An internal error occurred".
    """


class ToolkitError(GeckoError):
    """A source of tools that cannot be read."""


class ContractError(ToolkitError):
    """A contract, or an expression in one, that cannot be loaded."""


class ScenarioError(GeckoError):
    """A scenario that is missing, broken or incomplete."""


class StateError(GeckoError):
    """A task state that is not a JSON document."""


class TaskError(GeckoError):
    """A run without a task."""


class InDoubt(GeckoError):
    """A real call that was sent and may have taken effect: look it up before it is sent again."""


class NotMade(GeckoError):
    """A real call that was certainly not made: a requirement is missing."""


class ModelError(GeckoError):
    """A model that cannot be built: unknown provider, missing key, missing package."""


class NoReply(ModelError):
    """A model whose server refuses every question: a wrong key, address or name. The run can be resumed."""


class Refused(_Masked):
    """A tool's own word that a call has done nothing: `raise Refused("no such account")`, or any JSON value.

    It becomes the call's error result. Whatever else a write raises leaves open whether it took effect.
    """


class RunFailure(_Masked):
    """Something inside a run that did not work. Nodes turn it into data."""


class PatchConflict(RunFailure):
    """A JSON Patch that does not apply. The document it was meant for is untouched."""


class EvaluationFailed(RunFailure):
    """An expression or contract that cannot be evaluated, or that went over its limits."""


class NotKnown(EvaluationFailed):
    """A contract that says of a call that it does not know, by `pass`: another rung answers."""


class NotRead(NotKnown):
    """An expression needs a part of the state that only reads show, and none has been made."""


def did_you_mean(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    near = get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f" (did you mean {near[0]}?)" if near else ""


def install(extra: str) -> str:
    """Return how an extra is installed: the package is on no index."""
    return f"pip install '.[{extra}]' in a checkout of gecko-graph"
