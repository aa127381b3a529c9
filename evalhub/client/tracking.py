"""What experiment trackers are told of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .errors import EvalHubError
from .runs import Run

JUDGED = "Judged@10"
COVERAGE = "coverage"


@dataclass(frozen=True)
class Tracked:
    """Numbers by name, and what identifies them, as text."""

    numbers: dict[str, float]
    about: dict[str, str]
    # Measures that have no mean: no tracker takes None for a number.
    undefined: list[str]


def tracked(run: Run, measures: Sequence[str]) -> Tracked:
    """Return the means of an evaluated run, with its coverage and Judged@10, which explain most differences.

    `measures` are those of the collection unless they are named. Blind while the judgements are not
    released.
    """
    means = run.means(*measures)
    found = {**dict(means), **run.means(JUDGED)}
    answered, judged = means.coverage["answered"], means.coverage["judged"]
    if not judged:
        raise EvalHubError(f"no topic of {run.tag} is judged")

    about = {
        "evalhub.run": run.id,
        "evalhub.tag": run.tag,
        "evalhub.team": run.team,
        "evalhub.collection": run.collection,
        "evalhub.qrels": str(means.qrels),
        "evalhub.engine": str(means.engine_version),
        "evalhub.sha256": run.sha256,
        "evalhub.url": run.page,
    }

    numbers = {name: value for name, value in found.items() if value is not None}
    undefined = [name for name, value in found.items() if value is None]
    return Tracked({**numbers, COVERAGE: answered / judged}, about, undefined)
