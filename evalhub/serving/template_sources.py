"""Templates as they were when the web server started, each compiled at its first use.

To compile all of them takes a tenth of a start, and most processes show few pages. Their texts are
read at once, so that a server whose files are replaced under it, by an upgrade, goes on showing the
pages that its code knows.
"""

from __future__ import annotations

from pathlib import Path

from django.apps import apps

# By name: the settings give them to Django's loader of templates in memory.
TEXTS: dict[str, str] = {}


def own_templates() -> list[tuple[str, Path]]:
    """Return name and path of each template of EvalHub."""
    folders = [
        Path(apps.get_app_config(label).path, "templates")
        for label in ("evalhub", "runs", "metrics")
    ]
    return [
        (page.relative_to(folder).as_posix(), page)
        for folder in folders
        for page in folder.rglob("*.html")
    ]


def read_templates() -> None:
    """Read all of them, for this process and those that are forked from it."""
    TEXTS.update({name: page.read_text(encoding="utf-8") for name, page in own_templates()})
