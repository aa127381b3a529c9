"""Compare PyTerrier's values with EvalHub's."""

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
_BASELINE_SUFFIXES = (" +", " -", " p-value", " reject", " p-value corrected")
_log = logging.getLogger("evalhub_client")


def evaluate_results(
    arguments: Mapping[str, Any], frames: Mapping[str, Any]
) -> dict[str, dict[str, OtherValues]]:
    """Return PyTerrier's values of results by system and measure, with all digits."""
    measures = [measure for measure in arguments["eval_metrics"] if measure != _TIME]
    if not measures or not frames:
        return {}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        means, values = pt.Experiment(
            list(frames.values()),
            arguments["topics"],
            arguments["qrels"],
            measures,
            names=list(frames),
            perquery="both",
            # Topics without judgements would be NaN, and with them the means.
            filter_by_qrels=True,
            filter_by_topics=arguments.get("filter_by_topics", True),
        )

    by_system: dict[str, dict[str, OtherValues]] = {}
    for row in means.to_dict("records"):
        by_measure = by_system[row["name"]] = {}
        system_values = values[values["name"] == row["name"]]
        for measure, rows in system_values.groupby("measure", sort=False):
            by_topic = dict(zip(rows["qid"].astype(str), rows["value"], strict=True))
            by_measure[measure] = OtherValues(row[measure], by_topic)

    return by_system


def read_saved_values(folder: Path) -> dict[str, dict[str, OtherValues]]:
    """Return the values in aggregated.csv and perquery.csv by system and measure.

    A missing file has no values.
    """
    topic_values: dict[tuple[str, str], dict[str, float | None]] = {}
    for row in _read_csv(folder / "perquery.csv"):
        values = topic_values.setdefault((row["name"], row["measure"]), {})
        values[row["qid"]] = _number(row["value"])

    by_system: dict[str, dict[str, OtherValues]] = {}
    for row in _read_csv(folder / "aggregated.csv"):
        system = row["name"]
        by_measure = by_system[system] = {}
        for name, text in row.items():
            # Systems of several experiments share the file; measures of others are empty.
            if text and name not in ("name", _TIME) and not name.endswith(_BASELINE_SUFFIXES):
                by_topic = topic_values.get((system, name), {})
                by_measure[name] = OtherValues(_number(text), by_topic)

    return by_system


