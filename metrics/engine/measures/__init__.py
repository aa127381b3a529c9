"""MEASURES: every measure EvalHub knows, in display order.

A new measure is a function in the module of its family and a line here: its name, the function, the
cutoff in its name, and its parameters. The function takes all of these parameters but LEVEL and
JUDGED_ONLY, which choose the judgements and documents before it is called.
"""

from __future__ import annotations

from metrics.engine.judgement.sampling import DESIGNS, STRATA
from metrics.engine.measures import (
    binary,
    blended,
    bpref,
    cascade,
    combined,
    counts,
    cumulated_gain,
    cutoffs,
    experimental,
    goals,
    graded,
    interpolated,
    knowledge,
    persistence,
    sampled,
    search_length,
    sets,
    subtopics,
    user_oriented,
)
from metrics.engine.measures.definition import (
    ALL_DOCUMENTS,
    ALPHA,
    BASE,
    BETA,
    BLENDING,
    BPREF_NORM,
    CASCADE_GAINS,
    CASCADE_P,
    DISCOUNT,
    DOCUMENTS,
    ERR_MAX_REL,
    EXAMINED,
    EXPECTED,
    FIRST_MISSING,
    GAIN_REL,
    GAINS,
    GAMMA,
    GOAL,
    IDEAL,
    IDEAL_DEPTH,
    INTERPOLATION,
    JUDGED_ONLY,
    LEVEL,
    MAX_REL,
    MIN_REL,
    MISSING,
    NEEDED_RELEVANT,
    NORM,
    NORMALIZE,
    OVERLAP_P,
    PERSISTENCE,
    RECALL_ROUNDING,
    REL,
    RELATIVE,
    SEEN,
    SET_BETA,
    STOP,
    STOPS,
    UTILITY,
    UTILITY_DOCUMENTS,
    VECTOR,
    WEIGHT,
    Aggregate,
    Cutoff,
    MeasureDefinition,
    always,
    check_interpolation,
    check_levels,
    check_missing,
    check_one_gain,
    check_stop,
    check_utility,
    check_vector,
    counts_unretrieved,
    looks_beyond_the_ranking,
)

_NONE, _OPTIONAL, _REQUIRED = Cutoff.NONE, Cutoff.OPTIONAL, Cutoff.REQUIRED
_BINARY = (REL, LEVEL, JUDGED_ONLY)
# Documents have a level for each subtopic.
_BY_SUBTOPIC = (REL, JUDGED_ONLY)
_INTERPOLATED = (REL, LEVEL, INTERPOLATION, RECALL_ROUNDING, JUDGED_ONLY)
_BLENDED = (BLENDING, GAINS, REL, JUDGED_ONLY)
_SCALE = (MIN_REL, MAX_REL)
_UNSEEN = (REL, LEVEL, MISSING, DOCUMENTS)
_NOVELTY = (ALPHA, REL, JUDGED_ONLY)
_PATIENCE = (ALPHA, BETA, REL, JUDGED_ONLY)

