"""Guidelines and agreements: Markdown as HTML that is safe to show."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

# CommonMark with tables. HTML in a text is summary as text, links to scripts are none, and pictures,
# which would tell another server who reads the page, are not drawn.
_READER = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


@lru_cache(maxsize=64)
def rendered(text: str, level: int = 2) -> SafeString:
    """Return Markdown as HTML with headings from a level on, and links marked as a user's."""
    tokens = _READER.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + level - 1)}"

        for inner in token.children or ():
            if inner.type == "link_open":
                inner.attrSet("rel", "nofollow noopener")

    return mark_safe(_framed(tokens))  # noqa: S308


def _framed(tokens: Sequence[Token]) -> str:
    """Return tokens as HTML, with tables that scroll in a frame of their own."""
    options: Any = _READER.options
    html: str = _READER.renderer.render(tokens, options, {})
    frame = (
        '<div class="scroll" role="region" aria-label="Table" tabindex="0"><table class="small">'
    )

    return html.replace("<table>", frame).replace("</table>", "</table></div>")
