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
from metrics.engine.measures.grammar import parse_measure
from metrics.engine.significance.families import Family, Pairs, Rule
from metrics.engine.significance.omnibus import OmnibusResult, Source, Sphericity
from metrics.engine.significance.pairs import Caution, Options, PairedResult
from metrics.engine.significance.practical import Practical
from metrics.engine.significance.tiers import Tiers
from metrics.engine.significance.verdicts import decide
from metrics.services.comparisons.comparison import (
    Compared,
    ComparisonQuery,
    Entrants,
    with_equivalence,
)
from metrics.services.values.coverage import Coverage, OnJudged

# The options on which the result depends; the number of threads does not change it.
_OPTIONS = ("confidence", "resamples", "seed", "min_difference", "zeros", "ties")
_ARRAYS = ("difference", "low", "high", "statistic", "p_value", "exact", "direction")
# Increased when tests, verdicts or the stored content change: results of another version are not
# shown.
STATISTICS_VERSION = 4
_HEADER = "header"


def canonical(entrants: Entrants, query: ComparisonQuery) -> dict[str, Any]:
    """Return everything on which the result depends.

    Measures and tests have the order of the request, as in the answer.
    """
    practical = query.practical
    beside = (
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
        "baseline": entrants.baseline,
        "measures": [measure.name for measure in query.measures],
        "tests": query.tests,
        **asdict(query.rule),
        **{name: getattr(query.options, name) for name in _OPTIONS},
        **beside,
    }


def digest_of(canonical_query: dict[str, Any]) -> str:
    """Return the SHA-256 of a query in canonical form."""
    text = json.dumps(canonical_query, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def query_from(kept: dict[str, Any]) -> ComparisonQuery:
    """Return the query from which `canonical` made this form; its runs are in `evaluations`."""
    beside = kept.get("practical")
    return ComparisonQuery(
        measures=[parse_measure(name) for name in kept["measures"]],
        tests=kept["tests"],
        rule=Rule(kept["correction"], kept["alpha"]),
        options=Options(**{name: kept[name] for name in _OPTIONS}),
        scores=kept["scores"],
        practical=Practical(**{**beside, "tests": tuple(beside["tests"])})
        if beside
        else Practical(),
    )


def encode(results: list[Compared]) -> bytes:
    """Return the results of all measures as bytes."""
    heads: list[dict[str, Any]] = []
    arrays: dict[str, Any] = {}
    for number, compared in enumerate(results):
        coverage = compared.coverage
        arrays[f"{number}"] = compared.values
        arrays[f"{number}.answered"] = coverage.answered
        arrays[f"{number}.judged"] = coverage.judged
        on_judged = None

        if coverage.on_judged:
            at = f"{number}.on_judged"
            arrays[f"{at}.means"] = coverage.on_judged.means
            arrays[f"{at}.changed"] = coverage.on_judged.changed
            on_judged = {
                "topics": coverage.on_judged.topics,
                "families": _families_head(coverage.on_judged.families, at, arrays),
            }

        heads.append(
            {
                "measure": compared.measure.name,
                "order": compared.order,
                "left_out": compared.left_out,
                "pairs": asdict(compared.pairs),
                "families": _families_head(compared.families, f"{number}", arrays),
                "omnibus": {name: asdict(result) for name, result in compared.omnibus.items()},
                "k": coverage.k,
                "judging_counts": coverage.judging_counts,
                "on_judged": on_judged,
            }
        )

    arrays[_HEADER] = np.frombuffer(json.dumps(heads).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return zstandard.compress(buffer.getbuffer())


def _families_head(
    families: Sequence[Family], at: str, arrays: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the header of families, and add their numbers to the arrays.

    Their names begin with `at`.
    """
    heads = []
    for family in families:
        arrays[f"{at}.{family.test}.adjusted"] = family.adjusted
        kept = replace(family.result, direction=family.result.leaning)
        arrays.update({f"{at}.{family.test}.{name}": getattr(kept, name) for name in _ARRAYS})
        tiers = family.tiers

        heads.append(
            {
                "test": family.test,
                "size": family.size,
                "correction": family.correction,
                "cautions": [asdict(caution) for caution in family.result.cautions],
                "tiers": tiers and {"tier": tiers.tier.tolist(), "groups": tiers.groups},
            }
        )

    return heads


def decode(content: bytes, query: ComparisonQuery) -> list[Compared]:
    """Return the results that `encode` stored; the verdicts follow from the query's level."""
    with np.load(io.BytesIO(zstandard.decompress(content)), allow_pickle=False) as arrays:
        heads = json.loads(arrays[_HEADER].tobytes())
        found = [
            _compared(head, f"{number}", arrays, query.rule.alpha)
            for number, head in enumerate(heads)
        ]

        return [with_equivalence(compared, query) for compared in found]


def _compared(head: dict[str, Any], at: str, arrays: Any, alpha: float) -> Compared:
    """Return the result of one measure from its header and the arrays that begin with `at`."""
    values, pairs = arrays[at], Pairs(**head["pairs"])
    coverage = Coverage(
        arrays[f"{at}.answered"], arrays[f"{at}.judged"], head["k"], head["judging_counts"]
    )

    if kept := head["on_judged"]:
        at_judged, topics = f"{at}.on_judged", kept["topics"]
        on_judged = OnJudged(
            arrays[f"{at_judged}.means"],
            arrays[f"{at_judged}.changed"],
            topics,
            _families(kept["families"], at_judged, arrays, alpha, topics),
        )
        coverage = replace(coverage, on_judged=on_judged)

    families = _families(head["families"], at, arrays, alpha, values.shape[1])
    decided = coverage.decide(families, pairs)
    families = [
        replace(family, verdicts=verdicts)
        for family, verdicts in zip(families, decided, strict=True)
    ]

    omnibus = {}
    for name, kept in head["omnibus"].items():
        sources = tuple(Source(**source) for source in kept["sources"])
        spread = kept["sphericity"] and Sphericity(**kept["sphericity"])
        freedom = tuple(kept["freedom"])

        omnibus[name] = OmnibusResult(
            kept["statistic"],
            freedom,
            kept["p_value"],
            kept["effect"],
            sources,
            _cautions(kept),
            spread,
        )

    return Compared(
        parse_measure(head["measure"]),
        head["order"],
        values,
        values.shape[1],
        head["left_out"],
        pairs,
        families,
        omnibus,
        coverage,
    )


def _families(
    heads: list[dict[str, Any]], at: str, arrays: Any, alpha: float, topics: int
) -> list[Family]:
    """Return families from their headers and the arrays whose names begin with `at`."""
    families = []
    for kept in heads:
        test, tiers = kept["test"], kept["tiers"]
        numbers = {name: arrays[f"{at}.{test}.{name}"] for name in _ARRAYS}
        result = PairedResult(**numbers, cautions=_cautions(kept))
        adjusted = arrays[f"{at}.{test}.adjusted"]
        groups = tiers and Tiers(
            np.array(tiers["tier"]), tuple(tuple(group) for group in tiers["groups"])
        )
        verdicts = decide(result, adjusted, alpha, topics)
        families.append(
            Family(test, kept["size"], kept["correction"], result, adjusted, verdicts, groups)
        )

    return families


def _cautions(kept: dict[str, Any]) -> tuple[Caution, ...]:
    return tuple(Caution(**caution) for caution in kept["cautions"])
