"""Where calls go and who is calling: by the document, by what the user says, and nowhere to be read afterwards."""

import base64
import json
import traceback

import httpx
import pytest
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import create_gecko
from gecko_graph.errors import GeckoError, InDoubt, ToolkitError
from gecko_graph.testing import recorded
from gecko_graph.tools import Toolkit
from gecko_graph.tools.openapi.request import build_request
from gecko_graph.tools.real import as_answer
from tests.tools.http_server import as_json, serving
from tests.tools.small_documents import document

SECRET = "s3cr3t-Zürich/+&=%"
SCHEMES = {
    "basic": {"type": "http", "scheme": "Basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "other": {"type": "http", "scheme": "token"},
    "head": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "api key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "oauth": {"type": "oauth2", "flows": {}},
    "openid": {"type": "openIdConnect", "openIdConnectUrl": "https://x.test"},
    "cert": {"type": "mutualTLS"},
}


@pytest.fixture
def here():
    with serving() as here:
        yield here


def secured(*alternatives, method="get", server=None, **more):
    parameters = [{"name": "api key", "in": "query"}, {"name": "sid", "in": "cookie"}, {"name": "q", "in": "query"}]
    operation = {"operationId": "t", "responses": {}, "security": list(alternatives), "parameters": parameters}
    whole = document({"/x": {method: operation}}, components={"securitySchemes": SCHEMES})
    return Toolkit.from_openapi(whole, server=server, **more)


@pytest.mark.parametrize(("scheme", "value", "where", "sent"), [
    ("basic", "me:pw", "authorization", "Basic " + base64.b64encode(b"me:pw").decode()),
    ("bearer", "tok-1", "authorization", "Bearer tok-1"), ("other", "tok-1", "authorization", "Token tok-1"),
    ("oauth", "tok-1", "authorization", "Bearer tok-1"), ("bearer", "Bearer tok-1", "authorization", "Bearer tok-1"),
    ("undefined", "tok-1", "authorization", "Bearer tok-1"),
    ("openid", lambda: "tok-1\n", "authorization", "Bearer tok-1"),
    ("head", "env:SOME_KEY", "x-api-key", "tok-1"), ("cookie", "tok-1", "cookie", "sid=tok-1"),
])  # fmt: skip
def test_each_scheme_travels_where_it_must(here, monkeypatch, scheme, value, where, sent):
    monkeypatch.setenv("SOME_KEY", "tok-1")
    toolkit = secured({scheme: []}, server=here.url, auth={scheme: value})
    assert set(toolkit["t"].parameters["properties"]) == {"q"}
    toolkit["t"].real(q="a")
    assert here.asked[0].header(where) == sent
    assert here.asked[0].target == "/x?q=a"


def test_a_key_in_the_query_passes_a_proxy_and_stands_in_no_log_of_it(here, caplog):
    caplog.set_level("DEBUG")
    shown = []
    hooks = {"request": [lambda request: shown.append(repr(request.url))]}
    with httpx.Client(proxy=here.url, event_hooks=hooks) as client:
        secured({"query": []}, server="http://example.invalid", auth={"query": SECRET}, client=client)["t"].real(
            q="a b"
        )
    assert here.asked[0].target == "http://example.invalid/x?q=a%20b&api%20key=s3cr3t-Z%C3%BCrich%2F%2B%26%3D%25"
    assert "s3cr3t" not in caplog.text + shown[0]


def test_alternatives_and_combinations(here, monkeypatch):
    monkeypatch.setenv("SHOP_HEAD", "one")
    monkeypatch.setenv("SHOP_COOKIE", "two")
    toolkit = secured({"bearer": []}, {"head": [], "cookie": []}, server=here.url, auth="env:SHOP_")
    toolkit["t"].real()
    asked = here.asked[0]
    sent = [asked.header(name) for name in ("x-api-key", "cookie", "authorization")]
    assert sent == ["one", "sid=two", None]
    monkeypatch.delenv("SHOP_COOKIE")
    with pytest.raises(GeckoError, match=r"GET /x needs a credential .*SHOP_BEARER or .*SHOP_HEAD and .*SHOP_COOKIE"):
        toolkit["t"].real()
    assert len(here.asked) == 1


def test_no_credential_where_none_is_needed(here):
    for security in ([{}, {"bearer": []}], [], [{"cert": []}]):
        secured(*security, server=here.url)["t"].real()
        assert here.asked[-1].header("authorization") is None
    secured({}, {"bearer": []}, server=here.url, auth={"bearer": "tok-1"})["t"].real()
    assert here.asked[-1].header("authorization") == "Bearer tok-1"


@pytest.mark.parametrize("auth", [{"baerer": "x"}, {"bearer": 7}, "tok-1", {"bearer": httpx.AsyncClient.get}])
def test_wrong_auth_is_refused_at_once(auth):
    with pytest.raises(ToolkitError, match="auth") as caught:
        secured({"bearer": []}, auth=auth)
    assert "tok-1" not in str(caught.value)


def leaks():
    raise RuntimeError(SECRET)


@pytest.mark.parametrize("source", [leaks, lambda: f"{SECRET}\r\nX-Evil: 1", lambda: None])
def test_a_broken_credential_says_nothing_of_itself(here, source):
    toolkit = secured({"bearer": []}, server=here.url, auth={"bearer": source})
    with pytest.raises(GeckoError, match=r"auth\['bearer'\]") as caught:
        toolkit["t"].real()
    assert "s3cr3t" not in "".join(traceback.format_exception(caught.value, chain=False))
    assert here.asked == []


@pytest.mark.parametrize("scheme", ["basic", "bearer", "head", "query", "cookie"])
@pytest.mark.parametrize("status", [200, 401, 503])
def test_no_credential_in_what_comes_back(here, caplog, scheme, status):
    """The server echoes all that it was sent, as servers of tests and error pages do."""
    caplog.set_level("DEBUG")
    secret = f"me:{SECRET}" if scheme == "basic" else SECRET
    here.answer = lambda asked: as_json({"target": asked.target, "headers": asked.headers, secret: secret}, status)
    for method in ("get", "post"):
        toolkit = secured({scheme: []}, server=here.url, auth={scheme: secret}, method=method)
        try:
            answer = as_answer(toolkit["t"].real(q="x"))
            shown = json.dumps(answer.result, ensure_ascii=False)
        except InDoubt as error:
            shown = "".join(traceback.format_exception(error))
        assert "HTTP Request" in caplog.text  # httpx logs each request's address
        shown += caplog.text
        for hidden in (SECRET, "s3cr3t", base64.b64encode(secret.encode()).decode()):
            assert hidden not in shown
        assert "s3cr3t" not in repr(toolkit["t"]) + repr(toolkit["t"].real) + json.dumps(toolkit.to_openapi())


@pytest.mark.parametrize("answer", [lambda asked: as_json({"seen": asked.headers}), lambda asked: None])
def test_no_credential_in_prompts_states_events_and_checkpoints(here, answer):
    here.answer = answer
    toolkit = secured({"bearer": []}, server=here.url, auth={"bearer": SECRET}).open("t")
    model = recorded(planner=[[{"call": "t", "args": {"q": "x"}}, {"say": "Done."}]], checklist=[{"items": []}])
    saver = InMemorySaver()
    graph = create_gecko(toolkit, model=model, checkpointer=saver)
    config = {"configurable": {"thread_id": "1"}}
    given = {"messages": [("user", "Look.")], "task_state": {"runtime_state": {}}}
    seen = [
        *graph.stream(given, config, stream_mode=["updates", "custom", "values", "messages", "debug"], subgraphs=True)
    ]
    assert here.asked[0].header("authorization")
    shown = repr(seen) + repr(saver.storage) + repr(saver.blobs) + repr(saver.writes) + repr(model)
    assert "/x" in shown or "t" in shown
    assert "s3cr3t" not in shown


def test_no_credential_leads_elsewhere(here):
    with serving() as other:
        here.answer = lambda asked: (302, {"location": f"{other.url}/steal"}, b"")
        toolkit = secured({"bearer": []}, server=here.url, auth={"bearer": SECRET})
        assert as_answer(toolkit["t"].real()).status == "error"
        assert other.asked == []
    here.answer = lambda asked: (302, {"location": "/y"}, b"") if asked.target == "/x" else as_json({})
    assert toolkit["t"].real() == {}
    assert here.asked[-1].header("authorization") == here.asked[0].header("authorization")


def base_of(given, server=None, **more):
    whole = {**document({"/x": {"get": {"responses": {}}}}), **({"servers": given} if given is not None else {})}
    real = Toolkit.from_openapi(whole, server=server, **more)["get_x"].real
    return None if real is None else real._base


VARIABLES = {"region": {"default": "eu", "enum": ["eu", "us"]}, "v": {"default": "v2"}}
TEMPLATE = [{"url": "https://{region}.api.test/{v}", "variables": VARIABLES}]


@pytest.mark.parametrize(("given", "server", "base"), [
    (None, None, None), ([{"url": "/api/v3"}], None, None),
    ([{"url": "https://a.test/v1/"}, {"url": "https://b.test"}], None, "https://a.test/v1"),
    ([{"url": "https://a.test/v1"}], "http://127.0.0.1:8080", "http://127.0.0.1:8080"),
    ([{"url": "/api/v3"}], "http://127.0.0.1:8080", "http://127.0.0.1:8080/api/v3"),
    (None, "https://a.test/v1", "https://a.test/v1"), (TEMPLATE, None, "https://eu.api.test/v2"),
    (TEMPLATE, {"region": "us"}, "https://us.api.test/v2"), ([{"url": "https://{none}.test"}], None, None),
    ([{"url": "https://me:pw@a.test"}], None, None),
])  # fmt: skip
def test_servers(given, server, base):
    assert base_of(given, server) == base


@pytest.mark.parametrize(("server", "about"), [
    ("api.test", "expected an address"), ("https://me:s3cr3t@api.test", "without credentials"),
    ({"regoin": "us"}, "unknown variables"), ("https://api.test?key=s3cr3t", "expected an address"),
    ({"region": "moon"}, "must be one of eu, us"),
])  # fmt: skip
def test_a_wrong_server_is_refused(server, about):
    with pytest.raises(ToolkitError, match=about) as caught:
        base_of(TEMPLATE, server)
    assert "s3cr3t" not in str(caught.value)


ODD = [
    7, "a", [7], ["http://"], {"a": 7}, [{"url": 7, "variables": []}], [{"url": "https://{a}", "variables": {"a": 7}}],
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_what_is_broken_of_servers_security_and_styles_loses_no_tool(odd):
    parameter = {"name": "q", "in": "query", "style": odd, "explode": odd, "allowReserved": odd}
    media = {"schema": {"type": "object", "properties": {"a": {}}}, "encoding": odd}
    operation = {"parameters": [parameter], "requestBody": {"content": {"multipart/form-data": media}}}
    components = {"securitySchemes": {"a": odd, "b": {"type": odd, "in": odd, "name": odd}}}
    root = {"components": components, "servers": odd, "security": [{"a": []}, {"b": odd}] if odd == 7 else odd}
    whole = document({"/x": {"post": {**operation, "servers": odd, "security": odd}}, "/y": {"get": {}}}, **root)
    tool, _ = toolkit = Toolkit.from_openapi(whole)
    assert build_request(tool, "https://a.test", {"q": [1], "a": "x"}, extra={}).url.host == "a.test"
    back, _ = Toolkit.from_openapi(toolkit.to_openapi())
    assert back.binding == tool.binding
