"""HAR files as browsers, proxies and test tools write them: what was recorded is read, what was not teaches nothing."""

import json

import pytest

from gecko_graph.learning.har import read_har
from gecko_graph.values.observation import BadRows

from .har_writers import ANSWERS, JSON, REQUESTS, TOOLKIT, entry


def read(tmp_path, *entries):
    file = tmp_path / "a.har"
    file.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    bad = BadRows()
    rows = list(read_har(file, bad, TOOLKIT))
    assert len(rows) + bad.counts.total() == len(entries)
    return rows, dict(bad.counts)


@pytest.mark.parametrize("writer", REQUESTS)
def test_a_request_is_read_as_its_writer_recorded_it(tmp_path, writer):
    method, request, expected = REQUESTS[writer]
    rows, counts = read(tmp_path, entry(method, request))
    assert ([row.args for row in rows] or [*counts]) == [expected]


@pytest.mark.parametrize("writer", ANSWERS)
def test_an_answer_is_read_as_its_writer_recorded_it(tmp_path, writer):
    content, response, expected = ANSWERS[writer]
    rows, counts = read(tmp_path, entry(content=content, **response))
    assert ([row.result for row in rows] or [*counts]) == [expected]


def test_an_answer_to_head_has_no_body_whatever_its_length(tmp_path):
    length = {"name": "content-length", "value": "900"}
    rows, _ = read(tmp_path, entry("HEAD", content={"size": 0, "mimeType": JSON}, headers=[length]))
    assert [row.result for row in rows] == [None]


@pytest.mark.parametrize(
    "begins",
    [
        ["2026-01-01T10:00:00Z", "2026-01-01T10:00:00.25Z", "2026-01-01T10:00:00.500Z"],
        ["2026-01-01T10:00:00.123456788Z", "2026-01-01T10:00:00.123456789Z", "2026-01-01T10:00:00.1234568Z"],
        ["2026-10-25T02:59:00.000+02:00", "2026-10-25T02:01:00.000+01:00"],
        ["2026-01-01T09:59:00.000+0100", "2026-01-01T09:30:00.000Z"],
        ["2026-01-01T23:30:00-05:00", "2026-01-02T04:31:00z", "2026-01-02T10:02:00.5+05:30"],
        ["2026-01-01T10:00:00.999999+00:00", "2026-01-01T10:00:01+00:00", "2026-01-01T10:00:01.000001+00:00"],
        ["2026-01-01T10:00:00,1Z", "2026-01-01 10:00:00.2Z"],
    ],
)
def test_calls_are_in_the_order_of_their_times(tmp_path, begins):
    entries = [entry(query=f"?n={number}", at=at) for number, at in enumerate(begins)]
    for given in (entries, entries[::-1]):
        rows, _ = read(tmp_path, *given)
        assert [str(row.args["n"]) for row in rows] == [str(number) for number in range(len(begins))]


@pytest.mark.parametrize("at", ["", "yesterday", 7, None, "9999-12-31T23:59:59-12:00"])
def test_a_begin_that_cannot_be_read_leaves_an_entry_in_its_place(tmp_path, at):
    begins = ["2026-01-01T10:00:01Z", at, "2026-01-01T10:00:00Z"]
    rows, _ = read(tmp_path, *(entry(query=f"?n={number}", at=each) for number, each in enumerate(begins)))
    assert [str(row.args["n"]) for row in rows] == ["2", "0", "1"]