def _read_csv(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(DictReader(file))


def _number(text: str) -> float | None:
    return float(text) if text else None


def compare_values(
    hub: Hub,
    published: Published,
    names: Sequence[str],
    theirs: Mapping[str, Mapping[str, OtherValues]],
    results_of: Callable[[str], Any],
    qrels: Any,
    timeout: float,
) -> Agreement | None:
    """Wait for the evaluations and compare values; after an error, log it and return None."""
    rows: list[dict[str, Any]] = []
    source: dict[str, Any] = {"collection": published[0].collection if published else ""}
    unknown_measures: set[str] = set()

    judgements = cache(lambda version: _judgements(hub, source["collection"], version))
    try:
        wait_for(hub, published, timeout)
        for name, run in zip(names, published, strict=True):
            if run.state in ("failed", "cancelled"):
                _log.warning(
                    "the evaluation of %s ended as %s: %s", name, run.state, run.status["reason"]
                )
                continue

            for measure, other_values in theirs.get(name, {}).items():
                if measure in unknown_measures:
                    continue

                try:
                    values = run.values(_evalhub_name(measure))
                except Refused as error:
                    if error.code not in ("unknown_measure", "bad_parameter"):
                        raise

                    unknown_measures.add(measure)
                    rows.append(_row_of_unknown_measure(measure, error))
                    continue

                source |= {field: values.raw[field] for field in ("qrels", "scores")}
                (evalhub_measure,) = values.measures
                read_judgements = partial(judgements, values.qrels)
                ours = values.of(evalhub_measure)
                explain = _explainer(measure, ours, results_of(name), qrels, read_judgements)
                row = agreement_row(name, measure, other_values, values, explain)
                rows.append(_with_note(hub, row, evalhub_measure))
    except EvalHubError as error:
        _log.warning("PyTerrier's values were not compared with EvalHub's: %s", error)
        return None

    agreement = Agreement({**source, "results": rows})
    if agreement.differences:
        _log.warning("PyTerrier and EvalHub differ.\n%s", agreement.text())

    return agreement


def _with_note(hub: Hub, row: dict[str, Any], measure: str) -> dict[str, Any]:
    """Return a row; if a topic is not explained, with EvalHub's note on the measure elsewhere."""
    if UNEXPLAINED not in row["reason"]:
        return row

    note = hub.request("GET", f"measures/{quote(measure, safe='')}/").json()["elsewhere"]
    if not note:
        return row
    return {**row, "reason": f"{row['reason']}; EvalHub's note on {measure}: {note}"}


def _measure_of(name: str) -> Any:
    """Return the measure of ir_measures with a name there or in trec_eval, or None."""
    try:
        (measure,) = ir_measures.parse_trec_measure(name)
    except ValueError:
        try:
            measure = ir_measures.parse_measure(name)
        except (NameError, ValueError):
            return None

    return measure


def _evalhub_name(measure: str) -> str:
    """Return EvalHub's name of a measure, such as nDCG@10 for ndcg_cut_10."""
    return re.sub(r"gains=\{([^{}]*)\}", r"gains='\1'", str(_measure_of(measure) or measure))


def _row_of_unknown_measure(measure: str, error: Refused) -> dict[str, Any]:
    """Return the row of a measure that EvalHub does not have."""
    columns = dict.fromkeys(("theirs", "evalhub", "topics", "differing", "largest"))
    reason = f"EvalHub has no such measure: {error.detail}"
    return {"run": "", "measure": measure, **columns, "reason": reason}


def _judgements(hub: Hub, collection: str, version: int) -> dict[str, dict[str, int]]:
    """Return a version of the judgements, or nothing if they may not be read."""
    try:
        return judgements_in(hub.collection(collection).qrels_file(version))
    except Refused:
        return {}


def _explainer(
    measure: str,
    ours: Mapping[str, float | None],
    results: Any,
    qrels: Any,
    read_judgements: Callable[[], dict[str, dict[str, int]]],
) -> Callable[[Iterable[str]], dict[str, str]]:
    """Return a function that explains why topics differ.

    It evaluates them again with one thing changed at a time; the first change that gives EvalHub's
    value is the reason: the measure by itself, EvalHub's order of documents, EvalHub's judgements.
    `qrels` are those of the experiment, or None.
    """

    def explain(topics: Iterable[str]) -> dict[str, str]:
        other_measure = _measure_of(measure)
        if other_measure is None:
            return {}

        our_levels, their_levels = read_judgements(), _levels(qrels)
        their_run: dict[str, dict[str, float]] = {}
        for topic, document, score in zip(*(results[name] for name in COLUMNS), strict=True):
            their_run.setdefault(str(topic), {})[str(document)] = float(score)
        our_run = {topic: _without_ties(scores) for topic, scores in their_run.items()}

        def find_equal(
            levels: Mapping[str, dict[str, int]], run: Mapping[str, dict[str, float]]
        ) -> set[str]:
            """Return the topics on which ir_measures has EvalHub's value."""
            judged = {topic: levels[topic] for topic in topics if topic in levels}
            rankings = {topic: run.get(topic, {}) for topic in judged}
            values = ir_measures.iter_calc([other_measure], judged, rankings)
            return {value.query_id for value in values if agree(value.value, ours[value.query_id])}

        if their_levels is None:
            reason = "ir_measures has EvalHub's value with the judgements here"
            return dict.fromkeys(find_equal(our_levels, their_run), reason)

        equal_alone = find_equal(their_levels, their_run)
        equal_with_order = find_equal(their_levels, our_run)
        equal_with_judgements = find_equal(our_levels, our_run)

        reasons = {}
        for topic in topics:
            if topic in equal_alone:
                reasons[topic] = (
                    "ir_measures has EvalHub's value where this measure is requested alone"
                )
            elif topic in equal_with_order:
                reasons[topic] = _explain_order(list(their_run[topic].values()))
            elif topic in equal_with_judgements:
                their_lines = set(their_levels.get(topic, {}).items())
                our_lines = set(our_levels.get(topic, {}).items())
                documents = {document for document, _ in their_lines ^ our_lines}
                reasons[topic] = f"{len(documents)} documents are judged differently"

        return reasons

    return explain


def _levels(qrels: Any) -> dict[str, dict[str, int]] | None:
    """Return a table or file of judgements by topic."""
    if qrels is None:
        return None

    table = pt.io.read_qrels(qrels) if isinstance(qrels, str) else qrels
    levels: dict[str, dict[str, int]] = {}
    for topic, document, level in zip(table["qid"], table["docno"], table["label"], strict=True):
        levels.setdefault(str(topic), {})[str(document)] = int(level)

    return levels


def _without_ties(scores: Mapping[str, float]) -> dict[str, float]:
    """Return whole scores in EvalHub's order of documents: score, then id, both descending."""
    ranked = sorted(scores.items(), key=lambda item: (item[1], item[0].encode()))
    return {document: float(rank) for rank, (document, _) in enumerate(ranked)}


def _explain_order(scores: list[float]) -> str:
    if len(set(scores)) < len(scores):
        return "documents with equal scores, which ir_measures has in another order"
    return "scores that are equal in single precision, in which trec_eval 9 compares them"