_TABLE = (
    MeasureDefinition(
        "nDCG", cumulated_gain.ndcg, _OPTIONAL, (GAINS, DISCOUNT, BASE, IDEAL, NORM, JUDGED_ONLY),
        aliases=("NDCG", "MSnDCG"), trec_eval="ndcg", pooled=cumulated_gain.pooled_ndcg,
    ),
    MeasureDefinition(
        "DCG", cumulated_gain.dcg, _OPTIONAL, (GAINS, DISCOUNT, BASE, JUDGED_ONLY), trec_eval="dcg",
    ),
    MeasureDefinition(
        "IdealDCG", cumulated_gain.ideal_dcg, _OPTIONAL, (GAINS, DISCOUNT, BASE, IDEAL),
        trec_eval="ideal_dcg",
    ),
    MeasureDefinition(
        "nCG", cumulated_gain.ncg, _OPTIONAL, (GAINS, IDEAL, NORM, JUDGED_ONLY), aliases=("NCG",),
        pooled=cumulated_gain.pooled_ncg,
    ),
    MeasureDefinition("CG", cumulated_gain.cg, _OPTIONAL, (GAINS, JUDGED_ONLY)),
    MeasureDefinition("IdealCG", cumulated_gain.ideal_cg, _OPTIONAL, (GAINS, IDEAL)),
    MeasureDefinition(
        "AP", binary.average_precision, _OPTIONAL, (REL, LEVEL, SEEN, JUDGED_ONLY),
        aliases=("MAP",), trec_eval="map",
    ),
    MeasureDefinition(
        "yaap", binary.yet_another_average_precision, _NONE, _BINARY, trec_eval="yaap",
        trec_style=True,
    ),
    MeasureDefinition(
        "RR", binary.reciprocal_rank, _OPTIONAL, _BINARY, aliases=("MRR",), trec_eval="recip_rank",
    ),
    MeasureDefinition(
        "P", binary.precision, _REQUIRED, (REL, LEVEL, RELATIVE, JUDGED_ONLY),
        aliases=("Precision", "Prec"), trec_eval="P", forms=(("relative_P", "relative=True"),),
    ),
    MeasureDefinition(
        "R", binary.recall, _REQUIRED, _BINARY, aliases=("Recall",), trec_eval="recall",
    ),
    MeasureDefinition(
        "Rprec", binary.r_precision, _NONE, _BINARY,
        aliases=("RPrec", "R-precision", "R-Precision"), trec_eval="Rprec",
    ),
    MeasureDefinition("Success", binary.success, _REQUIRED, _BINARY, trec_eval="success"),
    MeasureDefinition("Judged", counts.judged, _OPTIONAL, designs=DESIGNS),
    MeasureDefinition(
        "Bpref", bpref.bpref, _NONE, (REL, LEVEL, BPREF_NORM), aliases=("BPref",),
        trec_eval="bpref", forms=(("Bpref-10", "norm='10'"), ("bpref-10", "norm='10'")),
    ),
    MeasureDefinition("infAP", bpref.inferred_average_precision, _NONE, _BINARY, trec_eval="infAP"),
    MeasureDefinition(
        "xinfAP", sampled.x_inferred_average_precision, _OPTIONAL, (REL,), designs=(STRATA,),
    ),
    MeasureDefinition(
        "xinfAP_se", sampled.x_inferred_error, _OPTIONAL, (REL,), Aggregate.ERROR,
        lower_is_better=True, designs=(STRATA,),
    ),
    MeasureDefinition(
        "infNDCG", sampled.inferred_ndcg, _OPTIONAL, (GAINS,), designs=DESIGNS,
    ),
    MeasureDefinition(
        "infNDCG_se", sampled.inferred_ndcg_error, _OPTIONAL, (GAINS,), Aggregate.ERROR,
        lower_is_better=True, designs=DESIGNS,
    ),
    MeasureDefinition(
        "statAP", sampled.stat_average_precision, _OPTIONAL, (REL,), designs=DESIGNS,
    ),
    MeasureDefinition(
        "statAP_se", sampled.stat_error, _OPTIONAL, (REL,), Aggregate.ERROR,
        lower_is_better=True, designs=DESIGNS,
    ),
    MeasureDefinition(
        "IPrec", interpolated.interpolated_precision, Cutoff.SHARE, _INTERPOLATED,
        trec_eval="iprec_at_recall", check=check_interpolation,
    ),
    MeasureDefinition(
        "11pt_avg", interpolated.eleven_point_average, _NONE, _INTERPOLATED, trec_eval="11pt_avg",
        trec_style=True, check=check_interpolation,
    ),
    MeasureDefinition(
        "Rprec_mult", binary.r_precision_multiple, Cutoff.SHARE, _BINARY, trec_eval="Rprec_mult",
        trec_style=True, max_share=10.0,
    ),
    MeasureDefinition(
        "SetP", sets.set_precision, _NONE, (REL, LEVEL, RELATIVE, JUDGED_ONLY), trec_eval="set_P",
        forms=(("SetRelP", "relative=True"), ("set_relative_P", "relative=True")),
    ),
    MeasureDefinition("SetR", sets.set_recall, _NONE, (REL, LEVEL), trec_eval="set_recall"),
    MeasureDefinition(
        "SetF", sets.set_f, _NONE, (REL, LEVEL, SET_BETA, JUDGED_ONLY), trec_eval="set_F",
        trec_parameter="beta",
    ),
    MeasureDefinition("SetAP", sets.set_average_precision, _NONE, _BINARY, trec_eval="set_map"),
    MeasureDefinition(
        "utility", sets.utility, _NONE, (REL, *UTILITY, UTILITY_DOCUMENTS, JUDGED_ONLY),
        trec_eval="utility", trec_style=True, check=check_utility,
        needs_documents=counts_unretrieved,
    ),
    MeasureDefinition(
        "gm_map", binary.gm_average_precision, _NONE, _BINARY, Aggregate.GEOMETRIC,
        aliases=("GMAP",), trec_eval="gm_map", trec_style=True,
    ),
    MeasureDefinition(
        "gm_bpref", bpref.gm_bpref, _NONE, (REL, LEVEL), Aggregate.GEOMETRIC, trec_eval="gm_bpref",
        trec_style=True,
    ),
    MeasureDefinition(
        "G", experimental.graded_g, _NONE, (GAINS, JUDGED_ONLY), trec_eval="G", trec_style=True,
    ),
    MeasureDefinition(
        "binG", experimental.binary_g, _NONE, _BINARY, trec_eval="binG", trec_style=True,
    ),
    MeasureDefinition(
        "Rndcg", experimental.ndcg_at_levels, _NONE, (GAINS, JUDGED_ONLY), trec_eval="Rndcg",
        trec_style=True,
    ),
    MeasureDefinition(
        "ndcg_rel", experimental.ndcg_at_relevant, _NONE, (GAINS, JUDGED_ONLY),
        trec_eval="ndcg_rel", trec_style=True,
    ),
    MeasureDefinition(
        "unj", counts.unjudged, _REQUIRED, trec_eval="unj", trec_style=True, designs=DESIGNS,
    ),
    MeasureDefinition(
        "num_nonrel_judged_ret", counts.num_nonrel_judged_ret, _NONE, (REL,), Aggregate.SUM,
        trec_eval="num_nonrel_judged_ret", trec_style=True,
    ),
    MeasureDefinition(
        "NumQ", counts.num_q, _NONE, aggregate=Aggregate.SUM, trec_eval="num_q", designs=DESIGNS,
    ),
    MeasureDefinition(
        "NumRet", counts.num_ret, _NONE, aggregate=Aggregate.SUM, trec_eval="num_ret",
        designs=DESIGNS,
    ),
    MeasureDefinition(
        "NumRel", counts.num_rel, _NONE, (REL, LEVEL), Aggregate.SUM, trec_eval="num_rel",
        designs=DESIGNS,
    ),
    MeasureDefinition(
        "NumRelRet", counts.num_rel_ret, _NONE, (REL, LEVEL), Aggregate.SUM,
        trec_eval="num_rel_ret",
    ),
    MeasureDefinition("F", combined.f_measure, _REQUIRED, _BINARY, aliases=("F1",)),
    MeasureDefinition(
        "E", combined.e_measure, _REQUIRED, (REL, LEVEL, SET_BETA, JUDGED_ONLY),
        lower_is_better=True,
    ),
    MeasureDefinition("Accuracy", combined.accuracy, _OPTIONAL, _BINARY),
    MeasureDefinition("ERR", cascade.err, _OPTIONAL, (CASCADE_GAINS, ERR_MAX_REL, JUDGED_ONLY)),
    MeasureDefinition("nERR", cascade.nerr, _OPTIONAL, (CASCADE_GAINS, ERR_MAX_REL, JUDGED_ONLY)),
    MeasureDefinition("NERR8", cascade.nerr8, _REQUIRED, _SCALE, check=check_levels),
    MeasureDefinition("NERR9", cascade.nerr9, _REQUIRED, _SCALE, check=check_levels),
    MeasureDefinition("NERR10", cascade.nerr10, _NONE, (CASCADE_P, *_SCALE), check=check_levels),
    MeasureDefinition("NERR11", cascade.nerr11, _NONE, (GOAL, *_SCALE), check=check_levels),
    MeasureDefinition("Q", blended.q_measure, _OPTIONAL, _BLENDED, aliases=("Q-measure",)),
    MeasureDefinition(
        "NCU", blended.normalised_cumulative_utility, _NONE, (STOP, GAMMA, STOPS, *_BLENDED),
        check=check_stop,
    ),
    MeasureDefinition("PPlus", blended.p_plus, _NONE, _BLENDED, aliases=("P-plus",)),
    MeasureDefinition("PMeasure", blended.p_measure, _NONE, _BLENDED, aliases=("P-measure",)),
    MeasureDefinition("OMeasure", blended.o_measure, _NONE, _BLENDED, aliases=("O-measure",)),
    MeasureDefinition(
        "RBP", persistence.rbp, _OPTIONAL, (PERSISTENCE, GAIN_REL, GAINS, JUDGED_ONLY),
        trec_eval="rbp", forms=(("rbp", "p=0.9"),), check=check_one_gain,
    ),
    MeasureDefinition(
        "RBPResidual", persistence.rbp_residual, _OPTIONAL, (PERSISTENCE,), trec_eval="rbp_resid",
        forms=(("rbp_resid", "p=0.9"),), lower_is_better=True,
    ),
    MeasureDefinition("Compat", persistence.compat, _NONE, (OVERLAP_P, NORMALIZE)),
    MeasureDefinition("INSQ", goals.insq, _NONE, (GOAL, *_SCALE), check=check_levels),
    MeasureDefinition("INST", goals.inst, _NONE, (GOAL, *_SCALE), check=check_levels),
    MeasureDefinition("BPM", goals.bpm, _REQUIRED, (GOAL, *_SCALE), check=check_levels),
    MeasureDefinition("ScaledDCG", graded.scaled_dcg, _REQUIRED, _SCALE, check=check_levels),
    MeasureDefinition(
        "AvgPos", graded.average_position, _REQUIRED,
        (VECTOR, GAINS, DISCOUNT, BASE, IDEAL, NORM, JUDGED_ONLY), check=check_vector,
        pooled=graded.pooled_average_position,
    ),
    MeasureDefinition(
        "AvgCut", cutoffs.average_over_cutoffs, _NONE, (cutoffs.OF, cutoffs.CUTOFFS),
        check=cutoffs.check_cutoffs,
    ),
    MeasureDefinition(
        "SlidingRatio", graded.sliding_ratio, _REQUIRED, (GAINS, JUDGED_ONLY), aliases=("SR",),
    ),
    MeasureDefinition("GP", graded.graded_precision, _REQUIRED, (GAINS, JUDGED_ONLY)),
    MeasureDefinition("GR", graded.graded_recall, _REQUIRED, (GAINS, JUDGED_ONLY)),
    MeasureDefinition(
        "SearchLength", search_length.search_length, _NONE, (REL, LEVEL, FIRST_MISSING, DOCUMENTS),
        check=check_missing, lower_is_better=True, needs_documents=looks_beyond_the_ranking,
    ),
    MeasureDefinition(
        "ASL", search_length.average_search_length, _NONE, _UNSEEN, check=check_missing,
        lower_is_better=True, needs_documents=looks_beyond_the_ranking,
    ),
    MeasureDefinition(
        "ESL", search_length.expected_search_length, _NONE, (NEEDED_RELEVANT, EXAMINED, *_UNSEEN),
        check=check_missing, lower_is_better=True, needs_documents=looks_beyond_the_ranking,
    ),
    MeasureDefinition(
        "NormRecall", search_length.normalised_recall, _NONE, (REL, LEVEL, MISSING, ALL_DOCUMENTS),
        aliases=("NR",), needs_documents=always,
    ),
    MeasureDefinition("Satisfaction", user_oriented.satisfaction, _OPTIONAL, (REL, GAINS)),
    MeasureDefinition(
        "Frustration", user_oriented.frustration, _OPTIONAL, (REL, GAINS), lower_is_better=True,
    ),
    MeasureDefinition("Total", user_oriented.total, _OPTIONAL, (REL, GAINS, WEIGHT)),
    MeasureDefinition("RelRelevance", user_oriented.relative_relevance, _NONE, (GAINS,)),
    MeasureDefinition(
        "RHL", user_oriented.ranked_half_life, _OPTIONAL, (GAINS,), lower_is_better=True,
    ),
    MeasureDefinition("Coverage", knowledge.coverage, _OPTIONAL, _BINARY),
    MeasureDefinition("Novelty", knowledge.novelty, _OPTIONAL, _BINARY),
    MeasureDefinition("RelativeRecall", knowledge.relative_recall, _OPTIONAL, (EXPECTED, *_BINARY)),
    MeasureDefinition("RecallEffort", knowledge.recall_effort, _NONE, (EXPECTED, *_BINARY)),
    MeasureDefinition(
        "StRecall", subtopics.subtopic_recall, _REQUIRED, _BY_SUBTOPIC, aliases=("strec",),
    ),
    MeasureDefinition(
        "alpha_nDCG", subtopics.alpha_ndcg, _REQUIRED, _NOVELTY, aliases=("alpha-nDCG", "α_nDCG"),
        max_cutoff=IDEAL_DEPTH,
    ),
    MeasureDefinition(
        "alpha_DCG", subtopics.alpha_dcg, _REQUIRED, _NOVELTY, aliases=("alpha-DCG", "α_DCG"),
    ),
    MeasureDefinition("ERR_IA", subtopics.err_ia, _REQUIRED, _NOVELTY, aliases=("ERR-IA",)),
    MeasureDefinition(
        "nERR_IA", subtopics.nerr_ia, _REQUIRED, _NOVELTY, aliases=("nERR-IA",),
        max_cutoff=IDEAL_DEPTH,
    ),
    MeasureDefinition("NRBP", subtopics.nrbp, _NONE, _PATIENCE),
    MeasureDefinition("nNRBP", subtopics.nnrbp, _NONE, _PATIENCE),
    MeasureDefinition("P_IA", subtopics.p_ia, _REQUIRED, _BY_SUBTOPIC, aliases=("P-IA",)),
    MeasureDefinition("AP_IA", subtopics.ap_ia, _NONE, _BY_SUBTOPIC, aliases=("MAP_IA", "MAP-IA")),
)  # fmt: skip

MEASURES: dict[str, MeasureDefinition] = {definition.name: definition for definition in _TABLE}
# The measures that estimate from sampled judgements.
ESTIMATES = ("xinfAP", "infNDCG", "statAP")
