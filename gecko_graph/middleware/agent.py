"""`GeckoMiddleware`: the tools of LangChain's `create_agent`, simulated, previewed, shadowed or guarded.

The calls of one model message are rehearsed together in the model's node, which stores them; the person is asked in a
later hook, because hooks run again on resume; the tools' tasks, which run side by side, share one world (`live`): each
answers from the store or makes the real call there, and writes what became of it. The next hook books that on the
snapshot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from itertools import takewhile
from operator import add
from typing import Annotated, Any, Literal, NotRequired, get_args

from langchain.agents.middleware.types import AgentMiddleware, ExtendedModelResponse, OmitFromInput, PrivateStateAttr
from langchain_core.messages import ToolMessage
from langgraph.types import Command
from typing_extensions import TypedDict

from ..context import GeckoContext
from ..contracts.clauses import tell_rule
from ..errors import GeckoError, StateError
from ..events import event
from ..models.answer import AT_ONCE, AWAITED, Driver, aperform, finish, perform
from ..models.ask import Reply, Work
from ..models.factory import ModelsLike
from ..models.usage import add_usage
from ..real.decisions import ask_person
from ..real.learned import LearnedLike, share, teach
from ..real.ledger import CallLedger, check_ledger
from ..real.policy import ReviewPolicy
from ..real.preview import add_undo, describe_calls, predict
from ..state import Call, JsonObject
from ..tools import Toolkit
from ..tools.check import Rejection
from ..tools.own_data import starting_state
from ..tools.real import drive
from ..values.difference import json_equal
from ..values.observation import Observe
from ..world.as_tools import add_marks, build_message, find_pending
from ..world.calls import fold_snapshot
from ..world.records import ExecutedCall
from ..world.reducers import delta
from ..world.rung import Rung
from ..world.undo import UndoFinder
from ..world.world import World, check_setup
from .calls import Claimed, answer_as_decided, as_edited, complain_again, find_rehearsed, read_result, refuse, reject
from .live import Live, LiveWorlds, config_of
from .pending import build_preview, set_id

Mode = Literal["simulate", "hybrid", "preview", "shadow", "guard"]
SIMULATED, REHEARSED, GATED = ("simulate", "hybrid"), ("simulate", "hybrid", "preview", "shadow"), ("preview", "guard")

OPEN = (
    "{name} was not carried out: a call before it in the same message has no answer, because it waits for a person or "
    "has failed. Make this call again when that one is answered."
)
ASKED = "{name} would be refused, by what was learned:\n{rules}\nApprove to have it made all the same."
VIOLATED = "{name} was carried out, but its result is not what it must be: {why}\nIts result: {result}"


def merge_done(old: JsonObject | None, new: JsonObject | None) -> JsonObject:
    """Reducer of what became of a message's calls, by their numbers in the world's log; None clears it."""
    return {**(old or {}), **new} if new is not None else {}


class GeckoState(TypedDict, total=False):
    """The agent's keys that are added."""

    gecko: NotRequired[Annotated[JsonObject, OmitFromInput, delta(fold_snapshot, dict)]]
    """The world's snapshot, for `World.restore`; its `state` is the task state now. Calls are written as they come."""
    gecko_journal: NotRequired[Annotated[list[ExecutedCall], OmitFromInput, add]]
    """The real calls, with the `drift` and the `departure` of each. Whole in each checkpoint, as `messages` are: a
    delta takes over what another process writes at one that both share, and the two must agree on what was called."""
    gecko_batch: Annotated[JsonObject | None, PrivateStateAttr]
    """The last message's calls, what was simulated of each, and which were approved."""
    gecko_done: Annotated[JsonObject, PrivateStateAttr, merge_done]
    """What became of its calls, until it is booked."""


def both(hook: Callable[..., Any]) -> tuple[Any, Any]:
    """Return a hook as LangChain calls it, sync and async."""

    def at_once(self: Any, state: Any, runtime: Any) -> Any:
        return finish(hook(self, state, runtime, AT_ONCE))

    async def awaited(self: Any, state: Any, runtime: Any) -> Any:
        return await hook(self, state, runtime, AWAITED)

    at_once.__doc__ = awaited.__doc__ = hook.__doc__
    return at_once, awaited


