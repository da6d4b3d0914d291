"""The report of a run: one HTML file that opens offline."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from pathlib import Path

from .result import Result
from .terminal import markdown


def write_report(result: Result, pages: Iterable[Path]) -> None:
    """Write the report to each of these files, and the summary beside the first as `summary.json` and `summary.md`."""
    files = list(pages)
    for page in files:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("<pre>" + escape("\n".join(markdown(result))), encoding="utf-8")
    text = json.dumps(result.as_json(), ensure_ascii=False, indent=1)
    files[0].with_name("summary.json").write_text(text + "\n", encoding="utf-8")
    files[0].with_name("summary.md").write_text("\n".join(markdown(result)) + "\n", encoding="utf-8")
