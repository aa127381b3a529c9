"""Store a comparison: its query in canonical form, and its result as compressed arrays."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import zstandard

from metrics.engine import ENGINE_VERSION
from metrics.engine.measures.grammar import Measure
from metrics.engine.significance.families import Family, Pairs, Rule
from metrics.engine.significance.omnibus import OmnibusResult, Source, Sphericity
from metrics.engine.significance.pairs import Caution, Options, PairedResult
from metrics.engine.significance.practical import Practical
from metrics.engine.significance.tiers import Tiers
from metrics.engine.significance.verdicts import decide
from metrics.services.boards.topic_selection import TopicFilter, TopicSelection
from metrics.services.comparisons.comparison import (
    Compared,
    ComparisonQuery,
    Entrants,
    with_equivalence,
)
from metrics.services.values.coverage import Coverage, OnJudged
from runs.models import Collection

# The options on which the result depends; the number of threads does not change it.
_OPTIONS = ("confidence", "resamples", "seed", "min_difference", "zeros", "ties")
_ARRAYS = ("difference", "low", "high", "statistic", "p_value", "exact", "direction")
# Increased when tests, verdicts or the stored content change: results of another version are not
# shown.
STATISTICS_VERSION = 5
_HEADER = "header"


def canonical(entrants: Entrants, query: ComparisonQuery) -> dict[str, Any]:
    """Return everything on which the result depends.

    Measures and tests have the order of the request, as in the answer.
    """
    practical = query.practical
    practical_content = (
        {"practical": {**asdict(practical), "tests": list(practical.tests)}}
        if practical.tests
        else {}
    )

    return {
        "qrels": entrants.qrels.pk,
        "scores": entrants.scores,
        "engine_version": ENGINE_VERSION,
        "statistics_version": STATISTICS_VERSION,
        "evaluations": [evaluation.pk for evaluation in entrants.evaluations],
        "baseline": _baseline_content(entrants.baselines),
        "measures": [measure.name for measure in query.measures],
        **_versions(query.measures),
        "tests": query.tests,
        **asdict(query.rule),
        **{name: getattr(query.options, name) for name in _OPTIONS},
        **practical_content,
        **_selection_content(entrants),
    }


def _baseline_content(baselines: Sequence[int]) -> int | list[int] | None:
    """Return baselines as they are stored: one of them as itself, none as None."""
    return list(baselines) if len(baselines) > 1 else next(iter(baselines), None)


def baselines_from(content: dict[str, Any]) -> tuple[int, ...]:
    """Return the baselines of which `canonical` made this form, by their places."""
    baselines = content["baseline"]
    if baselines is None:
        return ()
    return tuple(baselines) if isinstance(baselines, list) else (baselines,)


def _versions(measures: Sequence[Measure]) -> dict[str, Any]:
    """Return the versions of the values that come from tables."""
    versions = {m.name: m.definition.version for m in measures if m.is_external}
    return {"tables": versions} if versions else {}


def _selection_content(entrants: Entrants) -> dict[str, Any]:
    """Return the selected topics by their places: attributes may change later."""
    selection = entrants.selection
    if selection is None:
        return {}
    places = np.flatnonzero(selection.selected).tolist()
    return {"topics": {"filter": selection.text, "places": places}}


def selection_from(content: dict[str, Any], topics: int) -> TopicSelection | None:
    """Return the selection of which `canonical` made this form, among so many topics."""
    if "topics" not in content:
        return None

    selected = np.zeros(topics, np.bool_)
    selected[content["topics"]["places"]] = True
    return TopicSelection(content["topics"]["filter"], selected)


def digest_of(canonical_query: dict[str, Any]) -> str:
    """Return the SHA-256 of a query in canonical form."""
    text = json.dumps(canonical_query, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def query_from(content: dict[str, Any], collection: Collection) -> ComparisonQuery:
    """Return the query from which `canonical` made this form; its runs are in `evaluations`."""
    practical_content = content.get("practical")
    return ComparisonQuery(
        measures=[collection.measure(name) for name in content["measures"]],
        tests=content["tests"],
        rule=Rule(content["correction"], content["alpha"]),
        options=Options(**{name: content[name] for name in _OPTIONS}),
        scores=content["scores"],
        practical=Practical(**{**practical_content, "tests": tuple(practical_content["tests"])})
        if practical_content
        else Practical(),
        topics=TopicFilter(content["topics"]["filter"]) if "topics" in content else None,
    )


def encode(results: list[Compared]) -> bytes:
    """Return the results of all measures as bytes."""
    headers: list[dict[str, Any]] = []
    arrays: dict[str, Any] = {}
    for number, compared in enumerate(results):
        coverage = compared.coverage
        arrays[f"{number}"] = compared.values
        arrays[f"{number}.answered"] = coverage.answered
        arrays[f"{number}.judged"] = coverage.judged
        on_judged = None

        if coverage.on_judged:
            prefix = f"{number}.on_judged"
            arrays[f"{prefix}.means"] = coverage.on_judged.means
            arrays[f"{prefix}.changed"] = coverage.on_judged.changed
            on_judged = {
                "topics": coverage.on_judged.topics,
                "families": _families_head(coverage.on_judged.families, prefix, arrays),
            }

        headers.append(
            {
                "measure": compared.measure.name,
                "order": compared.order,
                "left_out": compared.left_out,
                "pairs": {
                    "runs": compared.pairs.runs,
                    "baseline": _baseline_content(compared.pairs.baselines),
                },
                "families": _families_head(compared.families, f"{number}", arrays),
                "omnibus": {name: asdict(result) for name, result in compared.omnibus.items()},
                "k": coverage.k,
                "judging_counts": coverage.judging_counts,
                "drawn": coverage.drawn,
                "on_judged": on_judged,
            }
        )

    arrays[_HEADER] = np.frombuffer(json.dumps(headers).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return zstandard.compress(buffer.getbuffer())


def _families_head(
    families: Sequence[Family], prefix: str, arrays: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the header of families, and add their numbers to the arrays.

    Their names begin with `prefix`.
    """
    headers = []
    for family in families:
        arrays[f"{prefix}.{family.test}.adjusted"] = family.adjusted
        result = replace(family.result, direction=family.result.leaning)
        arrays.update({f"{prefix}.{family.test}.{name}": getattr(result, name) for name in _ARRAYS})
        tiers = family.tiers

        headers.append(
            {
                "test": family.test,
                "size": family.size,
                "correction": family.correction,
                "cautions": [asdict(caution) for caution in family.result.cautions],
                "tiers": tiers and {"tier": tiers.tier.tolist(), "groups": tiers.groups},
            }
        )

    return headers


