"""The parameters of query strings for the OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from metrics.engine.curves import CURVES
from metrics.engine.significance import CORRECTIONS, TESTS
from metrics.engine.significance.families import USUAL_TEST, USUAL_TEST_OF_A_PAIR
from metrics.engine.significance.pairs import TIES, ZEROS
from metrics.engine.significance.practical import PRACTICAL, USUAL_ROPE
from metrics.engine.what_if import FAMILIES, MAX_COMBINATIONS, PRESETS
from metrics.services.boards.entries import SHOWN_ENTRIES
from metrics.services.boards.versions import VERSIONS as BOARD_VERSIONS
from metrics.services.comparisons.shown_pairs import PAIR_ORDERS
from metrics.services.sessions.comparison import DESIGNS, OWN_TESTS
from metrics.services.sessions.sample import COMPARED_FACTORS


def parameter(
    name: str, text: str, kind: Any = OpenApiTypes.STR, choices: tuple[str, ...] = ()
) -> OpenApiParameter:
    return OpenApiParameter(name, kind, description=text, enum=choices or None)


# The parameters of each chart of an address by the chart's name, in addition to those of all charts; a chart refuses
# the parameters of others.
Reads = Mapping[str, tuple[OpenApiParameter, ...]]


def names_of(parameters: Iterable[OpenApiParameter]) -> list[str]:
    return [one.name for one in parameters]


MEASURE_NAMES = parameter(
    "measures", "measure names separated by commas; default: the collection's own"
)
SCORES = parameter("scores", "float64 or float32; default: the collection's own")
VERSION = parameter("qrels", "a qrels version; default: the active one", OpenApiTypes.INT)
FILTER = parameter(
    "filter",
    "which rows to show: words, fields such as team:a,b, conditions such as param:k1>0.9; docs/api.md",
)
COLUMNS = parameter(
    "columns", "beside the measures, as param:k1,cost:latency_ms,submitted; at most 12"
)
ARRANGE = parameter(
    "arrange", "a column, such as param:k1, by which rows are arranged; -param:k1 downwards"
)
VERSIONS = parameter(
    "versions",
    "all runs, or of each system the latest or the best version; default: all",
    choices=BOARD_VERSIONS,
)
ENTRIES = parameter(
    "entries",
    "on a collection with a phase: the official entries, or all runs; default: official",
    choices=SHOWN_ENTRIES,
)
CONFIDENCE = parameter("confidence", "of the intervals, default: 0.95", OpenApiTypes.NUMBER)
PER_TOPIC = parameter("per_topic", "true: every topic's curve as well", OpenApiTypes.BOOL)
RUNS = parameter("runs", "run ids separated by commas; default: all evaluated runs")
TEST = parameter("test", f"{', '.join(TESTS)}; default: {USUAL_TEST}")
CORRECTION = parameter("correction", ", ".join(CORRECTIONS))
ALPHA = parameter("alpha", "significance level, default: 0.05", OpenApiTypes.NUMBER)
RESAMPLES = parameter("resamples", "B of a test that draws, default: 100,000", OpenApiTypes.INT)
SEED = parameter("seed", "of everything that is drawn, default: 0", OpenApiTypes.INT)
STATISTICS = (
    parameter(
        "statistics",
        "of intervals, tiers, ranks, baseline, separated by commas; or all; default: none",
    ),
    parameter("baseline", "the id of a ranked run: hold every other one against it"),
    TEST,
    CORRECTION,
    ALPHA,
    CONFIDENCE,
    parameter(
        "resamples",
        "B of a test that draws, default: 100,000; bootstrap 50,000, max_t and randomised_tukey_hsd 10,000",
        OpenApiTypes.INT,
    ),
    parameter("rank_resamples", "B of the rank intervals, default: 2,000", OpenApiTypes.INT),
    SEED,
)
# Parameters without effect if no statistics are requested.
HOW_MADE = tuple(name for name in names_of(STATISTICS) if name not in ("statistics", "baseline"))
SORT = parameter("sort", "the measure to rank by; default: the first")
ORDER = parameter("order", "desc or asc; default: best first")
PAGE = (
    parameter("limit", "rows of a page, default: 50, at most 200", OpenApiTypes.INT),
    parameter("offset", "rows to pass over", OpenApiTypes.INT),
)
DEPTH = parameter(
    "depth", "number of ranks, default: 100, or the last of ranks; at most 1000", OpenApiTypes.INT
)
RANKS = parameter(
    "ranks", "ranks separated by commas: values at these alone; default: every rank down to depth"
)
CURVE_MEASURES = (
    parameter("measures", f"of {', '.join(CURVES)}, with their parameters; default: nDCG"),
    parameter("measure", "the same as measures, of which one is given"),
)
READINGS = parameter(
    "readings", "true: the curves read across and down against the ideal's", OpenApiTypes.BOOL
)
RECALL = (
    parameter("points", "points of recall from 0 to 1, default: 11, 2 to 101", OpenApiTypes.INT),
    parameter(
        "rel",
        "lowest relevant levels separated by commas, or all: every level there is; default: 1, without level and gains",
    ),
    parameter("level", "levels of which each alone is relevant, separated by commas, or all"),
    parameter(
        "gains",
        "gain maps separated by semicolons, such as linear;0-1-10-100: generalised precision over generalised recall",
    ),
    parameter("interp", "default: ceiling", choices=("ceiling", "interval")),
    parameter(
        "rounding",
        "of recall into documents, for ceiling; default: 10",
        choices=("10", "9", "exact"),
    ),
    CONFIDENCE,
)
# The runs of an answer of curves.
CHOSEN_RUNS = (
    parameter("runs", "run ids separated by commas; default: all evaluated runs"),
    parameter(
        "filter",
        "in place of runs: the runs that this filter of the leaderboard shows; docs/api.md",
    ),
    SCORES,
)
VIEW = parameter(
    "view", "the code of a saved view, whose parameters are used where they are not given here"
)
# The parameters of a leaderboard.
BOARD = (
    MEASURE_NAMES,
    SORT,
    ORDER,
    *PAGE,
    FILTER,
    COLUMNS,
    ARRANGE,
    VERSIONS,
    ENTRIES,
    SCORES,
    *STATISTICS,
)
# The parameters of a comparison.
COMPARISON = (
    parameter("measures", "measure names separated by commas; default: the collection's first"),
    parameter("measure", "the same as measures, of which one is given"),
    parameter("runs", "run ids separated by commas; default: all evaluated runs"),
    parameter(
        "family",
        "run ids, or all: the runs that `runs` were found among, whose pairs are corrected together",
    ),
    parameter("baseline", "a run id: compare every other run with this one only"),
    parameter(
        "tests",
        f"one or several of {', '.join([*TESTS, *PRACTICAL])}; default: {USUAL_TEST_OF_A_PAIR} of two runs, "
        f"{USUAL_TEST} of more",
    ),
    parameter("test", "the same as tests, of which one is given"),
    parameter("correction", ", ".join(CORRECTIONS)),
    ALPHA,
    CONFIDENCE,
    parameter("resamples", "B of tests that draw, default: 100,000", OpenApiTypes.INT),
    parameter("seed", "of tests that draw, default: 0", OpenApiTypes.INT),
    parameter("zeros", "what Wilcoxon's test does with equal values", choices=ZEROS),
    parameter("ties", "which differences tie for Wilcoxon's test", choices=TIES),
    parameter(
        "margin",
        "the smallest difference that would matter, for tost, which needs it",
        OpenApiTypes.NUMBER,
    ),
    parameter(
        "rope",
        f"differences up to this are practically equal, for bayes_t and bayes_bootstrap; default: {USUAL_ROPE}",
        OpenApiTypes.NUMBER,
    ),
    parameter(
        "min_difference", "values no further apart are equal for the sign test", OpenApiTypes.NUMBER
    ),
    SCORES,
)
# The parameters of the agreement between orders.
ORDERS = (
    MEASURE_NAMES,
    parameter("qrels", "versions separated by commas; default: the active one"),
    RUNS,
    CONFIDENCE,
    parameter("resamples", "B of the intervals, default: 1,000", OpenApiTypes.INT),
    SEED,
    SCORES,
)
# The parameters of a design.
DESIGN = (
    MEASURE_NAMES,
    RUNS,
    TEST,
    ALPHA,
    parameter("power", "the chance to find a difference, default: 0.8", OpenApiTypes.NUMBER),
    parameter("differences", "to be found, separated by commas; default: 0.05,0.1"),
    parameter(
        "sizes", "of topic sets, separated by commas; default: five up to half of the topics"
    ),
    parameter("trials", "pairs of topic sets of each size, default: 50", OpenApiTypes.INT),
    parameter("width", "of the bins of differences, default: 0.01", OpenApiTypes.NUMBER),
    parameter("resamples", "B of a test that draws, default: 10,000", OpenApiTypes.INT),
    SEED,
    SCORES,
)
# What explains the values of runs, by one measure.
IMPORTANCE = (
    parameter("measure", "one measure; default: the collection's first with values of topics"),
    *CHOSEN_RUNS[:2],
    SEED,
    SCORES,
)
# Effectiveness against cost.
FRONTIER = (
    parameter("y", "one measure; default: the collection's first with values of topics"),
    parameter("x", "a cost, such as latency_ms; default: the one that most runs have"),
    parameter("across", "true: compare runs on different hardware, too", OpenApiTypes.BOOL),
    *CHOSEN_RUNS[:2],
    SCORES,
)
# The pairs of a comparison to show.
PAIRS = (
    parameter("run", "only the pairs with this run (its id)"),
    parameter("sort", "the order of the pairs", choices=PAIR_ORDERS),
    parameter("limit", "pairs of a page, default: 200, at most 5,000", OpenApiTypes.INT),
    parameter("offset", "pairs to pass over", OpenApiTypes.INT),
)
# One or several leaderboards with other gains, discounts and depths.
WHAT_IF = (
    parameter("family", f"of {', '.join(FAMILIES)}, separated by commas; default: nDCG"),
    parameter(
        "gains",
        "gain maps separated by semicolons: 0-1-10-100;tenfold;exp;binary;1:1,2:5; default: linear",
    ),
    parameter("dis", "log2, jk, session, separated by commas; default: log2, jk where b is given"),
    parameter("b", "bases of the logarithms of jk and session, separated by commas; default: 2"),
    parameter("depths", "ranks separated by commas, all for the whole ranking; default: 10"),
    parameter("preset", f"of {', '.join(PRESETS)}, separated by commas"),
    parameter(
        "measures", f"measure names separated by commas; {MAX_COMBINATIONS} combinations in total"
    ),
    parameter("runs", "run ids separated by commas; default: all evaluated runs"),
    SCORES,
)
SESSION_MEASURES = parameter(
    "measures", "session measures separated by commas; default: those of the leaderboard"
)
SESSION_MEASURE = parameter("measure", "a session measure, default: nsDCG")
JUDGED_BY = parameter(
    "judged_by",
    "which sets; default: the first there is",
    choices=("topic", "session", "query", "own"),
)
_SESSION_TESTS = (
    parameter("design", "default: the one that is recognised", choices=DESIGNS),
    parameter("test", ", ".join([*OWN_TESTS, *TESTS])),
    CORRECTION,
    ALPHA,
    CONFIDENCE,
    RESAMPLES,
    SEED,
)
# The parameters of a comparison of systems.
SESSION_COMPARISON = (
    SESSION_MEASURE,
    parameter("sets", "session set ids separated by commas; default: all evaluated"),
    parameter("systems", "names separated by commas, as on the leaderboard; default: all"),
    parameter("baseline", "a system: compare every other one with it only"),
    *_SESSION_TESTS,
    JUDGED_BY,
)
COMPARED = parameter(
    "compare",
    "what is compared: the systems, the searchers or the topics of the sessions; default: systems",
    choices=COMPARED_FACTORS,
)
# What a leaderboard of systems is asked.
SESSION_BOARD = (
    SESSION_MEASURES,
    SORT,
    ORDER,
    JUDGED_BY,
    parameter(
        "statistics", "of intervals, tiers, baseline, separated by commas; or all; default: none"
    ),
    parameter("baseline", "a ranked system: hold every other one against it"),
    *_SESSION_TESTS,
)
# Those that say nothing where no statistics are asked for.
SESSION_HOW_MADE = tuple(one.name for one in _SESSION_TESTS)
