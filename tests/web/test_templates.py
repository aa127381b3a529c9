"""Templates: all of them compile, and a running server keeps those that it began with."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.template import Origin, engines
from django.template.loader import get_template

from evalhub.serving import template_sources


def test_every_template_compiles() -> None:
    """A server compiles each at its first use."""
    names = [name for name, _ in template_sources.own_templates()]
    assert len(names) > 150
    for name in names:
        get_template(name)


def test_a_template_that_was_read_is_not_read_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page, other = tmp_path / "page.html", tmp_path / "other.html"
    page.write_text("as it was")
    monkeypatch.setattr(template_sources, "_texts", {})
    monkeypatch.setattr(template_sources, "own_templates", lambda: [("page.html", page)])
    template_sources.read_templates()
    for one in (page, other):
        one.write_text("as it is now")
    loader = template_sources.Loader(engines["django"].engine)  # type: ignore[attr-defined]
    found = [loader.get_contents(Origin(str(one))) for one in (page, other)]
    assert found == ["as it was", "as it is now"]