def decode(content: bytes, query: ComparisonQuery) -> list[Compared]:
    """Return the results that `encode` stored; the verdicts follow from the query's level."""
    with np.load(io.BytesIO(zstandard.decompress(content)), allow_pickle=False) as arrays:
        headers = json.loads(arrays[_HEADER].tobytes())
        measures = {measure.name: measure for measure in query.measures}
        results = [
            _compared(header, measures[header["measure"]], f"{number}", arrays, query.rule.alpha)
            for number, header in enumerate(headers)
        ]

        return [with_equivalence(compared, query) for compared in results]


def _compared(
    header: dict[str, Any], measure: Measure, prefix: str, arrays: Any, alpha: float
) -> Compared:
    """Return the result of one measure from its header and the arrays that begin with `prefix`."""
    values, stored_pairs = arrays[prefix], header["pairs"]
    pairs = Pairs(stored_pairs["runs"], baselines_from(stored_pairs))
    coverage = Coverage(
        arrays[f"{prefix}.answered"],
        arrays[f"{prefix}.judged"],
        header["k"],
        header["judging_counts"],
        header["drawn"],
    )

    if judged := header["on_judged"]:
        judged_prefix, topics = f"{prefix}.on_judged", judged["topics"]
        on_judged = OnJudged(
            arrays[f"{judged_prefix}.means"],
            arrays[f"{judged_prefix}.changed"],
            topics,
            _families(judged["families"], judged_prefix, arrays, alpha, topics),
        )
        coverage = replace(coverage, on_judged=on_judged)

    families = _families(header["families"], prefix, arrays, alpha, values.shape[1])
    verdicts_of = coverage.decide(families, pairs)
    families = [
        replace(family, verdicts=verdicts)
        for family, verdicts in zip(families, verdicts_of, strict=True)
    ]

    omnibus = {}
    for name, stored in header["omnibus"].items():
        sources = tuple(Source(**source) for source in stored["sources"])
        spread = stored["sphericity"] and Sphericity(**stored["sphericity"])
        freedom = tuple(stored["freedom"])

        omnibus[name] = OmnibusResult(
            stored["statistic"],
            freedom,
            stored["p_value"],
            stored["effect"],
            sources,
            _cautions(stored),
            spread,
        )

    return Compared(
        measure,
        header["order"],
        values,
        values.shape[1],
        header["left_out"],
        pairs,
        families,
        omnibus,
        coverage,
    )


def _families(
    headers: list[dict[str, Any]], prefix: str, arrays: Any, alpha: float, topics: int
) -> list[Family]:
    """Return families from their headers and the arrays whose names begin with `prefix`."""
    families = []
    for header in headers:
        test, tiers = header["test"], header["tiers"]
        numbers = {name: arrays[f"{prefix}.{test}.{name}"] for name in _ARRAYS}
        result = PairedResult(**numbers, cautions=_cautions(header))
        adjusted = arrays[f"{prefix}.{test}.adjusted"]
        groups = tiers and Tiers(
            np.array(tiers["tier"]), tuple(tuple(group) for group in tiers["groups"])
        )
        verdicts = decide(result, adjusted, alpha, topics)
        families.append(
            Family(test, header["size"], header["correction"], result, adjusted, verdicts, groups)
        )

    return families


def _cautions(header: dict[str, Any]) -> tuple[Caution, ...]:
    return tuple(Caution(**caution) for caution in header["cautions"])