class GeckoMiddleware(AgentMiddleware):
    """Stands between `create_agent`'s model and its tools.

    Args:
        toolkit: The tools; calls of others are refused.
        state: The task state that a thread's world begins from, or a function from the runtime to it, also async. The
            function is asked at each turn: another state than the one that the world began from begins a new world,
            None goes on with it.
        mode: `simulate`: the world answers, no real tool runs but reads that were opened. `hybrid`: so, and all reads
            run for real whose effect the user stated. `preview`: the effect of a message's calls is shown and approved
            once, then they run. `shadow`: they run, are simulated beside it, and drift is reported. `guard`: they run
            where the contract's precondition holds; no model. It is fixed: no state, tool or model changes it.
        model: Speaks for validator, simulator and state updater: a model, or `Models` by role.
        context: Knobs.
        rungs: Who else may answer a simulated call, as for `create_gecko`.
        interrupt_on: Which calls `preview` asks about, as for `create_gecko_agent`.
        exclude_tools: Names of tools that run as they are in every mode, such as `write_todos`.
        ledger: Keeps the claims of real calls where the agent's checkpointer is none of SQLite, Postgres and memory.
            Without a checkpointer there are none.
        learned: A file of learned contracts, or its content, as for `create_gecko_agent`; a write that they refuse in
            `guard` or `preview` is asked about where there is a checkpointer.
        observe: Where a row goes for each real call: a file, or a function that takes the row.

    Raises:
        GeckoError: An argument cannot be used; the message says which.
    """

    state_schema = GeckoState

    def __init__(  # noqa: PLR0913 - every one is a choice of its own, by keyword
        self,
        toolkit: Toolkit,
        *,
        state: JsonObject | Callable[[Any], JsonObject | Awaitable[JsonObject] | None] | None = None,
        mode: Mode = "simulate",
        model: ModelsLike = None,
        context: GeckoContext | None = None,
        rungs: Iterable[Rung] = (),
        interrupt_on: Any = "writes",
        exclude_tools: Collection[str] = (),
        ledger: CallLedger | None = None,
        observe: Observe = None,
        learned: LearnedLike = None,
    ) -> None:
        super().__init__()
        if mode not in get_args(Mode):
            raise GeckoError(f"mode: expected one of {', '.join(get_args(Mode))}, got {mode!r}")
        if mode == "guard" and model is not None:
            raise GeckoError("mode 'guard' asks no model: leave out model, or use mode='shadow'")
        if isinstance(exclude_tools, str):
            raise GeckoError(f"exclude_tools: expected a list of tool names, got {exclude_tools!r}")
        check_ledger(ledger)
        knobs = check_setup(toolkit, context)
        toolkit = teach(toolkit, learned)
        if mode == "hybrid":
            toolkit = toolkit.open(*(tool.name for tool in toolkit if tool.reads and tool.stated and tool.real))
        self._mode: Mode = mode
        self._state, given = state, None if callable(state) else state
        self._template = World(toolkit, state=given, model=model, context=context, rungs=rungs, observe=observe)
        self._toolkit = toolkit
        self._exclude_tools = frozenset(exclude_tools)
        # the agent's own tools may be real without the toolkit's knowledge: the policy decides as if all were
        self._real = toolkit.replace(*(replace(tool, real=tool.real or print) for tool in toolkit))
        self._policy = ReviewPolicy.load(interrupt_on, self._real)
        self._finder, self._undo_s = UndoFinder(toolkit), knobs.undo_s
        self._claimed, self._live = Claimed(ledger, self._real, knobs.tool_timeout_s), LiveWorlds()

    @property
    def mode(self) -> Mode:
        """The mode that it was created with."""
        return self._mode

    async def _begin(self, state: Any, runtime: Any, driver: Driver) -> JsonObject | None:
        """Begin the thread's world, or go on with it."""
        known, start = state.get("gecko"), None
        await drive(share(self._toolkit), driver)
        if callable(self._state):
            done: Reply = await driver.do(perform, aperform, Work(function=self._state, args=(runtime,)))
            if done.failure:
                raise StateError(f"state: the function that gives it failed: {done.failure}")
            start = starting_state(self._toolkit, done.value)
        elif not known:
            start = self._state
        update = dict[str, Any]()
        if known and (start is None or json_equal(start, known["start"])):
            world = self._template.resume(known)  # checked whole here, and from now on the graph's own
        else:
            world = self._template.begin({} if start is None else start)
            update = {"gecko": world.snapshot()}
        return (await self._claimed.recover(state, world, driver) if self._mode not in SIMULATED else None) or update

    before_agent, abefore_agent = both(_begin)

    async def _book(self, state: Any, runtime: Any, driver: Driver) -> JsonObject | None:
        """Book on the snapshot what became of the last message's calls, in the order in which they were answered."""
        if not (done := state.get("gecko_done")):
            return None
        world, first = self._template.resume(state["gecko"], own=True), len(state["gecko"]["log"])
        notes = sorted(done.values(), key=lambda note: note["at"])
        world.replay(notes, add_usage((state.get("gecko_batch") or {}).get("usage", {}), notes[-1]["usage"]))
        return {"gecko": {"records": world.records(first), "usage": world.usage}, "gecko_done": None}

    before_model, abefore_model = both(_book)
    after_agent, aafter_agent = before_model, abefore_model  # what no model call has followed

    async def _rehearse(self, request: Any, handler: Any, driver: Driver) -> Any:
        """Have the model speak, and rehearse the calls that it makes."""
        response = await driver.do(handler, handler, request)
        if self._mode not in REHEARSED:
            return response
        world, calls = self._fork(request.state), find_pending(response.result, self._exclude_tools)[1]
        await driver.do(world.call_all, world.acall_all, world.read_calls(calls))
        records = world.records(len(request.state["gecko"]["log"]))
        answers = [{"call": dict(call), "record": record} for call, record in zip(calls, records, strict=True)]
        batch = {"answers": answers, "usage": world.usage, "approved": {}}
        if self._mode == "preview":
            before = request.state["gecko"]["state"]
            steps = [set_id(record["step"], call) for call, record in zip(calls, records, strict=True)]
            if preview := build_preview(steps, before, self._real, self._policy):
                preview = await drive(add_undo(preview, before, self._finder, self._undo_s), driver)
                batch["undo"] = {each["call"]["id"]: each["undo"] for each in preview["calls"] if "undo" in each}
        return ExtendedModelResponse(response, Command(update={"gecko_batch": batch if calls else None}))

    wrap_model_call, awrap_model_call = both(_rehearse)

    def _fork(self, state: Any) -> World:
        """Return a world at the state's snapshot, whose usage begins at nothing."""
        return self._template.resume(state["gecko"], own=True).fork()

    async def _review(self, state: Any, runtime: Any, driver: Driver) -> JsonObject | None:
        """Ask about the message's calls (`preview`), and answer those that were rejected or responded to."""
        calls = find_pending(state["messages"], self._exclude_tools)[1] if self._mode == "preview" else []
        steps = [set_id(step, call) for call in calls if (step := find_rehearsed(state, call))]
        before = state["gecko"]["state"] if calls else {}
        undos = (state.get("gecko_batch") or {}).get("undo", {})
        if not (preview := build_preview(steps, before, self._real, self._policy, undos)):
            return None
        decided: dict[str, Any] = {}
        ran = [each for each in preview["calls"] if each["predicted"]["rung"] != "validator"]
        world = self._fork(state)
        told = {each["call"]["id"]: complain_again(state, each["call"], world, self._toolkit) for each in ran}
        known = [each for each in ran if told[each["call"]["id"]] is None]
        if asked := [each["call"] for each in known if each["review"] == "ask"]:
            texts = describe_calls(preview, known, before)
            shown = [texts[call["id"]] for call in asked]
            decisions = await self._claimed.ask(state, asked, shown, self._policy, driver)
            decided = dict(zip((call["id"] for call in asked), decisions, strict=True))
        messages, approved = [each for each in told.values() if each], dict[str, Any]()
        for planned in known:
            call, decision = planned["call"], decided.get(planned["call"]["id"], {"type": "approve"})
            if planned["review"] == "refuse":
                messages.append(reject(call, f": {planned['reason']}"))
            elif decision["type"] in ("reject", "respond"):
                messages.append(answer_as_decided(call, decision))
            elif sum(each["id"] == call["id"] for each in calls) == 1:
                approved[call["id"]] = decision.get("edited_action") or {"name": call["name"], "args": call["args"]}
        return {"messages": messages, "gecko_batch": {**state["gecko_batch"], "approved": approved}}

    after_model, aafter_model = both(_review)

    async def _answer(self, request: Any, handler: Any, driver: Driver) -> Any:
        """Answer a simulated call, or make a real one where it may be made, on the message's world."""
        # a call that another middleware has renamed would still run the tool that it was made for
        if {request.tool_call["name"], *([request.tool.name] if request.tool else ())} <= self._exclude_tools:
            return await driver.do(handler, handler, request)
        request = request.override(tool_call=as_edited(request.tool_call, request.state))
        request, refused = self._admit(request)
        if refused is not None:
            return refused
        live = await self._live.find(request, partial(self._fork, request.state), driver)
        make = partial(self._make, request, handler, live, driver)
        if self._mode in SIMULATED:
            make = partial(self._simulate, request, live, driver)
        if not self._is_serial(self._call_of(request)["name"]):
            return await make()
        is_next = await live.wait_for(self._find_earlier(request), config_of(request), driver)
        if not is_next and self._mode in GATED:
            return refuse(request.tool_call, {"error": OPEN.format(name=request.tool_call["name"])})
        async with driver.turn(live.line):
            task = str(config_of(request).get("checkpoint_ns"))
            if task not in live.made:
                live.made[task] = await make()
            live.closed.add(request.runtime.tool_call_id)
            return live.made[task]

    wrap_tool_call, awrap_tool_call = both(_answer)

    async def _simulate(self, request: Any, live: Live, driver: Driver) -> Any:
        """Answer a call from the store, while the calls come as they were rehearsed; else in the state as it is."""
        own, batch = request.tool_call, request.state.get("gecko_batch") or {"answers": ()}
        if stored := live.find_stored(own, batch["answers"]):
            live.world.replay([stored])
        else:
            await driver.do(live.world.call_all, live.world.acall_all, live.world.read_calls([own]))
        record = live.records()[-1]
        step = record["step"]
        if "outcome" in step:
            fields = {key: step["outcome"][key] for key in ("status", "result", "rung", "simulated", "passed", "patch")}
            request.runtime.stream_writer(event("gecko.result", attempt=0, call=step["call"], **fields))
        return Command(update={"messages": [build_message(own, step)], "gecko_done": {str(record["at"]): record}})

    async def _make(self, request: Any, handler: Any, live: Live, driver: Driver) -> Any:
        """Make a real call and book it; return why not where its precondition is broken."""
        rejection = live.world.check(request.tool_call) if self._mode in GATED else None
        if rejection and not await self._is_overruled(request, rejection, driver):
            return refuse(request.tool_call, rejection)
        call, here = self._call_of(request), live.records()
        if booked := live.booked.get(call["id"]):
            return self._booked(request, await self._claimed.recall(request.state, call, booked, driver), booked, live)
        again = complain_again(request.state, call, live.world, self._toolkit) if self._mode == "guard" else None
        if again is not None and not await self._was_claimed(request, call, driver):
            return again
        run = partial(driver.do, handler, handler, request)
        result, row = await self._claimed.make(request.state, call, here, run, driver)
        step = find_rehearsed(request.state, request.tool_call) if self._mode == "shadow" else None
        came = read_result(result), predict(step) if step else None
        entry = await driver.do(live.world.record, live.world.arecord, call, *came, by=row.get("by", "tool"))
        entry["key"] = row["key"]
        await drive(share(self._toolkit.select(names=call["name"])), driver)
        return self._booked(request, result, entry, live)

    async def _was_claimed(self, request: Any, call: Call, driver: Driver) -> bool:
        """Return whether a call was claimed: whatever is known of it now, its claim says what became of it."""
        claims = await self._claimed.find(request.state, driver)
        return claims is not None and bool(await drive(claims.has(call), driver))

    async def _is_overruled(self, request: Any, rejection: Rejection, driver: Driver) -> bool:
        """Return whether a person has a write made that only learned rules refuse; who approved it knowing that has."""
        violations, call = rejection.get("violations", ()), self._call_of(request)
        if not violations or not all("evidence" in each for each in violations):
            return False
        step = find_rehearsed(request.state, request.tool_call) if self._mode == "preview" else None
        if step and step.get("outcome", {}).get("violations") == violations:
            return True
        if await self._was_claimed(request, call, driver):
            return True
        if not self._policy.may_ask or not (claims := await self._claimed.find(request.state, driver)):
            return False
        told = ASKED.format(name=call["name"], rules="\n".join(map(tell_rule, violations)))
        asking = ask_person([call], [told], self._real, claims, allowed=[("approve", "reject")])
        (decision,) = await drive(asking, driver)
        return bool(decision["type"] == "approve")

    def _call_of(self, request: Any) -> Call:
        given = request.tool_call
        return {"id": given["id"], "name": self._toolkit.resolve(given["name"]), "args": given["args"]}

    def _admit(self, request: Any) -> tuple[Any, ToolMessage | None]:
        """Return the request as it was approved, or why it may not be made at all: the same on every re-entry."""
        call = self._call_of(request)
        if self._mode in SIMULATED:
            return request, None
        if call["name"] not in self._toolkit:
            return request, refuse(request.tool_call, self._toolkit.check(request.tool_call, {}) or {})
        if self._mode != "preview":
            return request, None
        step, batch = find_rehearsed(request.state, request.tool_call), request.state.get("gecko_batch")
        if step is not None and "complaints" in step:
            return request, build_message(request.tool_call, step)
        approved = batch["approved"].get(call["id"]) if batch and step else None
        tools = {self._toolkit.resolve(tool.name): tool for tool in [request.tool, *request.runtime.tools] if tool}
        if approved is None or approved["name"] not in tools:
            return request, reject(request.tool_call, None)
        tool = tools[approved["name"]]
        made = {**request.tool_call, "name": tool.name, "args": approved["args"]}
        return request.override(tool_call=made, tool=tool), None

    def _find_earlier(self, request: Any) -> set[str | None]:
        """Return the calls before this one in its message that wait for each other and may be made."""
        own, approved = request.runtime.tool_call_id, (request.state.get("gecko_batch") or {}).get("approved", {})
        pending = [as_edited(call, request.state) for call in find_pending(request.state["messages"])[1]]
        calls = takewhile(lambda call: call["id"] != own, pending)
        ours = [call for call in calls if call["name"] not in self._exclude_tools]
        made = [call for call in ours if self._mode != "preview" or call["id"] in approved]
        return {call["id"] for call in made if self._is_serial(self._toolkit.resolve(call["name"]))}

    def _is_serial(self, name: str) -> bool:
        """Return whether a call waits for others of its message, as it is about what they leave."""
        tool = self._toolkit.get(name)
        return self._mode in SIMULATED or (self._mode in GATED and tool is not None and not tool.reads)

    def _booked(self, request: Any, result: Any, entry: ExecutedCall, live: Live) -> Any:
        """Return the real result with its marks, and the update that books it."""
        record = next(each for each in live.records() if each["step"]["call"]["id"] == entry["call"]["id"])
        marks: JsonObject = {"simulated": False, "rung": "real", "made_up": False}
        marks |= {key: entry[key] for key in ("drift", "departure", "unclear", "undocumented") if entry.get(key)}
        request.runtime.stream_writer(
            event("gecko.change", attempt=0, call=entry["call"], patch=record["step"]["outcome"]["patch"], **marks)
        )
        update = {"gecko_done": {str(record["at"]): record}, "gecko_journal": [entry]}
        if isinstance(result, Command):
            given = result.update
            if result.graph is not None or not isinstance(given, dict):  # a hand-off: these keys are not the other's
                return result
            said = [add_marks(each, marks) if isinstance(each, ToolMessage) else each for each in given["messages"]]
            theirs = {key: each for key, each in given.items() if key not in GeckoState.__annotations__}
            return replace(result, update={**theirs, **update, "messages": said})
        message = add_marks(result, marks)
        departure = entry.get("departure")
        if self._mode in GATED and departure and departure["code"] in ("schema", "ensures", "state"):
            content = VIOLATED.format(name=entry["call"]["name"], why=departure["message"], result=result.text)
            message = message.model_copy(update={"content": content, "status": "error"})
        return Command(update={"messages": [message], **update})
