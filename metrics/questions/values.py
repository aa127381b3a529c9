"""The evaluation of a run that a request names, and the size of its answer."""

from __future__ import annotations

from collections.abc import Mapping

from metrics.models import Evaluation
from metrics.questions.parameters import scores_in
from metrics.services.question import MAX_VERSION
from metrics.services.values.values import find_evaluation
from runs.errors import InvalidInput
from runs.models import Run
from runs.parameters import integer_in

MAX_VALUES = 1_000_000


def evaluation_in(parameters: Mapping[str, str], run: Run) -> Evaluation:
    """Return the evaluation of the run that `qrels` and `scores` name."""
    version = integer_in(parameters, "qrels", 0, 0, MAX_VERSION) or None
    return find_evaluation(run=run, scores=scores_in(parameters), version=version)


def check_size(values: int, pointer: str = "per_topic") -> None:
    """Raise InvalidInput if the curves of all topics, or of all runs, make too long an answer."""
    if values > MAX_VALUES:
        scope = "of single topics " if pointer == "per_topic" else ""
        message = (
            f"{values:,} values {scope}requested; the limit is {MAX_VALUES:,}: "
            "use fewer ranks or curves"
        )
        raise InvalidInput(message, code="too_many_values", pointer=pointer)
