"""HAR files: real traffic becomes rows, users stay apart, secrets stay out, and what is no call is counted by cause."""

import copy
import json
from itertools import pairwise

import pytest

from gecko_graph import GeckoError, Toolkit
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.learning.readers import read_file
from gecko_graph.values.observation import BadRows
from tests.every_place import every_place
from tests.learning.traffic import bare_spec, files_to_learn_from, har, write_har

HOST = "http://shop.test"


@pytest.fixture(scope="module")
def traffic():
    """The HAR of 60 calls, as if they had gone to one host, and the tools without contracts."""
    keep = []
    document = har(60, keep=keep)
    text = json.dumps(document).replace(keep[0], HOST)
    return json.loads(text), Toolkit.from_openapi({**bare_spec(), "servers": [{"url": HOST}]})


def read(path, toolkit, **more):
    bad = BadRows()
    return list(read_file(path, bad, toolkit, **more)), bad


def test_every_call_becomes_a_row_with_what_reads_had_shown(traffic, tmp_path):
    document, toolkit = traffic
    rows, bad = read(write_har(tmp_path / "a.har", document), toolkit)
    assert (len(rows), bad.counts.total()) == (60, 0)
    assert {row.status for row in rows} == {"ok", "error"}
    order = next(row for row in rows if row.tool == "placeOrder" and row.status == "ok")
    assert set(order.args) == {"sku", "quantity"}
    assert order.result["order_id"].startswith("A-")
    last = rows[-1]
    assert last.shown
    assert all(toolkit[one["name"]].reads for one in last.shown)
    assert "demo-key" not in json.dumps([row.to_row(masked=False) for row in rows])
    learned = learn_contracts(toolkit, rows)
    assert set(learned.contracts) == {row.tool for row in rows}


def test_users_are_told_apart_by_their_credential(traffic, tmp_path):
    document, toolkit = copy.deepcopy(traffic[0]), traffic[1]
    for number, one in enumerate(document["log"]["entries"]):
        headers = [each for each in one["request"]["headers"] if each["name"] != "x-api-key"]
        headers.append({"name": "Cookie", "value": f"session={'ann' * 5 if number % 2 else 'bob' * 5}; theme=dark"})
        one["request"]["headers"] = headers
    rows, _ = read(write_har(tmp_path / "a.har", document), toolkit)
    users = {row.source.partition("user ")[2] for row in rows}
    assert len(users) == 2
    text = json.dumps([row.to_row(masked=False) for row in rows])
    assert not any(secret in text for secret in ("annann", "bobbob"))


def test_a_secret_in_arguments_or_answers_is_masked(traffic, tmp_path):
    document, toolkit = copy.deepcopy(traffic[0]), traffic[1]
    one = next(each for each in document["log"]["entries"] if each["request"]["url"].endswith("/account"))
    answer = {"balance": 1, "echo": "demo-key", "password": "hunter2", "said": "Bearer abcdef0123456789abcdef"}
    one["response"]["content"] = {"mimeType": "application/json", "text": json.dumps(answer)}
    document["log"]["entries"] = [one]
    ((row,), _) = read(write_har(tmp_path / "a.har", document), toolkit)
    text = json.dumps(row.to_row(masked=False))
    assert not any(secret in text for secret in ("demo-key", "hunter2", "abcdef0123456789"))


@pytest.mark.parametrize(("text", "expected"), [('{"error": "it is shipped"}', ["error"]), ("busy", [])])
def test_a_conflict_is_a_refusal_where_its_answer_is_an_object(traffic, tmp_path, text, expected):
    document, toolkit = copy.deepcopy(traffic[0]), traffic[1]
    one = next(each for each in document["log"]["entries"] if "/items" in each["request"]["url"])
    one["response"] |= {"status": 409, "content": {"mimeType": "application/json", "text": text}}
    rows, bad = read(write_har(tmp_path / "a.har", {"log": {"entries": [one]}}), toolkit)
    assert ([row.status for row in rows], sum(bad.counts.values())) == (expected, 1 - len(expected))


def change(entry, path, value):
    *keys, last = path
    for key in keys:
        entry = entry[key]
    entry[last] = value


