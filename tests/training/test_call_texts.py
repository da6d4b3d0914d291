"""Calls as data sets and model families write them: read, or an error, and never passed over."""

import json
from contextlib import suppress

import pytest

from gecko_graph.training.call_texts import read_call_texts, read_said
from gecko_graph.training.match import read_completion, tool_match_reward

ARGS = {"item": "axe", "count": 2, "gift": True}
CALL = {"name": "take", "arguments": ARGS}
BODY, INNER = json.dumps(CALL), json.dumps(ARGS)
PARAMETERS = json.dumps({"name": "take", "parameters": ARGS})
MEMBERS = "".join(
    f"<parameter={key}>\n{json.dumps(one) if key != 'item' else one}\n</parameter>\n" for key, one in ARGS.items()
)
GIVEN = "".join(
    f'<parameter name="{key}">{json.dumps(one) if key != "item" else one}</parameter>' for key, one in ARGS.items()
)
KEYS = "".join(
    f"<arg_key>{key}</arg_key>\n<arg_value>{json.dumps(one) if key != 'item' else one}</arg_value>\n"
    for key, one in ARGS.items()
)


def deepseek(call):
    """Marks with wide bars, which no keyboard has."""
    text = f"<|tool▁calls▁begin|><|tool▁call▁begin|>{call}<|tool▁call▁end|><|tool▁calls▁end|>"
    return text.replace("|", "\uff5c")


FORMS = {
    "Hermes, Qwen": f"<tool_call>\n{BODY}\n</tool_call>",
    "Hermes' data set, as Python": f"<tool_call>\n{CALL}\n</tool_call>",
    "Qwen3-Coder": f"<tool_call>\n<function=take>\n{MEMBERS}</function>\n</tool_call>",
    "GLM": f"<tool_call>take\n{KEYS}</tool_call>",
    "MiniMax": f'<minimax:tool_call>\n<invoke name="take">{GIVEN}</invoke>\n</minimax:tool_call>',
    "Jamba, Hunyuan": f"<tool_calls>[{BODY}]</tool_calls>",
    "Nemotron": f"<TOOLCALL>[{BODY}]</TOOLCALL>",
    "Granite": f"<|tool_call|>[{BODY}]",
    "Phi-4": f"<|tool_call|>[{BODY}]<|/tool_call|>",
    "Mistral": f"[TOOL_CALLS] [{BODY}]</s>",
    "Mistral, later": f"[TOOL_CALLS]take[ARGS]{INNER}</s>",
    "Mistral, with ids": f"[TOOL_CALLS]take[CALL_ID]a1b2c3d4e[ARGS]{INNER}",
    "Llama 3.1": f"<|python_tag|>{PARAMETERS}<|eom_id|>",
    "Llama 3.1, bare": f"{PARAMETERS}<|eot_id|>",
    "Llama's function mark": f"<function=take>{INNER}</function>",
    "Llama 4, pythonic": '[take(item="axe", count=2, gift=True)]',
    "pythonic, JSON's words": "[take(item='axe', count=2, gift=true)]",
    "one Python call": 'take(item="axe", count=2, gift=True)',
    "Gemma": '```tool_code\ntake(item="axe", count=2, gift=True)\n```',
    "DeepSeek V3": deepseek(f"function<|tool▁sep|>take\n```json\n{INNER}\n```") + "<\uff5cend▁of▁sentence\uff5c>",
    "DeepSeek V3.1": deepseek(f"take<|tool▁sep|>{INNER}"),
    "Kimi K2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.take:0<|tool_call_argument_begin|>"
    f"{INNER}<|tool_call_end|><|tool_calls_section_end|>",
    "InternLM": f"<|action_start|><|plugin|>\n{PARAMETERS}<|action_end|>",
    "Command R7B": f'<|START_ACTION|>[{{"call_id": "0", "tool_name": "take", "parameters": {INNER}}}]<|END_ACTION|>',
    "Functionary 3": f">>>take\n{INNER}",
    "Functionary 2": f"<|recipient|>take\n<|content|>{INNER}<|stop|>",
    "gpt-oss": f"<|channel|>commentary to=functions.take <|constrain|>json<|message|>{INNER}<|call|>",
    "Qwen-Agent": f"✿FUNCTION✿: take\n✿ARGS✿: {INNER}\n✿RESULT✿",
    "ReAct": f"Action: take\nAction Input: {INNER}",
    "ToolAlpaca": f"ASSISTANT Action: take\nASSISTANT Action Input: {INNER}\nASSISTANT Observation: ok",
    "Glaive": f'<functioncall> {{"name": "take", "arguments": \'{INNER}\'}} <|endoftext|>',
    "Gorilla": '<<<domain>>>: Shop\n<<<api_call>>>: take(item="axe", count=2, gift=True)\n<<<api_provider>>>: x',
    "Gorilla OpenFunctions": '<<function>>take(item="axe", count=2, gift=True)',
    "Seal-Tools": f"[{{'api': 'take', 'parameters': {ARGS}, 'responses': ['API_call_0']}}]",
    "xLAM": f"[{BODY}]",
    "xLAM, with a thought": f'{{"thought": "", "tool_calls": [{BODY}]}}',
    "arguments as text": json.dumps({"name": "take", "arguments": INNER}),
    "a tool's name as key": json.dumps([{"take": ARGS}]),
    "fenced": f"```json\n{BODY}\n```",
    "fenced, as Python": '```python\n[take(item="axe", count=2, gift=True)]\n```',
}
PROPERTIES = {"item": {"type": "string"}, "count": {"type": "integer"}, "gift": {"type": "boolean"}}
TOOLS = [{"type": "function", "function": {"name": "take", "parameters": {"type": "object", "properties": PROPERTIES}}}]


