"""What is computed of session sets as the API answers it."""

from __future__ import annotations

from typing import Any

from metrics.api.answers import number, numbers
from metrics.engine.sessions.blocks import Session
from metrics.models import SessionEvaluation
from metrics.services.session_values import SetValues, is_stale
from metrics.services.session_views import Mean

Body = dict[str, Any]


def read_from(evaluation: SessionEvaluation) -> Body:
    """Which evaluation of which session set an answer was made from; judged are the sessions with judgements."""
    return {
        "session_set": evaluation.session_set_id,
        "qrels": evaluation.qrels.version if evaluation.qrels else None,
        "judged_by": evaluation.judged_by,
        "engine_version": evaluation.engine_version,
        "stale": is_stale(evaluation),
        "coverage": {"judged": evaluation.sessions_judged, "sessions": evaluation.session_set.sessions},
    }


def values_as_json(values: SetValues, page: slice) -> Body:
    """Means over all chosen sessions and by system; the values of one page of the sessions."""
    judged = values.chosen.judged
    columns = {name: numbers(vector[page].tolist()) for name, vector in values.vectors.items()}
    places = range(*page.indices(len(judged.sessions)))
    return {
        "means": {name: _mean(mean) for name, mean in values.means.items()},
        "systems": [
            {"system": name.decode(), "means": {of: _mean(means[index]) for of, means in values.systems.items()}}
            for index, name in enumerate(judged.systems)
        ],
        "sessions": [
            {
                **_session(judged.sessions[place], int(values.chosen.places[place])),
                "queries": int(judged.view.queries[place]),
                "values": {name: column[index] for name, column in columns.items()},
            }
            for index, place in enumerate(places)
        ],
    }


def _mean(mean: Mean) -> Body:
    return {"mean": number(mean[0]), "sessions": mean[1]}


def _session(session: Session, place: int) -> Body:
    return {
        "number": place + 1,
        "session_id": session.session_id.decode(),
        "topic_id": session.topic_id.decode(),
        "searcher": session.searcher.decode(),
        "system": session.system.decode(),
    }
