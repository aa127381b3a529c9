"""evalhub document_sessions: print the measures of docs/sessions.md, generated from docstrings."""

from __future__ import annotations

from typing import Any

from evalhub.management import command
from evalhub.management.commands.document_measures import describe
from metrics.engine.sessions.measures import SESSION_MEASURES


class Command(command.Command):
    help = "Print the reference of docs/sessions.md."

    def handle(self, **options: Any) -> None:
        self.stdout.write(reference(), ending="")


def reference() -> str:
    """Return the reference as Markdown: a section below the page's for every measure."""
    return "\n".join(f"#{describe(definition)}" for definition in SESSION_MEASURES.values())
