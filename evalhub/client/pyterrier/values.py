"""PyTerrier's values beside EvalHub's."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from csv import DictReader
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import ir_measures
import pyterrier as pt

from ..agreement import UNEXPLAINED, Agreement, OtherValues, agree, agreement_row
from ..errors import EvalHubError, Refused
from ..hub import Hub
from ..runs import wait_for
from .datasets import judgements_in
from .stage import COLUMNS, Published

_TIME = "mrt"
# Columns of aggregated.csv about a comparison with a baseline.
_OF_BASELINE = (" +", " -", " p-value", " reject", " p-value corrected")
_log = logging.getLogger("evalhub_client")


def evaluated(
    asked: Mapping[str, Any], frames: Mapping[str, Any]
) -> dict[str, dict[str, OtherValues]]:
    """Return PyTerrier's values of results by system and measure, in full."""
    measures = [measure for measure in asked["eval_metrics"] if measure != _TIME]
    if not measures or not frames:
        return {}

    # Topics without judgements would be NaN in the values by topic and, with them, in the means.
    how = {
        "perquery": "both",
        "filter_by_qrels": True,
        "filter_by_topics": asked.get("filter_by_topics", True),
    }

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        means, values = pt.Experiment(
            list(frames.values()),
            asked["topics"],
            asked["qrels"],
            measures,
            names=list(frames),
            **how,
        )

    found: dict[str, dict[str, OtherValues]] = {}
    for row in means.to_dict("records"):
        own = values[values["name"] == row["name"]]
        found[row["name"]] = {
            measure: OtherValues(
                row[measure], dict(zip(rows["qid"].astype(str), rows["value"], strict=True))
            )
            for measure, rows in own.groupby("measure", sort=False)
        }

    return found


def saved(folder: Path) -> dict[str, dict[str, OtherValues]]:
    """Return the values in aggregated.csv and perquery.csv by system and measure; a file that is missing has none."""
    by_topic_of: dict[tuple[str, str], dict[str, float | None]] = {}
    for row in _rows(folder / "perquery.csv"):
        by_topic_of.setdefault((row["name"], row["measure"]), {})[row["qid"]] = _number(
            row["value"]
        )

    found: dict[str, dict[str, OtherValues]] = {}
    for row in _rows(folder / "aggregated.csv"):
        measures = [
            name for name in row if name not in ("name", _TIME) and not name.endswith(_OF_BASELINE)
        ]
        # Systems of several experiments share the file; what one was not evaluated by is empty.
        found[row["name"]] = {
            name: OtherValues(_number(row[name]), by_topic_of.get((row["name"], name), {}))
            for name in measures
            if row[name]
        }

    return found


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(DictReader(file))


def _number(text: str) -> float | None:
    return float(text) if text else None


def compared(
    hub: Hub,
    published: Published,
    names: Sequence[str],
    theirs: Mapping[str, Mapping[str, OtherValues]],
    results_of: Callable[[str], Any],
    qrels: Any,
    timeout: float,
) -> Agreement | None:
    """Wait for the evaluations and compare; None, with the reason logged, where there is nothing to compare."""
    rows: list[dict[str, Any]] = []
    about: dict[str, Any] = {"collection": published[0].collection if published else ""}
    refused: set[str] = set()

    judgements = cache(lambda version: _judgements(hub, about["collection"], version))
    try:
        wait_for(hub, published, timeout)
        for name, run in zip(names, published, strict=True):
            if run.state in ("failed", "cancelled"):
                _log.warning(
                    "the evaluation of %s ended as %s: %s", name, run.state, run.status["reason"]
                )
                continue

            for measure, known in theirs.get(name, {}).items():
                if measure in refused:
                    continue

                try:
                    values = run.values(_evalhub_name(measure))
                except Refused as error:
                    if error.code not in ("unknown_measure", "bad_parameter"):
                        raise

                    refused.add(measure)
                    rows.append(
                        _unknown_to_evalhub(measure, f"EvalHub has no such measure: {error.detail}")
                    )
                    continue

                about |= {field: values.raw[field] for field in ("qrels", "scores")}
                ours, judged = values.of(values.measures[0]), partial(judgements, values.qrels)
                explain = _explainer(measure, ours, results_of(name), qrels, judged)
                rows.append(
                    _with_note(
                        hub,
                        agreement_row(name, measure, known, values, explain),
                        values.measures[0],
                    )
                )
    except EvalHubError as error:
        _log.warning("PyTerrier's values were not compared with EvalHub's: %s", error)
        return None

    agreement = Agreement({**about, "results": rows})
    if agreement.differences:
        _log.warning("PyTerrier and EvalHub differ.\n%s", agreement.text())

    return agreement


