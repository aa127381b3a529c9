"""TABLE: every measure of trec_eval for TREC runs and qrels, in the order of its output."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

Version = Literal["10", "9.0.8"]
VERSIONS: tuple[Version, ...] = ("10", "9.0.8")


class Takes(Enum):
    """The parameters after a measure's name: P.5,10  iprec_at_recall.0.1,0.2  set_F.2
    ndcg.1=3,2=9."""

    NOTHING = "no parameters"
    DEPTHS = "ranks, each a line of its own"
    SHARES = "shares, each a line of its own"
    NUMBERS = "numbers that belong together"
    PAIRS = "level=gain pairs"


class Figure(Enum):
    """How the values of the topics become the line of the run."""

    MEAN = "mean"
    SUM = "sum"
    GEOMETRIC = "geometric mean"
    TOPICS = "number of topics"
    RECALL_BASE = "sum over all topics of the qrels"
    TAG = "the run's tag"
    NONE = "no line"


@dataclass(frozen=True)
class Entry:
    """One measure of trec_eval; `default` are its parameters if the name is given alone.

    `sets` names the parameters of the measure that the numbers set; `named` is a parameter that a
    pair may set by name.
    """

    name: str
    takes: Takes = Takes.NOTHING
    default: tuple[float, ...] = ()
    figure: Figure = Figure.MEAN
    by_topic: bool = True
    whole: bool = False  # printed without decimals
    since: Version = "9.0.8"
    sets: tuple[str, ...] = ()
    named: str = ""


_DEPTHS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_POINTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_MULTIPLES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)

TABLE = (
    Entry("runid", figure=Figure.TAG, by_topic=False),
    Entry("num_q", figure=Figure.TOPICS, by_topic=False, whole=True),
    Entry("num_ret", figure=Figure.SUM, whole=True),
    Entry("num_rel", figure=Figure.RECALL_BASE, whole=True),
    Entry("num_rel_ret", figure=Figure.SUM, whole=True),
    Entry("map"),
    Entry("gm_map", figure=Figure.GEOMETRIC, by_topic=False),
    Entry("Rprec"),
    Entry("bpref"),
    Entry("recip_rank"),
    Entry("iprec_at_recall", Takes.SHARES, _POINTS),
    Entry("P", Takes.DEPTHS, _DEPTHS),
    Entry("relstring", Takes.NUMBERS, (10,), Figure.NONE),
    Entry("recall", Takes.DEPTHS, _DEPTHS),
    Entry("infAP"),
    Entry("gm_bpref", figure=Figure.GEOMETRIC, by_topic=False),
    Entry("Rprec_mult", Takes.SHARES, _MULTIPLES),
    Entry("utility", Takes.NUMBERS, (1, -1, 0, 0), sets=("a", "b", "c", "d")),
    Entry("11pt_avg", Takes.NUMBERS, _POINTS),
    Entry("binG"),
    Entry("G", Takes.PAIRS),
    Entry("dcg", Takes.PAIRS, since="10"),
    Entry("ideal_dcg", Takes.PAIRS, since="10"),
    Entry("ndcg", Takes.PAIRS),
    Entry("ndcg_rel", Takes.PAIRS),
    Entry("Rndcg", Takes.PAIRS),
    Entry("ndcg_cut", Takes.DEPTHS, _DEPTHS),
    Entry("map_cut", Takes.DEPTHS, _DEPTHS),
    Entry("relative_P", Takes.DEPTHS, _DEPTHS),
    Entry("success", Takes.DEPTHS, (1, 5, 10)),
    Entry("set_P"),
    Entry("set_relative_P"),
    Entry("set_recall"),
    Entry("set_map"),
    Entry("set_F", Takes.NUMBERS, (1,), sets=("beta",)),
    Entry("num_nonrel_judged_ret", figure=Figure.SUM, whole=True),
    Entry("yaap"),
    Entry("rbp", Takes.PAIRS, since="10", named="p"),
    Entry("rbp_resid", Takes.PAIRS, since="10", named="p"),
    Entry("unj", Takes.DEPTHS, (5, 10, 20), since="10"),
)

_OFFICIAL = (
    "runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref",
    "recip_rank", "iprec_at_recall", "P",
)  # fmt: skip
_SET = (
    "runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "utility", "set_P", "set_recall",
    "set_relative_P", "set_map", "set_F",
)  # fmt: skip
_ALL_TREC = (
    *_OFFICIAL, "relstring", "recall", "infAP", "gm_bpref", "Rprec_mult", "utility", "11pt_avg",
    "binG", "G", "ndcg", "ndcg_rel", "Rndcg", "ndcg_cut", "map_cut", "relative_P", "success",
    "set_P", "set_relative_P", "set_recall", "set_map", "set_F", "num_nonrel_judged_ret", "rbp",
    "rbp_resid", "unj",
)  # fmt: skip

ENTRIES = {entry.name: entry for entry in TABLE}
# Names for several measures at once; what a version does not have is left out.
NICKNAMES = {"official": _OFFICIAL, "set": _SET, "all_trec": _ALL_TREC}
# Measures of files that are not read here, by what their names begin or end with.
PREFERENCES, GROUPS = ("prefs", "all_prefs"), ("_avgjg", "qrels_jg")
