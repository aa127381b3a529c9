"""The summary table of a run's page: the lines of trec_eval, in words and under its names."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from metrics.engine.measures.grammar import parse_measure
from metrics.engine.trec_eval.requests import read_requests
from metrics.models import Evaluation
from metrics.pages.parts import query_string
from metrics.services.boards.topic_selection import TopicSelection, flags_of
from metrics.services.values.values import read_values
from metrics.tables import figure
from runs.models import Run

# The usual lines of trec_eval by name, without the run's tag.
OFFICIAL = {
    name: parse_measure(name)
    for request in read_requests(["official"], "10")[0]
    for name in request.names
    if name != "runid"
}
_COUNTS = {
    "num_q": "Topics", "num_ret": "Documents retrieved", "num_rel": "Relevant documents",
    "num_rel_ret": "Relevant documents retrieved",
}  # fmt: skip
_AVERAGES = {
    "map": "Mean average precision", "gm_map": "Geometric mean of average precision",
    "Rprec": "R-precision", "bpref": "Binary preference", "recip_rank": "Reciprocal rank",
}  # fmt: skip
# The parts of the table with their lines in words.
_PARTS = {
    "Counts": _COUNTS,
    "Averages": {name: _AVERAGES[name] for name in OFFICIAL if name in _AVERAGES},
    "Precision at recall": {
        name: f"recall {measure.cutoff:.1f}"
        for name, measure in OFFICIAL.items()
        if name.startswith("iprec_at_recall_")
    },
    "Precision at ranks": {
        name: f"rank {measure.cutoff:,}"
        for name, measure in OFFICIAL.items()
        if name.startswith("P_")
    },
}


@dataclass(frozen=True)
class SummaryLine:
    """One number of the run: in words, as trec_eval calls it, its measure, and as text."""

    words: str
    name: str
    definition: str
    text: str


@dataclass(frozen=True)
class Summary:
    """The parts of the table by their titles, and the address of the output of trec_eval."""

    parts: list[tuple[str, list[SummaryLine]]]
    file: str


def read_summary(
    run: Run,
    evaluation: Evaluation,
    parameters: dict[str, str],
    selection: TopicSelection | None = None,
) -> Summary:
    """Return the figures of one evaluation; `parameters` select it, and its topics."""
    means = read_values(
        evaluation=evaluation, measures=[*OFFICIAL.values()], selected=flags_of(selection)
    ).means
    parts = []
    for title, words in _PARTS.items():
        lines = []
        for name in words:
            measure = OFFICIAL[name]
            text = figure(measure, means[measure.name][0])
            lines.append(SummaryLine(words[name], name, measure.definition.name, text))
        parts.append((title, lines))

    address = reverse("run-values-export", args=[run.pk, "trec_eval"])
    return Summary(parts, address + query_string({**parameters, "measures": ",".join(OFFICIAL)}))
