"""The parameters of a ranking of one topic."""

from __future__ import annotations

from collections.abc import Mapping

from metrics.engine.errors import MeasureError
from metrics.engine.judgement.gains import LINEAR, GainMap
from runs.errors import InvalidInput
from runs.parameters import pointed


def topic_in(parameters: Mapping[str, str]) -> str:
    if not parameters.get("topic"):
        raise InvalidInput("give the topic, such as topic=301", code="required", pointer="topic")

    return parameters["topic"]


def ranking_gains_in(parameters: Mapping[str, str]) -> GainMap:
    try:
        return GainMap.parse(parameters.get("gains") or LINEAR.name)
    except MeasureError as error:
        raise pointed(error, "gains") from error
