"""`new-case`: record a conversation (new, saved, or a case's script) as a test case."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from types import SimpleNamespace as Options
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from rich.console import Console
from rich.text import Text

from ..conversation.agent import AgentLike, as_sent, read_agent
from ..conversation.channels import address
from ..conversation.desk import Desk
from ..conversation.graph import create_conversation
from ..conversation.milestones.format import explain
from ..conversation.milestones.measures import check_installed
from ..conversation.result import CaseResult, describe_messages
from ..conversation.user import UserEntry
from ..display.words import clean
from ..errors import GeckoError
from ..models.factory import Models
from ..models.recorded import RecordedModel
from ..scenario import Scenario, read_toolkit
from ..scenario.cases.batch import PATTERN, load_agent
from ..scenario.cases.draft import CaseDraft, draft_case
from ..scenario.cases.run import run_case
from ..scenario.recorder import check_target
from ..state import Json
from ..tools import Toolkit
from ..tools.reading import is_in_module
from ..world.world import World
from .inputs import read_state, screen, write_text
from .person import Person
from .saved import check_thread, list_threads, open_reader, read_turns

Conversation = Mapping[str, Any]


def new_case(options: Options) -> int:
    """Write a case; 0 if it passes when it is run again with the same agent."""
    check_installed()
    if options.output and not Path(options.output).match(PATTERN):
        raise GeckoError(f"-o {options.output}: the name of a case must match {PATTERN}")
    target = check_target(options.output) if options.output else None
    models, console, toolkit = Models(base_url=options.base_url), screen(), read_toolkit(options.tools)
    agent = read_agent(load_agent(options.agent), models) if options.agent else None
    is_run = options.source and Path(options.source).suffix not in (".yaml", ".yml", ".json")
    if agent is None and not is_run:
        raise GeckoError("--agent is missing: the agent that answers in the conversation")
    goal, held = _read_saved(options, toolkit) if is_run else _hold(options, toolkit, agent, models, console)
    console.print(Text("\nthe conversation", "bold"))
    for line in CaseResult({"messages": describe_messages(held["messages"], held["world"])}).lines():
        console.print(Text(clean(line)))
    folder = target.absolute().parent if target else Path.cwd()
    draft = draft_case(toolkit, held, goal=goal, tools=_name_tools(options.tools, toolkit, folder))
    names = (f"{draft.head['name']}{f'-{number}' if number > 1 else ''}.gecko.yaml" for number in count(1))
    target = target or next(Path(name) for name in names if not Path(name).exists())
    write_text("-o", str(target), draft.format())
    console.print(Text(f"\n{target}", "bold"))
    for entry in draft.milestones:
        console.print(Text(f"  {clean(explain(entry))}"))
    console.print(Text(clean(draft.obstacle, lines=True), "yellow"), end="\n" if draft.obstacle else "")
    return _verify(target, draft, agent, options, console)


def _hold(options: Options, toolkit: Toolkit, agent: Any, models: Models, console: Console) -> tuple[str, Conversation]:
    """Return the user's goal and a new conversation: with a model, a case's script, or a person as the user."""
    state = read_state(options.state) if options.state else {}
    goal, spec = options.goal or "", None
    if options.source:
        case = Scenario.load(options.source)
        if case.user is None or not case.user.script:
            raise GeckoError(f"{options.source}: it has no user with a script to replay")
        spec, goal, state = case.user, goal or case.user.goal, state if options.state else case.state
    elif options.user_model and not goal:
        raise GeckoError("--goal is missing: --user-model needs the user's goal")
    played: Any = (
        None if spec else models.chat(options.user_model) if options.user_model else Person.at(console, "new-case")
    )
    held = Scenario(name="draft", tools=toolkit, state=state, user=spec or UserEntry(goal=goal or "-"))
    return goal, create_conversation(agent, scenario=held, user=played).invoke({})


def _read_saved(options: Options, toolkit: Toolkit) -> tuple[str, Conversation]:
    """Return a saved conversation, or one built from a saved run's turns and the calls of its chosen attempts."""
    with open_reader(options.source) as saver:
        thread = options.thread or next(iter(list_threads(saver)), "")
        check_thread(saver, options.source, thread)
        graph = create_conversation(RecordedModel(), toolkit, user=["-"], checkpointer=saver)
        values = graph.get_state({"configurable": {"thread_id": thread}}).values
        turns = [] if values.get("world") else list(read_turns(saver, thread))
    if values.get("world"):
        return options.goal or "", values
    if not turns or any("chosen" not in turn.record for turn in turns):
        raise GeckoError(f"{options.source}: the thread {thread!r} has no finished run")
    world, messages = World(toolkit, state=turns[0].start_state or {}, derive=False), list[AnyMessage]()
    for turn in turns:
        record, first, desk = turn.record, len(world.log), Desk(world, most=0)
        chosen = next(each for each in record["attempts"] if each["number"] == record["chosen"])
        messages.append(address(HumanMessage(turn.task), "user", "agent", steps=first))
        world.replay([{"step": step, "note": {}} for step in chosen["steps"]])
        messages += as_sent({"messages": messages}, [*desk.replay(), AIMessage(record["answer"])], first)
    return options.goal or "", {"messages": messages, "world": world.snapshot()}


def _name_tools(given: str, toolkit: Toolkit, folder: Path) -> Json:
    """Return the case's reference to its tools: a module, a file in its folder, or the whole document."""
    file = Path(given).absolute()
    inside = file.relative_to(folder).as_posix() if file.is_relative_to(folder) else toolkit.to_openapi()
    return given if is_in_module(given) else inside


def _verify(target: Path, draft: CaseDraft, agent: AgentLike | None, options: Options, console: Console) -> int:
    scenario, again = Scenario.load(target), f"gecko-graph test {target} --agent {options.agent or 'AGENT'}"
    if agent is None:
        console.print(Text(f"not run again, without an --agent: {again}", "yellow"))
        return 0
    result = run_case(scenario, agent)
    if result.passed and draft.milestones:
        console.print(Text(f"run again with the same agent, it passes: {again}", "green"))
        return 0
    why = result.explain().partition("\n\n")[0] if draft.milestones else "it has no milestones"
    console.print(Text(f"run again with the same agent, it does not pass: {clean(why, lines=True)}", "red"))
    return 1
