"""MEASURES: every measure EvalHub knows, in display order. A new one is a function in a family and a line here."""

from __future__ import annotations

from metrics.engine.measures import binary, counts, cumulated_gain
from metrics.engine.measures.definition import (
    BASE,
    DISCOUNT,
    GAINS,
    IDEAL,
    JUDGED_ONLY,
    REL,
    Aggregate,
    Cutoff,
    MeasureDefinition,
)

_NONE, _OPTIONAL, _REQUIRED = Cutoff.NONE, Cutoff.OPTIONAL, Cutoff.REQUIRED
_BINARY = (REL, JUDGED_ONLY)

_TABLE = (
    MeasureDefinition(
        "nDCG", cumulated_gain.ndcg, _OPTIONAL, (GAINS, DISCOUNT, BASE, IDEAL, JUDGED_ONLY), aliases=("NDCG",),
        trec_eval="ndcg",
    ),
    MeasureDefinition("DCG", cumulated_gain.dcg, _OPTIONAL, (GAINS, DISCOUNT, BASE, JUDGED_ONLY), trec_eval="dcg"),
    MeasureDefinition("nCG", cumulated_gain.ncg, _OPTIONAL, (GAINS, IDEAL, JUDGED_ONLY), aliases=("NCG",)),
    MeasureDefinition("CG", cumulated_gain.cg, _OPTIONAL, (GAINS, JUDGED_ONLY)),
    MeasureDefinition("AP", binary.average_precision, _OPTIONAL, _BINARY, aliases=("MAP",), trec_eval="map"),
    MeasureDefinition("RR", binary.reciprocal_rank, _OPTIONAL, _BINARY, aliases=("MRR",), trec_eval="recip_rank"),
    MeasureDefinition("P", binary.precision, _REQUIRED, _BINARY, aliases=("Precision",), trec_eval="P"),
    MeasureDefinition("R", binary.recall, _REQUIRED, _BINARY, aliases=("Recall",), trec_eval="recall"),
    MeasureDefinition("Rprec", binary.r_precision, _NONE, _BINARY, aliases=("RPrec",), trec_eval="Rprec"),
    MeasureDefinition("Success", binary.success, _REQUIRED, _BINARY, trec_eval="success"),
    MeasureDefinition("Judged", counts.judged, _OPTIONAL),
    MeasureDefinition("NumQ", counts.num_q, _NONE, aggregate=Aggregate.SUM, trec_eval="num_q"),
    MeasureDefinition("NumRet", counts.num_ret, _NONE, aggregate=Aggregate.SUM, trec_eval="num_ret"),
    MeasureDefinition("NumRel", counts.num_rel, _NONE, (REL,), Aggregate.SUM, trec_eval="num_rel"),
    MeasureDefinition("NumRelRet", counts.num_rel_ret, _NONE, (REL,), Aggregate.SUM, trec_eval="num_rel_ret"),
)  # fmt: skip

MEASURES: dict[str, MeasureDefinition] = {definition.name: definition for definition in _TABLE}
