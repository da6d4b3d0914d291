#!/usr/bin/env bash
# deepagents 0.7.32, langgraph 1.2.24: a subagent's state keys go back to its parent, which makes one task work and two in
# one message fail. `task` copies all keys of a subagent's output but its private ones; a key of the user's `state_schema`
# without a reducer then gets two values in one step. The error comes after both subagents have finished: what they did in
# the world is done, neither answer is in the conversation, and the run can be resumed only with another schema.
# Surprising: deepagents' own prompt asks the model to start independent subagents at once in one message, the schema is
# valid for one of them, and nothing is checked before they run.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q deepagents==0.7.32 langgraph==1.2.24
cat > two.py <<'PY'
from deepagents import CompiledSubAgent, DeepAgentState, create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.errors import InvalidUpdateError
from langgraph.graph import START, StateGraph

sent = []


class State(DeepAgentState):
    budget: int


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **options):
        return self


def send(state):
    sent.append(state["messages"][-1].text)
    return {"messages": [AIMessage("sent")], "budget": state["budget"] - 1}


builder = StateGraph(State)
builder.add_node("send", send)
builder.add_edge(START, "send")
sender = CompiledSubAgent(name="sender", description="Sends a letter.", runnable=builder.compile())


def run(count):
    sent.clear()
    calls = [
        {"name": "task", "id": str(at), "args": {"description": f"letter {at}", "subagent_type": "sender"}}
        for at in range(count)
    ]
    model = Model(messages=iter([AIMessage("", tool_calls=calls), AIMessage("done")]))
    agent = create_deep_agent(model, subagents=[sender], state_schema=State)
    return agent.invoke({"messages": [("user", "Send the letters")], "budget": 9})


print("one task:", run(1)["messages"][-1].text, sent)
try:
    run(2)
except InvalidUpdateError as error:
    print("two tasks:", str(error).splitlines()[0], "| sent:", sorted(sent))
    raise SystemExit(len(sent) != 2)
raise SystemExit("two tasks at once work now")
PY
venv/bin/python two.py
