"""EXPORTS: how a comparison is written as a file. A new format is a renderer and a line here."""

from __future__ import annotations

from metrics.exports.comparisons import comma_separated, latex, markdown
from metrics.exports.comparisons.export import Export

EXPORTS: dict[str, Export] = {
    "csv": Export(comma_separated.render, "text/csv; charset=utf-8"),
    "md": Export(markdown.render, "text/markdown; charset=utf-8"),
    "tex": Export(latex.render, "application/x-tex; charset=utf-8"),
}
