"""Convert runs and judgements of a server to those of ranx, which is imported when needed.

The other direction needs no conversion: `collection.submit(run)` takes a Run of ranx.
"""

from __future__ import annotations

from typing import Any

from .collection import Collection
from .errors import EvalHubError
from .runs import Run


def to_ranx(run: Run) -> Any:
    """Return the ranx.Run of a submitted run, with its tag as its name."""
    import ranx

    results: dict[str, dict[str, float]] = {}
    for line in run.file().decode().splitlines():
        columns = line.split()
        if columns and not columns[0].startswith("#"):
            results.setdefault(columns[0], {})[columns[2]] = float(columns[4])

    return ranx.Run(results, name=run.tag)


def to_ranx_qrels(collection: Collection, version: int | None = None) -> Any:
    """Return the ranx.Qrels of a version of the judgements, by default the active one.

    ranx knows neither subtopics nor levels below 0: a document that is judged more than once has
    its highest level, and at least 0, which is worth as much as no judgement. Raise EvalHubError if
    no judgements are shown.
    """
    import ranx

    number = version or collection.info().active_qrels
    if number is None:
        raise EvalHubError(f"collection {collection.slug} shows no judgements")

    judgements: dict[str, dict[str, int]] = {}
    for line in collection.qrels_file(number).decode().splitlines():
        columns = line.split()
        if columns and not columns[0].startswith("#"):
            topic, document, level = columns[0], columns[2], int(columns[3])
            levels = judgements.setdefault(topic, {})
            levels[document] = max(level, levels.get(document, 0))

    return ranx.Qrels(judgements, name=collection.slug)
