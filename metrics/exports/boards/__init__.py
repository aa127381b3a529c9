"""EXPORTS: how a leaderboard is written as a file. A new format is a renderer and a line here."""

from __future__ import annotations

from metrics.exports.boards import comma_separated, latex, markdown, trec_eval
from metrics.exports.boards.export import Export

EXPORTS: dict[str, Export] = {
    "csv": Export(comma_separated.render, "text/csv; charset=utf-8", "csv"),
    "md": Export(markdown.render, "text/markdown; charset=utf-8", "md"),
    "tex": Export(latex.render, "application/x-tex; charset=utf-8", "tex"),
    "trec_eval": Export(trec_eval.render, "text/plain; charset=utf-8", "txt"),
}
