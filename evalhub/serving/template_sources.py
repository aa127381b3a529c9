"""Templates as they were when the web server started, each compiled at its first use.

To compile all of them takes a tenth of the start, and most processes show few pages. All texts are
read at once, so that a server shows the pages of its own code while an upgrade replaces the files.
"""

from __future__ import annotations

from pathlib import Path

from django.apps import apps

# Texts by name, which the settings pass to Django's loader of templates in memory.
TEXTS: dict[str, str] = {}


def own_templates() -> list[tuple[str, Path]]:
    """Return name and path of each template of EvalHub."""
    labels = ("evalhub", "runs", "metrics")
    folders = [Path(apps.get_app_config(label).path, "templates") for label in labels]
    return [
        (page.relative_to(folder).as_posix(), page)
        for folder in folders
        for page in folder.rglob("*.html")
    ]


def read_templates() -> None:
    """Read all of them, for this process and those that are forked from it."""
    TEXTS.update({name: page.read_text(encoding="utf-8") for name, page in own_templates()})
