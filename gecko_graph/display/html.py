"""HTML from templates that escape every value; a page is one file that loads nothing."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from . import words

_PAGES = Path(__file__).resolve().parent / "pages"


def render(template: str, *, folder: Path = _PAGES, **values: Any) -> str:
    """Return a template of `folder` or of this package's `pages`, rendered; all values but `Markup` are escaped."""
    return _environment(folder).get_template(template).render(values)


@cache
def _environment(folder: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader([folder, _PAGES]), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals["words"] = words
    return environment
