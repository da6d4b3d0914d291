"""Users' functions: in time, off the event loop, and whatever they raise is theirs."""

import asyncio
import functools
import subprocess
import sys
import threading
import time

import pytest
from langgraph.errors import GraphBubbleUp, GraphInterrupt

from gecko_graph import GeckoError, Refused
from gecko_graph.models.answer import WaitingLine, aperform, perform
from gecko_graph.models.ask import FunctionCall, Reply


@pytest.fixture(params=["sync", "async"])
def run(request):
    """`await run(work)`: the same test over `perform` and over `aperform`."""

    async def run(work):
        return perform(work) if request.param == "sync" else await aperform(work)

    return run


def work(function, *args, timeout_s=5.0, then=None, **kwargs):
    return FunctionCall(function=function, args=args, kwargs=kwargs, timeout_s=timeout_s, then=then)


async def later(value):
    await asyncio.sleep(0)
    return value


class Callable:
    async def __call__(self, value):
        return await later(value)


@pytest.mark.parametrize(
    "function", [lambda value: value, later, functools.partial(later), Callable(), lambda value: later(value)]
)
async def test_plain_and_coroutine_functions_give_their_value(run, function):
    assert await run(work(function, 7)) == Reply(7)
    assert await run(work(function, value=7, then=str)) == Reply("7")


def plainly(error):
    def raises():
        raise error

    return raises


def coroutine(error):
    async def raises():
        raise error

    return raises


class Rude(BaseException):
    pass


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("not even this")


@pytest.mark.parametrize(("error", "told"), [
    (ValueError("no tray"), "ValueError: no tray"), (TimeoutError("its own"), "TimeoutError: its own"),
    (asyncio.CancelledError("mine"), "CancelledError: mine"),
    (Rude("bye"), "Rude: bye"), (Refused("no"), "Refused: no"), (Mute(), "Mute"),
    (ValueError("half \ud800"), "ValueError: half ?"),
])  # fmt: skip
@pytest.mark.parametrize("kind", [plainly, coroutine])
async def test_whatever_a_function_raises_is_its_own_error(run, kind, error, told):
    done = await run(work(kind(error)))
    assert done == Reply(failure=told, in_doubt=not isinstance(error, Refused))
    assert done.error is error


@pytest.mark.parametrize("error", [GraphBubbleUp("up"), GraphInterrupt(())])
async def test_langgraph_s_control_flow_goes_through(run, error):
    for function in (plainly(error), coroutine(error)):
        with pytest.raises(GraphBubbleUp):
            await run(work(function))


async def stubborn():
    for _ in range(10):
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            continue


@pytest.mark.parametrize(
    "late",
    [
        work(time.sleep, 5, timeout_s=0.05),
        work(asyncio.sleep, 5, timeout_s=0.05),
        work(stubborn, timeout_s=0.05),
        work(lambda: asyncio.sleep(5), timeout_s=0.05),
        work(lambda: 1, then=lambda _: time.sleep(5), timeout_s=0.05),
    ],
    ids=["function", "coroutine", "ignores cancelling", "returns a coroutine", "its value"],
)
async def test_what_hangs_is_left_behind(run, late):
    start = time.perf_counter()
    done = await run(late)
    assert done == Reply(failure="did not answer within 0.05 s", late=True)
    assert time.perf_counter() - start < 4


async def test_the_event_loop_goes_on_while_a_function_works():
    beats = 0

    async def heart():
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0.01)

    beating = asyncio.create_task(heart())
    await aperform(work(time.sleep, 0.15))
    beating.cancel()
    assert beats > 1


async def test_cancelled_from_outside_is_cancelled():
    stopped = threading.Event()

    async def waits():
        try:
            await asyncio.sleep(5)
        finally:
            stopped.set()

    for function in (waits, functools.partial(time.sleep, 0.3)):
        task = asyncio.create_task(aperform(work(function)))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await asyncio.sleep(0)
    assert stopped.is_set()


def test_a_function_that_hangs_does_not_keep_the_process_from_ending():
    code = (
        "import asyncio, time\n"
        "from gecko_graph.models.answer import aperform, perform\n"
        "from gecko_graph.models.ask import FunctionCall\n"
        "hang = FunctionCall(function=time.sleep, args=(60,), timeout_s=0.05)\n"
        "assert perform(hang).late and asyncio.run(aperform(hang)).late\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=55)  # a fork would end whatever hangs


async def test_a_blocking_turn_is_refused_where_the_loop_that_it_would_block_has_to_end_another():
    line, entered, done = WaitingLine(), asyncio.Event(), asyncio.Event()

    async def hold():
        async with line.aturn():
            entered.set()
            await done.wait()

    holding = asyncio.create_task(hold())
    await entered.wait()
    with pytest.raises(GeckoError, match="block the event loop"), line.turn():
        pass
    done.set()
    await holding
    with line.turn():
        pass
