"""What is computed of session sets as the API answers it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from metrics.api.answers import cautions_of, number, numbers
from metrics.api.comparisons.answers import omnibus_as_json, verdict_as_json
from metrics.engine import ENGINE_VERSION
from metrics.engine.ranking import Ints
from metrics.engine.sessions.analyses import LengthTable, MeanCurves
from metrics.engine.sessions.blocks import Session
from metrics.models import SessionEvaluation
from metrics.services.sessions.analyses import QueryCurves, SessionCurves
from metrics.services.sessions.board import SessionBoard, SystemRow, system_name
from metrics.services.sessions.comparison import Compared, SessionComparison
from metrics.services.sessions.judged_sets import Mean
from metrics.services.sessions.one_session import ShownQuery, ShownSession
from metrics.services.sessions.values import ChosenSessions, SetValues, is_stale
from runs.models import SessionSet

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
        "cautions": cautions_of(values.cautions),
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


def curves_as_json(chosen: ChosenSessions, drawn: SessionCurves) -> Body:
    """Each system's curve beside its ideal's, and each session's own where asked for."""
    curves = [
        {**_curve(chosen, drawn.curves, index, "sessions"), "ideal": numbers(drawn.ideal[index].tolist())}
        for index in range(len(chosen.judged.systems))
    ]
    body: Body = {"length": drawn.curves.values.shape[1], "curves": curves}
    if drawn.vectors is not None:
        body["sessions"] = [
            {**_session(session, int(chosen.places[place])), "values": numbers(drawn.vectors.of(place).tolist())}
            for place, session in enumerate(chosen.judged.sessions)
        ]
    return body


def queries_as_json(chosen: ChosenSessions, drawn: QueryCurves) -> Body:
    names = [name.decode() for name in chosen.judged.systems]
    curves = {
        which: [_curve(chosen, curve, index, "queries") for index in range(len(names))]
        for which, curve in drawn.curves.items()
    }
    changed = [
        {"system": name, "gained": gained, "lost": lost, "same": same}
        for name, (gained, lost, same) in zip(names, drawn.changed, strict=True)
    ]
    return {"curves": curves, "reformulations": changed}


def lengths_as_json(chosen: ChosenSessions, table: LengthTable) -> Body:
    """Sessions by number of queries: counts[0] have one query."""
    total = np.sum(table.counts, axis=0)
    rows = [
        {"system": name.decode(), **_lengths(table.counts[index])} for index, name in enumerate(chosen.judged.systems)
    ]
    return {"all": _lengths(total), "systems": rows}


def session_as_json(shown: ShownSession) -> Body:
    return {
        **_session(shown.session, shown.place),
        "judged": shown.is_judged,
        "value": number(shown.value),
        "starts": shown.starts.tolist(),
        "vector": numbers(shown.vector.tolist()),
        "ideal": numbers(shown.ideal.tolist()),
        "normalised": numbers(shown.normalised.tolist()),
        "queries": [_query(query, place) for place, query in enumerate(shown.queries, 1)],
    }


def board_as_json(board: SessionBoard) -> Body:
    query = board.query
    return {
        "judged_by": board.judged_by,
        "measures": [measure.name for measure in query.measures],
        "sort": query.sort.name,
        "order": "desc" if query.descending else "asc",
        "count": board.total,
        "states": board.states,
        "cautions": cautions_of(board.cautions),
        "judged_otherwise": board.others,
        "results": [_row(row, [measure.name for measure in query.measures]) for row in board.rows],
    }


def session_comparison_as_json(compared: SessionComparison) -> Body:
    query = compared.query
    first, second = (side.tolist() for side in compared.pairs.indices())
    names = [system.name for system in compared.systems]
    return {
        "judged_by": compared.judged_by,
        "qrels": compared.qrels.version if compared.qrels else None,
        "engine_version": ENGINE_VERSION,
        "measure": query.measure.name,
        "design": {"recognised": compared.recognised, "reason": compared.why, "used": compared.design},
        "cells": compared.cells,
        "test": compared.test,
        "correction": compared.correction,
        "alpha": query.rule.alpha,
        "confidence": query.options.confidence,
        "resamples": query.options.resamples,
        "seed": query.options.seed,
        "family": compared.family,
        "cautions": [asdict(caution) for caution in compared.result.cautions],
        "systems": [_compared(system) for system in compared.systems],
        "omnibus": {name: omnibus_as_json(result) for name, result in compared.omnibus.items()},
        "pairs": [
            {"a": names[a], "b": names[b], **_pair(compared, place)}
            for place, (a, b) in enumerate(zip(first, second, strict=True))
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


def _curve(chosen: ChosenSessions, curves: MeanCurves, index: int, what: str) -> Body:
    return {
        "system": chosen.judged.systems[index].decode(),
        what: int(curves.count[index]),
        "values": numbers(curves.values[index].tolist()),
    }


def _lengths(counts: Ints) -> Body:
    sessions, queries = int(counts.sum()), int(counts @ np.arange(1, len(counts) + 1))
    mean = queries / sessions if sessions else None
    return {"sessions": sessions, "queries": queries, "mean": mean, "counts": counts.tolist()}


def _query(query: ShownQuery, place: int) -> Body:
    return {
        "number": place,
        "text": query.query.text,
        "time": query.query.time,
        "scanned": query.scanned,
        "clicked": [doc.decode() for doc in query.query.clicked],
        "count": query.count,
        "documents": [asdict(document) for document in query.documents],
        "contribution": number(query.contribution),
        "ideal": number(query.ideal),
        "share": number(query.share),
        "change": number(query.change),
        "reformulation": _reformulation(query.change),
    }


def _reformulation(change: float) -> str | None:
    return None if np.isnan(change) else "gained" if change > 0 else "lost" if change < 0 else "same"


def set_name(session_set: SessionSet) -> Body:
    return {
        "id": session_set.pk,
        "team": session_set.team.slug,
        "tag": session_set.tag,
        "created_at": session_set.created_at,
    }


def _row(row: SystemRow, measures: list[str]) -> Body:
    evaluation = row.evaluation
    return {
        "rank": row.rank,
        "code": row.code,
        "reason": row.reason,
        "stale": row.stale,
        "name": system_name(evaluation, row.system),
        "session_set": set_name(evaluation.session_set),
        "system": row.system,
        "sessions": row.sessions,
        "qrels": evaluation.qrels.version if evaluation.qrels else None,
        "engine_version": evaluation.engine_version,
        "values": {name: _mean(row.values[name]) for name in measures},
    }


def _compared(system: Compared) -> Body:
    return {
        "name": system.name,
        "session_set": system.evaluation.session_set_id,
        "system": system.system,
        "sessions": system.sessions,
        "with_value": system.with_value,
        "mean": number(system.mean),
    }


def _pair(compared: SessionComparison, place: int) -> Body:
    result = compared.result
    return {
        "difference": number(float(result.difference[place])),
        "low": number(float(result.low[place])),
        "high": number(float(result.high[place])),
        "statistic": number(float(result.statistic[place])),
        "p_value": number(float(result.p_value[place])),
        "p_adjusted": number(float(compared.adjusted[place])),
        "significant": bool(compared.verdicts.significant[place]),
        **verdict_as_json(compared.better(place), compared.withheld(place)),
    }
