"""How commands show their help: lists of examples and knobs keep their columns."""

from __future__ import annotations

from typing import get_args

import click


class Command(click.Command):
    """A command whose epilog may hold lists: a title, and below it indented lines of a term and a text."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog: lists keep their columns, other paragraphs are wrapped."""
        for paragraph in filter(None, (self.epilog or "").strip().split("\n\n")):
            title, *lines = paragraph.splitlines()
            if not lines or not lines[0].startswith(("  ", "{")):
                formatter.write_paragraph()
                formatter.write_text(" ".join([title, *lines]))
                continue
            rows = _list_knobs() if lines == ["{knobs}"] else [line.strip().partition("  ")[::2] for line in lines]
            with formatter.section(title.removesuffix(":")):
                formatter.write_dl([(term, text.strip()) for term, text in rows], col_max=formatter.width // 2)


class Commands(Command, click.Group):
    """The commands, listed in the order of their definition."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names."""
        return list(self.commands)


def _list_knobs() -> list[tuple[str, str]]:
    """Return of each knob its name, and what it is, the words that it takes, and its default."""
    import json

    from ..context import GeckoContext  # here, because it is slow to import and seldom needed

    rows = []
    for name, field in GeckoContext.model_fields.items():
        literals = [word for part in (field.annotation, *get_args(field.annotation)) for word in get_args(part)]
        words = " | ".join(word for word in literals if isinstance(word, str))
        about = str(field.description).rstrip(".")
        about = (f"{words}: " if words else "") + about[0].lower() + about[1:]
        default = f"[{', '.join(field.default)}]" if name == "ladder" else json.dumps(field.default).strip('"')
        rows.append((name, f"{about} ({default})"))
    return rows
