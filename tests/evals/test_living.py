"""The suite `living`: what is counted of an answer."""

import httpx

from evals.services.walk import repeat
from evals.suites import living


def test_what_an_answer_marks_as_unknown_is_counted_beside_and_a_busy_service_not_at_all():
    def answer(request):
        marked = {"x-gecko-made-up": "true"} if request.url.path == "/pages" else {}
        return httpx.Response(200, json=[{"id": 2}], headers=marked)

    row = {"res": "pets", "method": "GET", "status": 200, "answer": [{"id": 1}], "own": [], "key": "id"}
    paths = ("/pets", "/pages", "/busy")
    rows = [{**row, "kind": "list page", "path": path, "status": 503 if path == "/busy" else 200} for path in paths]
    with httpx.Client(transport=httpx.MockTransport(answer), base_url="http://x") as client:
        found = [{**each, "against": False} for each in repeat(client, "", rows)]
    assert [each["path"] for each in found] == ["/pets", "/pages"]
    found[1]["members"] = False
    (row,) = living.table_of("", [("x", [{**each, "refused": False} for each in found])], "members").rows
    assert [getattr(cell, "hits", cell) for cell in row] == ["x", 1, 1, 0, 1, 0]