@pytest.mark.parametrize(
    ("path", "value", "cause"),
    [
        (["request", "url"], "https://tracker.test/items", "another server"),
        (["request", "url"], f"{HOST}/favicon.ico", "no operation has its path"),
        (["request", "method"], "OPTIONS", "no operation has its method"),
        (["request", "url"], f"{HOST}/items?utm_source=x", "a parameter that findItems does not have: utm_source"),
        (["request", "url"], None, "no usable `url`"),
        (["request"], [], "no usable `request`"),
        (["response", "status"], 0, "it was not answered"),
        (["response", "status"], 503, "HTTP 503"),
        (["response", "status"], 401, "HTTP 401"),
        (["response", "content"], {"size": 9}, "not recorded"),
        (["response", "content"], {"text": "?", "encoding": "base64"}, "base64"),
        (["request", "headers"], [1], "not of a known form"),
    ],
)
def test_what_is_no_call_is_counted_by_cause(traffic, tmp_path, path, value, cause):
    document, toolkit = traffic
    good = next(each for each in document["log"]["entries"] if "/items" in each["request"]["url"])
    broken = copy.deepcopy(good)
    change(broken, path, value)
    file = write_har(tmp_path / "a.har", {"log": {"entries": [good, broken]}})
    rows, bad = read(file, toolkit)
    assert len(rows) == 1
    ((found, count),) = bad.counts.items()
    assert (cause in found, count) == (True, 1)
    assert bad.named[found] == [f"{file}: log.entries[1]"]


FORM = {
    "openapi": "3.1.0",
    "info": {"title": "forms", "version": "1"},
    "servers": [{"url": HOST}],
    "paths": {"/notes": {"post": {"operationId": "addNote", "responses": {"200": {"description": "done"}}}}},
}


LEFT_OUT = "a multipart body whose text is missing"


@pytest.mark.parametrize(
    ("media", "body", "expected"),
    [
        ("multipart/form-data", {"text": "--x\r\n"}, "a multipart body without a boundary"),
        ("multipart/form-data", {"params": [{"name": "text", "value": "hi"}]}, LEFT_OUT),
        ("application/x-www-form-urlencoded", {"params": [{"name": "text", "value": "a & b"}]}, {"text": "a & b"}),
        ("application/x-www-form-urlencoded", {"text": "text=a+%26+b"}, {"text": "a & b"}),
    ],
)
def test_forms_are_read_and_bodies_of_many_parts_counted(tmp_path, media, body, expected):
    """A browser may leave a form's text out, and its fields stand alone: a call without them never was."""
    document = copy.deepcopy(FORM)
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    document["paths"]["/notes"]["post"]["requestBody"] = {"content": {media: {"schema": schema}}}
    toolkit = Toolkit.from_openapi(document)
    request = {"method": "POST", "url": f"{HOST}/notes", "headers": [], "postData": {"mimeType": media, **body}}
    answer = {"status": 200, "headers": [], "content": {"mimeType": "application/json", "text": "{}"}}
    entries = [{"startedDateTime": "1", "request": request, "response": answer}]
    rows, bad = read(write_har(tmp_path / "a.har", {"log": {"entries": entries}}), toolkit)
    assert [row.args for row in rows] == ([] if isinstance(expected, str) else [expected])
    assert dict(bad.counts) == ({expected: 1} if isinstance(expected, str) else {})


@pytest.mark.parametrize(
    ("text", "place"),
    [('{"log": {"entries": [', "line 1, column 22"), ('{"log": []}', "`log`"), ('{"log": {}}', "`entries`")],
)
def test_a_broken_file_is_an_error_with_its_place(traffic, tmp_path, text, place):
    file = tmp_path / "a.har"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(GeckoError, match=place):
        read(file, traffic[1])


def test_another_server_may_be_named(traffic, tmp_path):
    document, toolkit = traffic
    text = json.dumps(document).replace(HOST, "https://stage.test/shop")
    file = write_har(tmp_path / "a.har", json.loads(text))
    assert read(file, toolkit)[1].counts == {"another server": 60}
    assert len(read(file, toolkit, server="https://stage.test/shop")[0]) == 60


@pytest.mark.parametrize("put", [None, 7, "x", [], {}, [None], "\ud800"])
def test_a_damaged_entry_never_raises(traffic, tmp_path, put):
    document, toolkit = traffic
    wrote = next(each for each in document["log"]["entries"] if "postData" in each["request"])
    damaged = []
    for path, _ in list(every_place(wrote))[1:]:
        damaged.append(copy.deepcopy(wrote))
        change(damaged[-1], path, put)
    rows, bad = read(write_har(tmp_path / "a.har", {"log": {"entries": damaged}}), toolkit)
    assert len(rows) + bad.counts.total() == len(damaged)
    assert len(bad.counts) < 12


def test_what_reads_have_shown_is_known_at_each_later_call(tmp_path):
    for name, text in files_to_learn_from().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    shows = {"op": "add", "path": ["items"], "value": "{{ {one.sku: one for one in result['items']} }}"}
    reads = {"contracts": {"findItems": {"observes": [shows]}}}
    toolkit = Toolkit.from_openapi(json.loads((tmp_path / "api.yaml").read_text())).with_contracts(reads)
    rows, _ = read(tmp_path / "traffic.har", toolkit)
    assert len(rows) > 300  # more than one world follows
    assert all("items" in (row.before or {}) for last, row in pairwise(rows) if last.tool == "findItems")
    assert rows[0].before is None
    rules = learn_contracts(toolkit, rows).count_rules()
    assert rules["established"] >= 2