@pytest.mark.parametrize("form", FORMS)
def test_each_way_to_write_a_call_is_read(form):
    assert read_call_texts(FORMS[form], TOOLS)[0] == [CALL]
    assert read_completion([{"role": "assistant", "content": FORMS[form]}], TOOLS) == [CALL]
    assert tool_match_reward([FORMS[form]], label=[[CALL]], tools=[TOOLS]) == [1.0]
    if not FORMS[form].startswith(("[", "{", "take(")) or "TOOL_CALLS" in FORMS[form]:  # else it is all that is said
        calls, said = read_call_texts(f"Well.\n{FORMS[form]}", TOOLS)
        assert (calls, said[:5]) == ([CALL], "Well.")


@pytest.mark.parametrize("form", FORMS)
def test_a_call_that_is_cut_off_is_never_another_or_none(form):
    text = FORMS[form]
    begin, end = text.index("axe"), max(text.rindex("2"), text.rfind("rue"))
    for cut in range(begin, end):
        with pytest.raises(ValueError, match=r"."):
            read_call_texts(text[:cut], TOOLS)
    assert tool_match_reward([text[:begin]], label=[[]], tools=[TOOLS]) == [0.0]
    for cut in range(end, len(text)):
        with suppress(ValueError):
            assert read_call_texts(text[:cut], TOOLS)[0] == [CALL], text[:cut]


@pytest.mark.parametrize("form", [*FORMS][::8])
@pytest.mark.parametrize(
    "thought",
    [
        "<think>{}</think>", "<think>{}", "{}</think>", "<thinking>\n{}\n</thinking>", "[THINK]{}[/THINK]",
        "<|channel|>analysis<|message|>{}<|end|>", "<|START_THINKING|>{}<|END_THINKING|>",
        "<think>a <think>{}</think> b</think>",
    ],
)  # fmt: skip
def test_a_call_in_a_thought_is_none(form, thought):
    if "<|channel|>" in thought and "<|channel|>" in FORMS[form]:
        return  # one ends the other
    text = thought.format(FORMS[form])
    assert read_call_texts(text, TOOLS) == ([], text)
    if "{}</" in thought or "{}[/" in thought:
        assert read_call_texts(f"{text}<tool_call>{BODY}</tool_call>", TOOLS) == ([CALL], text)


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "7", "I have taken two axes.",
        "Here (as you asked) it is: [a link](https://a.test), {braces} and f(x) = 2.", '{"item": "axe", "count": 2}',
        '[{"name": "Ann", "age": 3}, {"name": "Bob", "age": 4}]', '```json\n{"name": "Ann", "age": 3}\n```',
        "```python\nfor each in range(3):\n    print(each)\n```", "Use `pip install x`.\n```\n$ ls\n```", "[1, 2, 3]",
        "[Note] this is (almost) done", ">>>all\nIt is done.", "<think>Nothing to call.</think>Done.",
    ],
)  # fmt: skip
def test_what_is_no_call_is_text(text):
    assert read_call_texts(text, TOOLS) == ([], text)
    assert tool_match_reward([text], label=[[]]) == [1.0]


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>", "</tool_call>", "<tool_call></tool_call>", "<tool_call>I shall take it</tool_call>",
        '<tool_call>{"arguments": {}}</tool_call>', '<tool_call>{"name": "take", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": "take", "arguments": {"count": NaN}}</tool_call>',
        '<tool_call>{"name": "take", "arguments": {}}</tool_call><tool_call>{"name": "take", "arg',
        f'I call {{"name": "take", "arguments": {INNER}}} now.', f"Well, [{PARAMETERS}", "[take('axe')]",
        "[take(item=axe)]", "[take(**axe)]", "[take(item='axe'), 3]", f'[{BODY}, {{"name": "take"}}]',
        "[Take Things(item='axe')]", f"<|tool_call_unknown|>{BODY}", "Action: take\nAction Input: the axe",
    ],
)  # fmt: skip
def test_what_looks_like_a_call_and_cannot_be_read_is_an_error(text):
    with pytest.raises(ValueError, match=r"."):
        read_call_texts(text, TOOLS)
    assert tool_match_reward([text], label=[[]]) == [0.0]


