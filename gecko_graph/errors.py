"""The errors of the package: mistakes of the user, and failures inside a run.

```
GeckoError              a mistake of the user; the message names the problem, its place, and the remedy
├── ToolkitError        a source of tools cannot be read: names the document and the place in it
│   └── ContractError   a contract or an expression in it cannot be loaded: file, tool and place
├── ScenarioError       a scenario file is missing or invalid
├── StateError          a task state is not JSON
├── TaskError           no messages, or an empty task
├── InDoubt             a real call with unknown effect: it was sent, and no usable answer came
├── NotMade             a real call was not sent: no connection, a missing credential, no graph around it
└── ModelError          an unknown model, a missing key
    └── NoReply         a model's server refuses the key, the address or the name

Refused                 raised by a tool: it has done nothing, and this is its error result

RunFailure              a failure inside a run; a node turns it into data, users never see it raised
├── PatchConflict       a JSON Patch does not apply; the document is unchanged
└── EvaluationFailed    an expression or contract cannot be evaluated on this state, or exceeded its limits
```
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from .masking import mask


class _Masked(Exception):
    """An error whose messages are masked, because checkpoints store an error's arguments."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(mask(arg) if isinstance(arg, str) else arg for arg in args))


class GeckoError(_Masked, ValueError):
    """A mistake of the user. The message names the problem, its place, and the remedy.

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
    """A run without a task: no messages, or an empty one."""


class InDoubt(GeckoError):
    """A real call that was sent and may have taken effect: look it up before it is sent again."""


class NotMade(GeckoError):
    """A real call that was certainly not sent: a requirement is missing."""


class ModelError(GeckoError):
    """A model that cannot be built: unknown provider, missing key, missing package."""


class NoReply(ModelError):
    """A model whose server rejects every request: wrong key, address or name. The run can be resumed."""


class Refused(_Masked):
    """Raised by a tool to state that the call has done nothing: `raise Refused("no such account")`, or any JSON value.

    It becomes the call's error result. After any other exception of a write it is unknown whether it took effect.
    """


class RunFailure(_Masked):
    """A failure inside a run. Nodes turn it into data."""


class PatchConflict(RunFailure):
    """A JSON Patch that does not apply. The document is unchanged."""


class EvaluationFailed(RunFailure):
    """An expression or contract that cannot be evaluated, or that exceeded its limits."""


class NotKnown(EvaluationFailed):
    """A contract declines to answer a call, by `pass`: another rung answers."""


class NotRead(NotKnown):
    """An expression needs a part of the state that only a real read can show, and no such read was made."""


def did_you_mean(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    near = get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f" (did you mean {near[0]}?)" if near else ""


def install(extra: str) -> str:
    """Return the command that installs an extra; the package is on no index."""
    return f"pip install '.[{extra}]' in a checkout of gecko-graph"
