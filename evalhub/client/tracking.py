"""Read the metrics of a run for experiment trackers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .errors import EvalHubError
from .runs import Run

JUDGED = "Judged@10"
COVERAGE = "coverage"


@dataclass(frozen=True)
class Metrics:
    """The values of metrics by name, tags that say where they come from, and what is undefined."""

    values: dict[str, float]
    tags: dict[str, str]
    # Measures without a mean: no tracker accepts None as a value.
    undefined: list[str]


def read_metrics(run: Run, measures: Sequence[str]) -> Metrics:
    """Return the means of an evaluated run, its coverage and Judged@10, which explain differences.

    `measures` are by default those of the collection. Raise Blind while the judgements are blind.
    """
    means = run.means(*measures)
    measured = {**means, **run.means(JUDGED)}
    answered, judged = means.coverage["answered"], means.coverage["judged"]
    if not judged:
        raise EvalHubError(f"no topic of {run.tag} is judged")

    tags = {
        "evalhub.run": run.id,
        "evalhub.tag": run.tag,
        "evalhub.team": run.team,
        "evalhub.collection": run.collection,
        "evalhub.qrels": str(means.qrels),
        "evalhub.engine": str(means.engine_version),
        "evalhub.sha256": run.sha256,
        "evalhub.url": run.page,
    }

    values = {name: value for name, value in measured.items() if value is not None}
    undefined = [name for name, value in measured.items() if value is None]
    return Metrics({**values, COVERAGE: answered / judged}, tags, undefined)
