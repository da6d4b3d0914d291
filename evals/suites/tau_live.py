"""Live runs on the installed tau2-bench, with the paper's hand-over (section 6.1).

The simulated tools cannot know the real data base. So for each message of the user the task is rehearsed, and all
attempts, failed ones too, stand with their feedback in the real agent's prompt as examples, not as a plan to repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from gecko_graph import Models, Toolkit, create_gecko
from gecko_graph.models.formatting import format_steps
from gecko_graph.state import Attempt, JsonObject, Rehearsal

from ..harness.options import EvalError, Options
from ..harness.suite import add_all

INSTALL = (
    "pip install 'tau2 @ git+https://github.com/sierra-research/tau2-bench' (Python 3.12 or 3.13; version 1 or later)"
)
RETRIES = 2
"""Rounds after the first: up to three attempts, as in the paper."""
STEPS_CHARS = 8_000

INTRODUCTION = (
    "Below are rehearsals of the conversation's next step, made with simulated tools. Their data are made up: do not "
    "quote them, look everything up with the real tools. Learn from them which calls and arguments are needed, and "
    "which mistakes the feedback found."
)

Rehearse = Callable[[Sequence[Any], str, Sequence[Any]], str]
"""From an agent's tools, its policy and the conversation so far to the text for its prompt."""


class Bench(NamedTuple):
    """What is used of the package: its runner, its agent, its orchestrator, its messages."""

    runner: Any
    agent: type
    orchestrator: type
    system_message: type


def load() -> Bench:
    """Return the installed package.

    Raises:
        EvalError: It is not there, or of a version without what is needed; the message says how to install it.
    """
    try:
        return Bench(
            runner=import_module("tau2.runner"),
            agent=import_module("tau2.agent.llm_agent").LLMAgent,
            orchestrator=import_module("tau2.orchestrator.orchestrator").Orchestrator,
            system_message=import_module("tau2.data_model.message").SystemMessage,
        )
    except (ImportError, AttributeError) as error:
        raise EvalError(f"--live needs the package tau2, or another version of it ({error}): {INSTALL}") from None


def run_task(bench: Bench, domain: str, task: Any, *, options: Options) -> JsonObject:
    """Run a task on its real environment; the agent gets rehearsals unless `--plain`.

    Returns:
        `reward`, `rehearsals`, `attempts`, and `usage` of the rehearsals.
    """
    own, book = options.own, list[Rehearsal]()
    environment = bench.runner.build_environment(domain)
    kind = bench.agent if own.plain else handing_over(bench.agent, bench.system_message, rehearser(options, book))
    names = {"agent": own.agent.replace(":", "/", 1), "user": own.user.replace(":", "/", 1)}  # as its client has them
    exact = {"temperature": 0.0}
    tools, policy = environment.get_tools(), environment.get_policy()
    agent = kind(tools=tools, domain_policy=policy, llm=names["agent"], llm_args=exact)
    user = bench.runner.build_user("user_simulator", environment, task, llm=names["user"], llm_args=exact)
    parts = {"agent": agent, "user": user, "environment": environment, "task": task}
    simulation = bench.runner.run_simulation(bench.orchestrator(domain=domain, **parts, seed=options.seed))
    return {
        "reward": float(simulation.reward_info.reward),
        "rehearsals": len(book),
        "attempts": sum(len(each["attempts"]) for each in book),
        "usage": add_all(each["usage"] for each in book),
    }


def rehearser(options: Options, book: list[Rehearsal]) -> Rehearse:
    """Return the rehearser: the agent's model plans, `--model` and `--role-model` speak for the other roles."""
    context = options.context(**({"max_retries": RETRIES} if options.max_retries is None else {}))
    models = Models().replace(**options.speakers(planner=options.chat(options.own.agent)))

    def rehearse(tools: Sequence[Any], policy: str, messages: Sequence[Any]) -> str:
        toolkit = Toolkit.from_tools([tool.openai_schema for tool in tools])
        gecko = create_gecko(toolkit, model=models, context=context)
        book.append(gecko.invoke({"messages": [SystemMessage(policy), *conversation(messages)]})["rehearsal"])
        return "\n\n".join([INTRODUCTION, *map(example, book[-1]["attempts"])])

    return rehearse


def handing_over(agent: type, system_message: type, rehearse: Rehearse) -> type:
    """Return the package's agent with rehearsals in its prompt: anew for each message of the user.

    Args:
        agent: A class with `generate_next_message(message, state)`, `tools` and `domain_policy`.
        system_message: The package's message class for the prompt.
        rehearse: Makes the text.
    """

    class HandedOver(agent):  # type: ignore[misc]
        def generate_next_message(self, message: Any, state: Any) -> Any:
            if message.role == "user":
                text = rehearse(self.tools, self.domain_policy, [*state.messages, message])
                own = [each for each in state.system_messages if not each.content.startswith(INTRODUCTION)]
                state.system_messages = [*own, system_message(role="system", content=text)]
            return super().generate_next_message(message, state)

    return HandedOver


def conversation(messages: Iterable[Any]) -> list[AnyMessage]:
    """Return the package's messages as LangChain's; several tool results in one message are one each."""
    made: list[AnyMessage] = []
    for each in messages:
        if each.role == "user":
            made.append(HumanMessage(each.content or ""))
        elif each.role == "assistant":
            calls = [{"id": call.id, "name": call.name, "args": call.arguments} for call in each.tool_calls or ()]
            made.append(AIMessage(each.content or "", tool_calls=calls))
        elif each.role == "tool":
            results = getattr(each, "tool_messages", None) or [each]
            made += [ToolMessage(result.content or "", tool_call_id=result.id) for result in results]
    return made


def example(attempt: Attempt) -> str:
    """Return an attempt with its feedback, as text for a prompt."""
    verdict = attempt["verdict"]
    lines = [f"Attempt {attempt['number']}: {verdict['status']}", format_steps(attempt["steps"], budget=STEPS_CHARS)]
    lines += [f"answer: {attempt['answer']}"] if attempt["answer"] else []
    lines += [f"{item['status']}: {item['description']}" for item in verdict["items"]]
    return "\n".join(lines + ([f"feedback: {verdict['feedback']}"] if verdict["feedback"] else []))