def _with_note(hub: Hub, row: dict[str, Any], measure: str) -> dict[str, Any]:
    """Return a row with what EvalHub says of other programs' measures of the name, where a topic is not explained."""
    if UNEXPLAINED not in row["reason"]:
        return row

    note = hub.request("GET", f"measures/{quote(measure, safe='')}/").json()["elsewhere"]
    return (
        {**row, "reason": f"{row['reason']}; EvalHub's note on {measure}: {note}"} if note else row
    )


def _measure_of(name: str) -> Any:
    """Return the measure of ir_measures by its name there or in trec_eval; None for one that its user has made."""
    try:
        (found,) = ir_measures.parse_trec_measure(name)
    except ValueError:
        try:
            found = ir_measures.parse_measure(name)
        except (NameError, ValueError):
            return None

    return found


def _evalhub_name(measure: str) -> str:
    """Return EvalHub's name: nDCG@10 for ndcg_cut_10; gains are a text."""
    return re.sub(r"gains=\{([^{}]*)\}", r"gains='\1'", str(_measure_of(measure) or measure))


def _unknown_to_evalhub(measure: str, reason: str) -> dict[str, Any]:
    """Return the row of a measure that EvalHub does not have."""
    nothing = dict.fromkeys(("theirs", "evalhub", "topics", "differing", "largest"))
    return {"run": "", "measure": measure, **nothing, "reason": reason}


def _judgements(hub: Hub, collection: str, version: int) -> dict[str, dict[str, int]]:
    """Return a version of the judgements; nothing where they may not be read."""
    try:
        return judgements_in(hub.collection(collection).qrels_file(version))
    except Refused:
        return {}


def _explainer(
    measure: str,
    ours: Mapping[str, float | None],
    results: Any,
    qrels: Any,
    judged: Callable[[], dict[str, dict[str, int]]],
) -> Callable[[Iterable[str]], dict[str, str]]:
    """Return what says why topics differ, by evaluating them again with one thing changed at a time.

    The first change that gives EvalHub's value is the reason: the measure by itself, EvalHub's
    order of documents, EvalHub's judgements. `qrels` are those of the experiment, None where they
    are not known.
    """

    def explain(topics: Iterable[str]) -> dict[str, str]:
        asked, here, there = _measure_of(measure), judged(), _levels(qrels)
        if asked is None:
            return {}

        given: dict[str, dict[str, float]] = {}
        for topic, document, score in zip(*(results[name] for name in COLUMNS), strict=True):
            given.setdefault(str(topic), {})[str(document)] = float(score)

        ordered = {topic: _without_ties(scores) for topic, scores in given.items()}

        def gives(
            levels: Mapping[str, dict[str, int]], run: Mapping[str, dict[str, float]]
        ) -> set[str]:
            """Return the topics on which ir_measures has EvalHub's value."""
            known = {topic: levels[topic] for topic in topics if topic in levels}
            found = ir_measures.iter_calc(
                [asked], known, {topic: run.get(topic, {}) for topic in known}
            )
            return {one.query_id for one in found if agree(one.value, ours[one.query_id])}

        if there is None:
            return dict.fromkeys(
                gives(here, given), "ir_measures has EvalHub's value with the judgements here"
            )

        alone, reordered, judged_here = (
            gives(there, given),
            gives(there, ordered),
            gives(here, ordered),
        )

        told = {}
        for topic in topics:
            if topic in alone:
                told[topic] = (
                    "ir_measures has EvalHub's value where this measure is requested alone"
                )
            elif topic in reordered:
                told[topic] = _equal_scores(list(given[topic].values()))
            elif topic in judged_here:
                lines = {*there.get(topic, {}).items()} ^ {*here.get(topic, {}).items()}
                told[topic] = (
                    f"{len({document for document, _ in lines})} documents are judged differently"
                )

        return told

    return explain


def _levels(qrels: Any) -> dict[str, dict[str, int]] | None:
    """Return a table or file of judgements by topic."""
    if qrels is None:
        return None

    table = pt.io.read_qrels(qrels) if isinstance(qrels, str) else qrels
    found: dict[str, dict[str, int]] = {}
    for topic, document, level in zip(table["qid"], table["docno"], table["label"], strict=True):
        found.setdefault(str(topic), {})[str(document)] = int(level)

    return found


def _without_ties(scores: Mapping[str, float]) -> dict[str, float]:
    """Return small whole scores in the order in which EvalHub evaluates: score, then id, both descending."""
    ranked = sorted(scores.items(), key=lambda one: (one[1], one[0].encode()))
    return {document: float(place) for place, (document, _) in enumerate(ranked)}


def _equal_scores(scores: list[float]) -> str:
    if len(set(scores)) < len(scores):
        return "documents with equal scores, which ir_measures has in another order"
    return "scores that are equal in single precision, in which trec_eval 9 compares them"
