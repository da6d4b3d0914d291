"""`new-case`: one conversation, held, saved or written in a case, becomes a case that is run again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace as Options
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from rich.console import Console
from rich.text import Text

from ..conversation.agent import AgentLike, as_sent, read_agent
from ..conversation.channels import address, find_user_texts
from ..conversation.desk import Desk
from ..conversation.graph import create_conversation
from ..conversation.milestones.measures import check_installed
from ..conversation.user import Case, UserEntry, UserLike
from ..display.words import clean
from ..errors import GeckoError
from ..models.factory import Models
from ..models.recorded import RecordedModel
from ..scenario import Scenario, read_toolkit
from ..scenario.cases.batch import PATTERN, load_agent
from ..scenario.cases.draft import Draft, draft_case, explain, find_free, name_case
from ..scenario.cases.result import CaseResult, describe_messages, run_case
from ..scenario.recorder import check_target
from ..scenario.tools import is_in_module
from ..state import Json, JsonObject
from ..tools import Toolkit
from ..tools.own_data import find_own_data
from ..world.world import World
from .inputs import read_state, screen, write_text
from .person import HOW, Person
from .saved import check_thread, list_threads, open_reader, read_turns


def new_case(options: Options) -> int:
    """Write a case; 0 where it passes when it is run again with the same agent."""
    check_installed()
    if options.output and not Path(options.output).match(PATTERN):
        raise GeckoError(
            f"-o {options.output}: a case's file is named {PATTERN}: gecko-graph test and pytest look for it"
        )
    target = check_target(options.output) if options.output else None
    models, console = Models(base_url=options.base_url), screen()
    toolkit = read_toolkit(options.tools)
    agent = read_agent(load_agent(options.agent), models) if options.agent else None
    goal, conversation = _find_conversation(options, toolkit, agent, models, console)
    _show(conversation, console)
    said = find_user_texts(conversation["messages"])
    target = target or find_free(name_case(goal or "".join(said[:1])))
    draft = draft_case(toolkit, conversation, goal=goal, tools=_name_tools(options.tools, toolkit, target))
    write_text("-o", str(target), draft.format())
    console.print(Text(f"\n{target}: what must come about again", "bold"))
    for entry in draft.milestones:
        console.print(Text(f"  {clean(entry['id'])}: {clean(explain(entry))}"))
    if draft.obstacle:
        console.print(Text(clean(draft.obstacle, lines=True), "yellow"))
    return _verify(target, draft, agent, options, console)


def _find_conversation(
    options: Options, toolkit: Toolkit, agent: AgentLike | None, models: Models, console: Console
) -> tuple[str, Mapping[str, Any]]:
    """Return what the user wants, and the conversation: a saved one, else one that is held now."""
    state = read_state(options.state) if options.state else find_own_data(toolkit)
    source = Path(options.source) if options.source else None
    if source and source.suffix not in (".yaml", ".yml", ".json"):
        return _read_saved(options, toolkit)
    if agent is None:
        raise GeckoError("--agent is missing: who answers in the conversation")
    if source:
        case = Scenario.load(source)
        if case.user is None or not case.user.script:
            raise GeckoError(f"{source}: it has no user with a script, whose lines could be said again")
        return case.user.goal, _hold(
            toolkit, {**state, **({} if options.state else case.state)}, case.user, agent, None
        )
    if not options.user_model:
        person = Person.at(console, "new-case")
        console.print(Text(HOW, "bold"))
        return options.goal or "", _hold(toolkit, state, UserEntry(goal=options.goal or "-"), agent, person)
    if not (options.goal or "").strip():
        raise GeckoError("--goal is missing: what the user wants that --user-model plays")
    spec = UserEntry(goal=options.goal)
    return options.goal, _hold(toolkit, state, spec, agent, models.chat(options.user_model))


def _hold(toolkit: Toolkit, state: Json, spec: UserEntry, agent: AgentLike, user: UserLike | None) -> Mapping[str, Any]:
    case = Case(tools=toolkit, state=state, user=spec)
    return create_conversation(agent, scenario=case, user=user).invoke({})


def _read_saved(options: Options, toolkit: Toolkit) -> tuple[str, Mapping[str, Any]]:
    """Return a saved conversation, or the turns of a saved run with what was called in its chosen attempts."""
    with open_reader(options.source) as saver:
        if not (thread := options.thread or next(iter(list_threads(saver)), "")):
            raise GeckoError(f"{options.source}: it holds no runs")
        check_thread(saver, options.source, thread)
        graph = create_conversation(RecordedModel(), toolkit, user=["-"], checkpointer=saver)
        values = graph.get_state({"configurable": {"thread_id": thread}}).values
        if values.get("world"):
            return options.goal or "", values
        turns = list(read_turns(saver, thread))
    if not turns or any("chosen" not in turn.record for turn in turns):
        raise GeckoError(f"{options.source}: the thread {thread!r} holds no run that is over")
    world = World(toolkit, state=turns[0].start_state or {})
    messages: list[AnyMessage] = []
    for turn in turns:
        record, first, desk = turn.record, len(world.log), Desk(world, most=0)
        chosen = next(each for each in record["attempts"] if each["number"] == record["chosen"])
        messages.append(address(HumanMessage(turn.task), "user", "agent", steps=first))
        world.replay([{"step": step, "note": {}} for step in chosen["steps"]])
        messages += as_sent({"messages": messages}, [*desk.replay(), AIMessage(record["answer"])], first)
    return options.goal or "", {"messages": messages, "world": world.snapshot()}


def _name_tools(given: str, toolkit: Toolkit, target: Path) -> Json:
    """Return the tools as the case names them: a module, a file in its folder; else all of them."""
    folder, file = target.absolute().parent, Path(given).absolute()
    if is_in_module(given):
        return given
    return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else toolkit.to_openapi()


def _show(conversation: Mapping[str, Any], console: Console) -> None:
    described: list[JsonObject] = describe_messages(conversation["messages"], conversation["world"])
    console.print(Text("\nthe conversation", "bold"))
    for line in CaseResult({"messages": described}).lines():
        console.print(Text(clean(line)))


def _verify(target: Path, draft: Draft, agent: AgentLike | None, options: Options, console: Console) -> int:
    """Run the case with the same agent, and say what came of it."""
    scenario, again = Scenario.load(target), f"gecko-graph test {target} --agent {options.agent or 'AGENT'}"
    if agent is None:
        console.print(Text(f"not run again: no --agent was given; {again}", "yellow"))
        return 0
    result = run_case(scenario, agent)
    if result.passed and draft.milestones:
        console.print(Text(f"run again with the same agent, it passes: {again}", "green"))
        return 0
    why = result.explain().partition("\n\n")[0] if draft.milestones else "it has no milestones"
    console.print(Text(f"run again with the same agent, it does not pass: {clean(why, lines=True)}", "red"))
    return 1
