"""Read the query string of a request about a collection, and single parameters in it."""

from __future__ import annotations

from collections.abc import Mapping

from rest_framework.request import Request

from metrics.engine.judgement.judging import SCORE_TYPES
from metrics.questions.run_ids import without_labels
from runs.models import Collection
from runs.parameters import choice_in, number_in
from runs.web.parameters import text_of

_LEAST_SHARE = 0.0001


def query_of(request: Request, collection: Collection | None = None) -> dict[str, str]:
    """Return the parameters of a request; with its collection, with ids in place of labels."""
    parameters = text_of(request.query_params)
    return without_labels(parameters, collection, request.user) if collection else parameters


def scores_in(parameters: Mapping[str, str]) -> str | None:
    return choice_in(parameters, "scores", SCORE_TYPES)


def share_in(parameters: Mapping[str, str], name: str, default: float) -> float:
    return number_in(name, parameters.get(name) or str(default), _LEAST_SHARE, 1 - _LEAST_SHARE)
