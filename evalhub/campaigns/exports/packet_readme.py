"""The README of a packet: what its files are, and how its numbers were computed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from evalhub.campaigns.services.reference_sets import MIN_RUNS, MIN_RUNS_OF_QUARTILES
from evalhub.campaigns.services.results import OwnResults
from evalhub.campaigns.services.versions import Edition
from metrics.engine import ENGINE_VERSION
from runs.services.collections.reduced_qrels import reasons_of_exclusion

_WIDTH = 100
_FILES = {
    "README.txt": "this text",
    "summary.tsv": "a line for each run: how it was entered, its judged depth, "
    "and the mean of each measure with its 95% interval and the number of topics",
    "topics.tsv": "for each topic and measure: "
    "minimum, quartiles, both medians and maximum over the reference set",
    "significance.tsv": "your runs against the median run and against each baseline: "
    "difference, interval, p",
    "overview.tex": "the runs of the phase as a table for a paper, for LaTeX",
    "overview.md": "the same in Markdown",
}
_ENDINGS = {
    ".trec_eval": "values of each topic and means in the form of trec_eval -q, with four digits; "
    "topics that a run does not answer count, as with -c",
    ".topics.tsv": "for each topic and measure: "
    "value, difference from the median, rank among the reference set",
    ".difference.svg": "the primary measure minus the median, a bar for each topic",
}


def readme(edition: Edition, results: OwnResults, names: Iterable[str]) -> str:
    """Return the text; `names` are the files of the packet."""
    return "\n".join([*_head(edition, results), *_file_list(names), "", *_measures(results), ""])


def _head(edition: Edition, results: OwnResults) -> Iterator[str]:
    phase, participation = edition.phase, results.participation
    collection = phase.collection
    yield from _wrap_text(
        f"Results of {participation.name} in phase {phase.name} of {phase.campaign.name}"
    )
    yield ""
    yield from _wrap_text(f"{edition.description}.")
    if edition.before:
        before = edition.before.description
        yield from _wrap_text(f"It supersedes the packet of this: {before[0].lower()}{before[1:]}.")

    yield ""
    yield from _wrap_text(
        f"Campaign {phase.campaign.slug}, phase {phase.slug}, team {participation.team.slug}."
    )
    yield from _wrap_text(
        f"Collection {collection.slug}: {edition.qrels.topics} judged topics. "
        f"EvalHub engine {ENGINE_VERSION}; scores are compared as {collection.scores}, "
        "and documents with equal scores stand in descending order of their ids."
    )

    if edition.qrels.authors:
        yield from _wrap_text(f"Judgements: {edition.qrels.full_name}.")

    for topic, reason in reasons_of_exclusion(collection).items():
        yield from _wrap_text(f"Topic {topic} does not count: {reason}")

    yield ""

    for reference_set in results.sets:
        kind = f" of type {reference_set.run_type}" if reference_set.run_type else ""
        yield from _wrap_text(f"The reference set{kind} has {len(reference_set.rows)} runs.")

    yield from _wrap_text(
        "In a reference set are the runs that compete, came in time, and were neither withdrawn nor "
        "disqualified; no baseline, no late run. The median is the mean of the two middle values "
        "where their number is even; median_upper is the (floor(n/2)+1)-th smallest value, which "
        "TREC calls the median. Quartiles are interpolated linearly (type 7 of R)."
    )
    if not results.sees_all:
        yield from _wrap_text(
            f"Topics with fewer than {MIN_RUNS} runs have no median, minimum and maximum, and those "
            f"with fewer than {MIN_RUNS_OF_QUARTILES} no quartiles, because they would give the "
            "values of other teams away. Ranks come with the release to participants."
        )

    yield ""


def _file_list(names: Iterable[str]) -> Iterator[str]:
    yield "Files"
    for name in names:
        ending = next(
            (ending for ending in _ENDINGS if name.endswith(ending) and name not in _FILES), ""
        )
        yield from _wrap_text(f"{name}: {_ENDINGS[ending] if ending else _FILES[name]}", "  ")


def _measures(results: OwnResults) -> Iterator[str]:
    yield "Measures, the primary one first"
    for measure in results.read.measures:
        sections = measure.definition.sections()
        formula = " ".join(sections["formula"].split())
        yield from _wrap_text(f"{measure.name}: {sections['summary']} Formula: {formula}", "  ")


def _wrap_text(text: str, indent: str = "") -> list[str]:
    inner = f"{indent}  " if indent else ""
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=inner, break_long_words=False
    )
