"""The suite `living`: the coverage of published documents."""

import httpx
import pytest

from evals.harness.options import SHARED
from evals.services.walk import repeat
from evals.suites import living


@pytest.mark.skipif(not (SHARED / "openapi").is_dir(), reason="the shared documents are not here")
def test_two_thirds_of_published_operations_have_a_kind(capsys):
    assert living.run(["--documents", "--draw", "1"]) == 0
    told = capsys.readouterr().out
    assert "have a kind that a state answers" in told
    assert len(told.splitlines()) > 100


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
