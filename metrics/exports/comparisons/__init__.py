"""EXPORTS: the table of a comparison for each format of a file."""

from __future__ import annotations

from collections.abc import Callable

from metrics.exports.comparisons.tables import pairs_table, paper_table
from metrics.exports.table import Table
from metrics.services.comparisons.shown_pairs import PairSelection
from metrics.services.comparisons.stored import Answer
from runs.models import Collection

# Each raises InvalidInput for a comparison that has no such table.
EXPORTS: dict[str, Callable[[Collection, Answer, PairSelection], Table]] = {
    "csv": pairs_table,
    "md": paper_table,
    "tex": paper_table,
}