def test_several_calls_are_read_in_their_order():
    two = [{"name": "a", "arguments": {"x": 1}}, {"name": "b.c", "arguments": {}}]
    first, second = map(json.dumps, two)
    for text in (
        f"<tool_call>{first}</tool_call> and <tool_call>{second}</tool_call>",
        f"<tool_call>{first}\n{second}</tool_call>",
        '[TOOL_CALLS]a[ARGS]{"x": 1}[TOOL_CALLS]b.c[ARGS]{}',
        f"{first}; {second}",
        "[a(x=1), b.c()]",
        "a(x=1)\nb.c()",
        f"```json\n{first}\n```\n```json\n{second}\n```",
        "<<function>>a(x=1)<<function>>b.c()",
        '>>>a\n{"x": 1}\n>>>b.c\n{}',
    ):
        assert read_call_texts(text)[0] == two, text


def test_a_name_with_spaces_is_read_where_it_is_a_tools():
    tools = [{"name": "Get Trends", "parameters": {}}]
    assert read_call_texts('[Get Trends(place="x")]', tools)[0] == [{"name": "Get Trends", "arguments": {"place": "x"}}]


def test_values_between_marks_have_the_types_of_their_schema():
    rules = {"properties": {"zip": {"type": "string"}, "n": {"type": "integer"}, "o": {"type": "object"}}}
    body = '<parameter=zip>\n01234\n</parameter><parameter=n>5</parameter><parameter=o>{"a": 1}</parameter>'
    calls, _ = read_call_texts(
        f"<tool_call><function=f>{body}</function></tool_call>", [{"name": "f", "parameters": rules}]
    )
    assert calls == [{"name": "f", "arguments": {"zip": "01234", "n": 5, "o": {"a": 1}}}]


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "tool_calls": [{"id": "1", "function": {"name": "take", "arguments": INNER}}]},
        {"content": None, "function_call": {"name": "take", "arguments": INNER}},
        {"content": [{"type": "text", "text": "So."}, {"type": "tool_use", "id": "1", "name": "take", "input": ARGS}]},
        {"content": [{"type": "thinking", "thinking": "<tool_call>"}, {"type": "text", "text": BODY}]},
        {"content": [{"type": "reasoning", "text": "<tool_call>"}, {"type": "text", "text": BODY}]},
        {"content": BODY, "reasoning_content": "<tool_call>"},
    ],
)
def test_a_messages_calls_stand_beside_its_text_or_in_it(message):
    calls, _ = read_said(message, TOOLS)
    assert [{key: one[key] for key in ("name", "arguments")} for one in calls] == [CALL]
    assert read_completion([{"role": "assistant", **message}], TOOLS) == [CALL]


@pytest.mark.parametrize("mark", ["<think>a</think>", "```json\n{}\n```", "[TOOL_CALLS]", "Action Input:"])
def test_what_an_argument_says_stays_as_it_is(mark):
    made = {"name": "take", "arguments": {"item": mark}}
    for text in (f"<tool_call>{json.dumps(made)}</tool_call>", json.dumps([made])):
        with suppress(ValueError):  # it may be an error, and never another argument
            assert read_call_texts(text, TOOLS)[0] == [made]
    assert read_call_texts(f"<tool_call>{json.dumps(made)}</tool_call>", TOOLS)[0] == [made]


@pytest.mark.parametrize("form", ["[" * 20_000, "[" * 900 + "]" * 900, "(" * 20_000, "a(" * 5_000, '{"a":' * 20_000])
def test_what_is_nested_too_deeply_is_an_error_or_text(form):
    for text in (form, f"<tool_call>{form}</tool_call>"):
        with suppress(ValueError):
            assert read_call_texts(text, TOOLS) == ([], text)
        tool_match_reward([text], label=[[]])


@pytest.mark.parametrize(
    "text",
    ["to=" + "a" * 200_000, "<" + "a:" * 100_000, "<tool_call>{}" * 20_000, "```json\n" * 20_000, "</think>" * 20_000],
)
def test_a_text_that_repeats_itself_is_read_once(text):
    """What grows with the square of its length would not end here."""
    with suppress(ValueError):
        read_call_texts(text, TOOLS)


def test_many_calls_are_all_read():
    assert len(read_call_texts(f"<tool_call>{BODY}</tool_call>" * 500, TOOLS)[0]) == 500
