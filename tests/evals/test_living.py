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
    assert living._tell(found, "members") == "1/1 of known (1 unknown), 1/2 of all"


def test_a_refusal_that_the_document_has_is_no_refusal_in_vain():
    rows = [{"status": 200, "other": 404, "refused": refused} for refused in (True, False)]
    assert living._tell_refused(rows) == "1 refused in vain, 1 as the document says"
