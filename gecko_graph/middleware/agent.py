"""`GeckoMiddleware`: the tools of LangChain's `create_agent`, simulated, previewed, shadowed or guarded.

The calls of one model message are rehearsed together in the model's node, which stores the results. The person is asked
in a later hook, because hooks run again on resume. The tools' parallel tasks share one world (`live`): each answers
from the store or makes the real call, and writes its outcome. The next hook applies the outcomes to the snapshot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args
from warnings import warn

from langchain.agents.middleware.types import AgentMiddleware, ExtendedModelResponse
from langchain_core.messages import ToolMessage
from langgraph.config import get_config
from langgraph.types import Command, TracePolicy

from ..context import GeckoContext
from ..contracts.clauses import tell_rule
from ..derive.contracts import with_derived
from ..errors import GeckoError, StateError
from ..events import event
from ..models.answer import Driver, aperform, perform
from ..models.ask import FunctionCall, Reply
from ..models.factory import Models, ModelsLike
from ..models.node import trace_calls
from ..models.usage import add_usage
from ..real.decisions import NO_SAVER, ask_person
from ..real.learned import LearnedLike, share, teach
from ..real.ledger import CallLedger, check_ledger
from ..real.policy import ReviewPolicy
from ..real.preview import predict
from ..state import ROLES, Call, JsonObject
from ..stream import Rehearsing
from ..tools import Toolkit
from ..tools.check import Rejection
from ..tools.own_data import starting_state
from ..tools.real import drive
from ..undo import UndoFinder
from ..values.difference import json_equal
from ..values.observation import Observe
from ..world.as_tools import add_marks, build_message, find_pending
from ..world.records import ExecutedCall
from ..world.rung import Rung
from ..world.world import World, check_setup
from .calls import (
    Claimed,
    answer_as_decided,
    as_edited,
    complain_again,
    count_beside,
    find_before,
    find_rehearsed,
    read_result,
    refuse,
    reject,
    tell_again,
)
from .channels import GuardedState
from .checked import Checked, find_tool
from .hooks import LEFT_OUT, both, check_history, warn_unknown, with_masks
from .ids import check_id, give_ids
from .live import Live, LiveWorlds, config_of
from .pending import find_refusal, is_refused, set_id
from .review import Reviewer
from .turns import open_turn

Mode = Literal["simulate", "hybrid", "preview", "shadow", "guard"]
SIMULATED, REHEARSED, GATED = ("simulate", "hybrid"), ("simulate", "hybrid", "preview", "shadow"), ("preview", "guard")

MARKED = ("drift", "departure", "notes")  # marks of a message about a real call
OPEN = (
    "{name} was not carried out: a call before it in the same message has no answer, because it waits for a person or "
    "has failed. Make this call again when that one is answered."
)
ASKED = "Learned rules would refuse {name}:\n{rules}\nApprove to make it anyway."
VIOLATED = "{name} was carried out, but its result breaks a postcondition: {why}\nIts result: {result}"


class GeckoMiddleware(AgentMiddleware):
    """Intercepts the calls between `create_agent`'s model and its tools.

    Args:
        toolkit: The tools; calls of others are refused.
        state: The task state at the start of a thread's world, or a function (also async) from the runtime to it. The
            function is called at each turn: a state other than the world's start state starts a new world, None
            continues the old one.
        mode: `simulate`: the world answers, and no real tool runs except opened reads. `hybrid`: the same, and all
            declared reads run for real. `preview`: the effect of a message's calls is shown and approved once, then
            they run. `shadow`: they run, are simulated in parallel, and drift is reported. `guard`: they run if the
            contract's precondition holds, without any model except that of `Models(risk=...)`; without any contract it
            warns. The mode is fixed.
        model: The model of validator, simulator and state updater, or `Models` by role. With `risk`, `guard` has writes
            judged by their predicted effect: below `context.band` they run, above it they are refused, within it a
            person is asked, which needs a checkpointer.
        context: Knobs.
        rungs: Further rungs for simulated calls, as for `create_gecko`.
        interrupt_on: The calls that `preview` asks about, as for `create_gecko_agent`.
        exclude_tools: Names of tools that run unchanged in every mode, such as `write_todos`.
        ledger: Stores the claims of real calls if the checkpointer is none of SQLite, Postgres and memory. Without a
            checkpointer there are no claims.
        learned: A file of learned contracts, or its content, as for `create_gecko_agent`; with a checkpointer, a person
            is asked about writes that they refuse in `guard` or `preview`.
        observe: The target of a row per real call: a file or a function.
        derive: As for `create_gecko`.
        trace_policy: The hooks' inputs and outputs in traces, by default nothing; with another policy they are masked.
            None is LangChain's policy of the process (`configure_trace_policy`), unmasked.

    Raises:
        GeckoError: An argument is invalid; the message names it.
    """

    state_schema = GuardedState
    transformers = (Rehearsing,)

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
        derive: bool = True,
        trace_policy: TracePolicy | None = LEFT_OUT,
    ) -> None:
        super().__init__()
        self.trace_policy = trace_policy and with_masks(trace_policy)
        if mode not in get_args(Mode):
            raise GeckoError(f"mode: expected one of {', '.join(get_args(Mode))}, got {mode!r}")
        models = Models.of(model)
        if mode == "guard" and any(map(models.has, {*ROLES} - {"risk"})):
            raise GeckoError("mode 'guard' asks no model but Models(risk=...): leave out model, or use mode='shadow'")
        if isinstance(exclude_tools, str):
            raise GeckoError(f"exclude_tools: expected a list of tool names, got {exclude_tools!r}")
        check_ledger(ledger)
        knobs = check_setup(toolkit, context)
        self._state, given = state, None if callable(state) else state
        toolkit = teach(with_derived(toolkit, given, derive=derive), learned)
        if mode == "guard" and learned is None and not any(tool.contract for tool in toolkit):
            warn("guard: no tool has a contract, so only arguments are checked", stacklevel=2)
        if mode == "hybrid":
            toolkit = toolkit.open(*(tool.name for tool in toolkit if tool.reads and tool.stated and tool.real))
        self._mode: Mode = mode
        self._template = World(
            toolkit, state=given, model=model, context=context, rungs=rungs, observe=observe, derive=False
        )
        self._toolkit, self._exclude_tools = toolkit, frozenset(exclude_tools)
        # the agent's tools may be real without the toolkit's knowledge: for the policy all are real
        self._real = toolkit.replace(*(replace(tool, real=tool.real or print) for tool in toolkit))
        self._policy = ReviewPolicy.load(interrupt_on, self._real)
        if mode == "guard":
            self._policy.risk = self._policy.risk or models.has("risk")
        if self._policy.risk:
            models.require("risk")
        self._reviews = mode == "preview" or (mode == "guard" and self._policy.risk)
        self._claimed, self._live = Claimed(ledger, self._real, knobs.tool_timeout_s), LiveWorlds()
        self._reviewer = Reviewer(self._claimed, self._policy, UndoFinder(toolkit), knobs, models)

    @property
    def mode(self) -> Mode:
        return self._mode

    async def _begin(self, state: Any, runtime: Any, driver: Driver) -> JsonObject | None:
        known, start = state.get("gecko"), None
        await drive(share(self._toolkit), driver)
        if callable(self._state):
            done: Reply = await driver.do(perform, aperform, FunctionCall(function=self._state, args=(runtime,)))
            if done.failure:
                raise StateError(f"state: the function that gives it failed: {done.failure}")
            start = starting_state(self._toolkit, done.value)
        elif not known:
            start = self._state
            if self._mode not in SIMULATED:
                check_history(state["messages"], self._toolkit, get_config())
        update = dict[str, Any]()
        if known and (start is None or json_equal(start, known["start"])):
            world = self._template.resume(known)  # validated here once; later snapshots are the graph's own
        else:
            world = self._template.begin({} if start is None else start)
            update = {"gecko": world.snapshot()}
        turn = {"gecko_turn": open_turn(state, len(world.log))}
        is_real, known = self._mode not in SIMULATED, {**state, **turn}
        if self._policy.risk and self._reviews and await self._claimed.find(known, driver) is None:
            raise GeckoError(NO_SAVER)
        return {**turn, **((await self._claimed.recover(known, world, driver) if is_real else None) or update)}

    before_agent, abefore_agent = both(_begin)

    async def _book(self, state: Any, runtime: Any, driver: Driver) -> JsonObject | None:
        """Apply the outcomes of the last message's calls to the snapshot, in the order in which they were answered."""
        if not (done := state.get("gecko_done")):
            return None
        world, first = self._template.resume(state["gecko"], own=True), len(state["gecko"]["log"])
        notes = sorted(done.values(), key=lambda note: note["at"])
        world.replay(notes, add_usage((state.get("gecko_batch") or {}).get("usage", {}), notes[-1]["usage"]))
        return {"gecko": {"records": world.records(first), "usage": world.usage}, "gecko_done": None}

    before_model, abefore_model = both(_book)

    async def _end(self, state: Any, runtime: Any, driver: Driver) -> JsonObject:
        """Apply calls that no model call has followed, and end the turn."""
        await self._claimed.end(state, driver)
        return {**(await self._book(state, runtime, driver) or {}), "gecko_turn": {"ended": True}}

    after_agent, aafter_agent = both(_end)

    async def _rehearse(self, request: Any, handler: Any, driver: Driver) -> Any:
        """Call the model, and rehearse the calls of its message."""
        warn_unknown(request.tools, self._toolkit, self._exclude_tools)
        response = await driver.do(handler, handler, request)
        response = replace(response, result=give_ids(response.result, request.state))
        if self._mode not in REHEARSED and not self._reviews:
            return response
        world, calls = self._fork(request.state), find_pending(response.result, self._exclude_tools)[1]
        await driver.do(world.call_all, world.acall_all, world.read_calls(calls))
        records = world.records(len(request.state["gecko"]["log"]))
        answers = [{"call": dict(call), "record": record} for call, record in zip(calls, records, strict=True)]
        batch = {"answers": answers, "usage": world.usage, "approved": {}}
        if self._reviews:
            pairs = ((call, record["step"]) for call, record in zip(calls, records, strict=True))
            steps = [set_id(step, call) for call, step in pairs if not is_refused(step)]
            told = [complain_again(request.state, step["call"], world, self._toolkit) for step in steps]
            steps = [step for step, each in zip(steps, told, strict=True) if each is None]
            batch |= (ahead := await self._reviewer.look_up(steps, request.state, driver, {}))
            batch["usage"] = add_usage(world.usage, ahead["usage"])
        return ExtendedModelResponse(response, Command(update={"gecko_batch": batch if calls else None}))

    wrap_model_call, awrap_model_call = both(_rehearse)

    def _fork(self, state: Any) -> World:
        """Return a world at the state's snapshot, with empty usage."""
        return self._template.resume(state["gecko"], own=True).fork()

    async def _review(self, state: Any, runtime: Any, driver: Driver) -> JsonObject | None:
        """Ask about the message's calls (`preview`), and answer those that were rejected or responded to."""
        if not self._reviews or not (calls := find_pending(state["messages"], self._exclude_tools)[1]):
            return None
        return await self._reviewer.review(state, calls, partial(self._fork, state), driver)

    after_model, aafter_model = both(_review)

    async def _answer(self, request: Any, handler: Any, driver: Driver) -> Any:
        """Answer a simulated call, or make an allowed real one, on the message's world."""
        given = as_edited(request.tool_call, request.state)
        if given["name"] != request.tool_call["name"]:
            request = request.override(tool=find_tool(request, given["name"], self._toolkit))
        request = request.override(tool_call=given)
        # a call that another middleware has renamed would still run the original tool
        if {given["name"], *([request.tool.name] if request.tool else ())} <= self._exclude_tools:
            return await driver.do(handler, handler, request)
        check_id(request.tool_call, request.state)
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
        """Answer a call from the store, as long as calls come in the rehearsed order; else simulate it now."""
        own, batch = request.tool_call, request.state.get("gecko_batch") or {"answers": ()}
        if stored := live.find_stored(own, batch["answers"]):
            live.world.replay([stored])
        else:
            await driver.do(live.world.call_all, live.world.acall_all, live.world.read_calls([own]))
        step = (record := live.records()[-1])["step"]
        if "outcome" in step:
            fields = {key: step["outcome"][key] for key in ("status", "result", "rung", "simulated", "passed", "patch")}
            emit = trace_calls(request.runtime.stream_writer, request.runtime.config or {})
            emit(event("gecko.result", attempt=0, call=step["call"], **fields))
        return Command(update={"messages": [build_message(own, step)], "gecko_done": {str(record["at"]): record}})

    async def _make(self, request: Any, handler: Any, live: Live, driver: Driver) -> Any:
        """Make a real call and record it; return the refusal if its precondition fails."""
        rejection = live.world.check(request.tool_call) if self._mode in GATED else None
        if rejection and (refused := await self._refuse(request, rejection, live.world, driver)):
            return refused
        call = self._call_of(request)
        if booked := live.booked.get(call["id"]):
            return self._booked(request, await self._claimed.recall(request.state, call, booked, driver), booked, live)
        again = complain_again(request.state, call, live.world, self._toolkit) if self._mode == "guard" else None
        if again is not None and not await self._claimed.has(request.state, call, driver):
            return again
        known = self._toolkit[call["name"]].parameters.get("properties", {})
        tool = Checked(request.tool, request.tool_call, known) if request.tool else None
        before = 0 if self._is_serial(call["name"]) else count_beside(request, live)
        run = partial(driver.do, handler, handler, request.override(tool=tool))
        result, row = await self._claimed.make(request.state, call, live, before, run, driver)
        if row["key"] and any(each["key"] == row["key"] for each in request.state.get("gecko_journal") or ()):
            return tell_again(result, call, row)
        step = find_rehearsed(request.state, request.tool_call) if self._mode == "shadow" else None
        came = read_result(result, row), predict(step) if step else None
        entry = await driver.do(live.world.record, live.world.arecord, call, *came, by=row.get("by", "tool"))
        entry["key"] = row["key"]
        await drive(share(self._toolkit.select(names=call["name"])), driver)
        return self._booked(request, result, entry, live)

    async def _refuse(self, request: Any, rejection: Rejection, world: World, driver: Driver) -> ToolMessage | None:
        """Return the answer to a call that contracts refuse; None for a call that a person allows anyway.

        This is possible only if learned rules alone refuse the call. An approval given in view of the refusal counts.
        """
        violations, call = rejection.get("violations", ()), self._call_of(request)
        answer = refuse(request.tool_call, rejection)
        if not violations or not all("evidence" in each for each in violations):
            return answer
        step = find_rehearsed(request.state, request.tool_call) if self._reviews else None
        is_known = step is not None and step.get("outcome", {}).get("violations") == violations
        if is_known or await self._claimed.has(request.state, call, driver):
            return None
        if (told := complain_again(request.state, call, world, self._toolkit)) is not None:
            return told
        if not self._policy.may_ask or not (claims := await self._claimed.find(request.state, driver)):
            return answer
        text = ASKED.format(name=call["name"], rules="\n".join(map(tell_rule, violations)))
        asking = ask_person([call], [text], self._real, claims, allowed=[("approve", "reject")])
        (decision,) = await drive(asking, driver)
        return None if decision["type"] == "approve" else answer_as_decided(request.tool_call, decision)

    def _call_of(self, request: Any) -> Call:
        given = request.tool_call
        return {"id": given["id"], "name": self._toolkit.resolve(given["name"]), "args": given["args"]}

    def _admit(self, request: Any) -> tuple[Any, ToolMessage | None]:
        """Return the request as approved, or its refusal; the same result on every re-entry."""
        call = self._call_of(request)
        if self._mode in SIMULATED:
            return request, None
        if call["name"] not in self._toolkit:
            return request, refuse(request.tool_call, self._toolkit.check(request.tool_call, {}) or {})
        if not self._reviews:
            return request, None
        step, batch = find_rehearsed(request.state, request.tool_call), request.state.get("gecko_batch")
        if step is not None and (refused := find_refusal(request.tool_call, step)):
            return request, refused
        approved = batch["approved"].get(call["id"]) if batch and step else None
        tool = find_tool(request, approved["name"], self._toolkit) if approved else None
        if approved is None or tool is None:
            return request, reject(request.tool_call, None)
        made = {**request.tool_call, "name": tool.name, "args": approved["args"]}
        return request.override(tool_call=made, tool=tool), None

    def _find_earlier(self, request: Any) -> set[str | None]:
        """Return the earlier calls of this call's message that wait for each other and may be made."""
        approved = (request.state.get("gecko_batch") or {}).get("approved", {})
        ours = [call for call in find_before(request) if call["name"] not in self._exclude_tools]
        made = [call for call in ours if not self._reviews or call["id"] in approved]
        return {call["id"] for call in made if self._is_serial(self._toolkit.resolve(call["name"]))}

    def _is_serial(self, name: str) -> bool:
        """Return whether a call waits for others of its message, because it depends on their results."""
        tool = self._toolkit.get(name)
        return self._mode in SIMULATED or (self._mode in GATED and tool is not None and not tool.reads)

    def _booked(self, request: Any, result: Any, entry: ExecutedCall, live: Live) -> Any:
        """Return the real result with its marks, and the update that records it."""
        record = next(each for each in live.records() if each["step"]["call"]["id"] == entry["call"]["id"])
        marks: JsonObject = {"simulated": False, "rung": "real", "made_up": False}
        marks |= {key: each for key, each in entry.items() if key in MARKED and each}
        request.runtime.stream_writer(
            event("gecko.change", attempt=0, call=entry["call"], patch=record["step"]["outcome"]["patch"], **marks)
        )
        update = {"gecko_done": {str(record["at"]): record}, "gecko_journal": [entry]}
        if isinstance(result, Command):
            given = result.update
            if result.graph is not None or not isinstance(given, dict):  # a hand-off
                return result
            said = [add_marks(each, marks) if isinstance(each, ToolMessage) else each for each in given["messages"]]
            theirs = {key: each for key, each in given.items() if key not in GuardedState.__annotations__}
            return replace(result, update={**theirs, **update, "messages": said})
        message = add_marks(result, marks)
        departure = entry.get("departure")
        if self._mode in GATED and departure and departure["code"] in ("schema", "ensures", "state"):
            content = VIOLATED.format(name=entry["call"]["name"], why=departure["message"], result=result.text)
            message = message.model_copy(update={"content": content, "status": "error"})
        return Command(update={"messages": [message], **update})
