#!/usr/bin/env bash
# langchain-core 1.8.3, pydantic 2.14.4: a tool whose argument is a model with `strict=True` and a date can never be
# called by a model. Arguments of a tool call are JSON, in which a date is a text, and the tool's own JSON Schema says so
# ({"type": "string", "format": "date"}). But LangChain validates the parsed arguments in Pydantic's Python mode, where a
# strict date takes no text; Pydantic's JSON mode (`model_validate_json`) takes the same argument.
set -euo pipefail
cd "$(mktemp -d)"
python3 -m venv env && env/bin/pip install -q langchain-core==1.8.3 pydantic==2.14.4
cat > strict.py <<'P'
import datetime, json
from langchain_core.tools import tool
from pydantic import BaseModel, ConfigDict, ValidationError

class Day(BaseModel):
    model_config = ConfigDict(strict=True)
    on: datetime.date

@tool
def book(day: Day) -> str:
    """Book a day."""
    return f"booked {day.on}"

call = {"type": "tool_call", "id": "1", "name": "book", "args": {"day": {"on": "2026-01-02"}}}
print("schema:", book.tool_call_schema.model_json_schema()["$defs"]["Day"]["properties"]["on"])
print("from JSON:", repr(Day.model_validate_json(json.dumps(call["args"]["day"]))))
try:
    print("the tool:", book.invoke(call).content)
except ValidationError as error:
    print("the tool:", error.errors()[0]["type"])
    raise SystemExit(0)
raise SystemExit("it takes the text now")
P
env/bin/python strict.py
