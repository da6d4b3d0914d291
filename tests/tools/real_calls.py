"""One real call, as a node makes it."""

from gecko_graph import Models
from gecko_graph.models.answer import aanswer, answer
from gecko_graph.tools.real import run_real

NONE = Models()


def make(tool, args, **more):
    """Return the call's answer, and whether it is in doubt."""
    made = run_real(tool, args, 20.0, **more)
    return finish(made, answer(next(made), NONE))


async def amake(tool, args, **more):
    """Make the call as `make` does, on the event loop."""
    made = run_real(tool, args, 20.0, **more)
    return finish(made, await aanswer(next(made), NONE))


def finish(made, replies):
    try:
        made.send(replies)
    except StopIteration as over:
        return over.value
    raise AssertionError("one call asks once")
