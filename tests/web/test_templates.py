"""Templates: all of them compile, and a running server keeps those that it began with."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.template import Engine, TemplateDoesNotExist
from django.template.loader import get_template
from django.template.loaders.cached import Loader

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
    monkeypatch.setattr(template_sources, "own_templates", lambda: [("page.html", page)])
    (loader,) = Engine.get_default().template_loaders
    assert isinstance(loader, Loader)
    loader.reset()
    try:
        template_sources.read_templates()
        for template in (page, other):
            template.write_text("as it is now")
        assert get_template("page.html").render() == "as it was"
        with pytest.raises(TemplateDoesNotExist):
            get_template("other.html")
    finally:
        del template_sources.TEXTS["page.html"]
        loader.reset()
