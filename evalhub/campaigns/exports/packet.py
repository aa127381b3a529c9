"""The packet of a team: all results of its runs in a phase, as one zip file.

The same results give the same bytes: files have a fixed order and the time of the release.
"""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import numpy as np

from evalhub.campaigns.charts.difference import median_difference_figure
from evalhub.campaigns.exports.overview import overview_table
from evalhub.campaigns.exports.packet_readme import readme
from evalhub.campaigns.exports.phase_table import as_shown
from evalhub.campaigns.services.pooled import pooled_runs
from evalhub.campaigns.services.reference_runs import TopicComparison
from evalhub.campaigns.services.reference_sets import ReferenceSet
from evalhub.campaigns.services.results import OwnEntry, OwnResults
from evalhub.campaigns.services.significance import TEST, tested_entries
from evalhub.campaigns.services.versions import Edition
from metrics.charts.look import Look
from metrics.charts.rendering import render
from metrics.engine import ENGINE_VERSION
from metrics.engine.analysis.reference import TopicFigures, ranks_among
from metrics.exports.formats import FORMATS
from metrics.exports.table import Table
from metrics.exports.values.run_values import RUN_VALUE_EXPORTS
from metrics.models import Evaluation
from metrics.services.boards.mean_intervals import MEAN_INTERVAL_METHOD
from metrics.services.values.values import RunValues

UPPER_MEDIAN = (
    "median: the mean of the two middle values where their number is even; "
    "median_upper: the (floor(n/2)+1)-th smallest value, which TREC calls the median"
)
# The zip format has no earlier times.
_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Packet:
    """The bytes of a packet, and the name of its file."""

    content: bytes
    name: str

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


def make_packet(edition: Edition, results: OwnResults) -> Packet:
    """Return the packet of a team's results in an edition of a phase.

    It has overviews if the team may see the results of others.
    """
    phase, team = edition.phase, results.participation.team.slug
    name = f"{phase.campaign.slug}-{phase.slug}-{team}"

    return Packet(
        zipped(_packet_files(edition, results), edition.at), f"{name}-v{edition.qrels.version}.zip"
    )


def zipped(files: Mapping[str, bytes], at: datetime) -> bytes:
    """Return a zip file; its bytes depend only on the files, their order, and this time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files.items():
            info = member_of(name, at)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content, compresslevel=9)

    return buffer.getvalue()


def member_of(name: str, at: datetime) -> zipfile.ZipInfo:
    """Return the entry of a zip file for a file of this name and time."""
    info = zipfile.ZipInfo(name, max(at, _EARLIEST).astimezone(UTC).timetuple()[:6])
    # Unix, and a file that its owner may write.
    info.create_system = 3
    info.external_attr = 0o100644 << 16

    return info


def _packet_files(edition: Edition, results: OwnResults) -> dict[str, bytes]:
    files = {
        "summary.tsv": _tab_separated(_summary(results)),
        "topics.tsv": _tab_separated(_topics(results)),
        "significance.tsv": _tab_separated(_significance(results)),
    }
    keys = [results.read.evaluations[own.row] for own in results.entries]
    evaluations = Evaluation.objects.in_bulk(keys)

    for own, key in zip(results.entries, keys, strict=True):
        tag = own.entry.run.tag
        files[f"{tag}.trec_eval"] = _trec_eval(results, own, evaluations[key])
        files[f"{tag}.topics.tsv"] = _tab_separated(_own_topics(results, own))
        if picture := _difference_picture(results, own):
            files[f"{tag}.difference.svg"] = picture

    if edition.whole:
        table = overview_table(edition, results.read, results.participation)
        table = as_shown(table, edition.phase, results.read.measures)
        for kind in ("tex", "md"):
            files[f"overview.{kind}"] = FORMATS[kind].content(table)

    return {"README.txt": readme(edition, results, ["README.txt", *files]).encode(), **files}


def _tab_separated(table: Table) -> bytes:
    return FORMATS["tsv"].content(table)


def _summary(results: OwnResults) -> Table:
    names = [measure.name for measure in results.read.measures]
    mean_columns = [f"{name}{end}" for name in names for end in ("", " low", " high", " topics")]
    columns = [
        "tag",
        "number",
        "run_type",
        "role",
        "late",
        "in_reference",
        "pooled",
        "judged@10",
        "judged_depth",
        *mean_columns,
    ]
    rows = []
    pooled = pooled_runs(results.read.phase)

    for own in results.entries:
        entry, cells = own.entry, list[object]()
        for name in names:
            mean, topics = own.means[name]
            low, high = own.intervals.get(name, (None, None))
            cells += [mean, low, high, topics]

        head = [entry.run.tag, entry.number, entry.run_type, entry.role, entry.late, own.counts]
        is_pooled = None if pooled is None else entry.run_id in pooled
        rows.append([*head, is_pooled, own.judged, own.depth, *cells])

    comments = [f"low and high: 95% interval of the mean, {MEAN_INTERVAL_METHOD}"]

    return Table.of_values("summary", columns, rows, comments)


def _topics(results: OwnResults) -> Table:
    columns = [
        *("run_type", "topic", "measure", "n", "min", "q1", "median", "median_upper", "q3", "max"),
        "best_tag_is_yours",
    ]
    rows = []

    for place, reference_set in enumerate(results.sets):
        own_rows = [entry.row for entry in results.entries if entry.of == place and entry.counts]
        for measure in results.read.by_topic:
            figures = reference_set.by_topic[measure.name]
            best = figures.low if measure.lower_is_better else figures.high
            own_is_best = (
                (results.read.values[measure.name][own_rows] == best).any(axis=0)
                if own_rows
                else np.zeros(len(best), bool)
            )
            flags = [np.isfinite(best).tolist(), own_is_best.tolist()]

            for topic, has_values, is_own, *cells in zip(
                results.read.qrels.topic_ids,
                *flags,
                *(column.tolist() for column in figure_columns(figures)),
                strict=True,
            ):
                rows.append(
                    [
                        reference_set.run_type,
                        topic,
                        measure.name,
                        *cells,
                        is_own if has_values else None,
                    ]
                )

    notes = [*(describe_set(reference_set) for reference_set in results.sets), UPPER_MEDIAN]

    return Table.of_values("topics", columns, rows, notes)


def figure_columns(figures: TopicFigures) -> list[np.ndarray]:
    """Return n and the six figures from the lowest to the highest, each for all topics."""
    return [
        figures.n,
        figures.low,
        figures.q1,
        figures.median,
        figures.median_upper,
        figures.q3,
        figures.high,
    ]


def describe_set(reference_set: ReferenceSet) -> str:
    """Return the note of a table about a reference set."""
    kind = f" of type {reference_set.run_type}" if reference_set.run_type else ""
    withheld = "; numbers of few runs are withheld" if reference_set.withheld else ""
    return f"reference set: {len(reference_set.rows)} runs{kind} that compete, were in time and take part{withheld}"


def _own_topics(results: OwnResults, own: OwnEntry) -> Table:
    rows = []
    for measure in results.read.by_topic:
        values = results.read.values[measure.name]
        own_values = values[own.row]
        medians = ranks = np.full(len(own_values), np.nan)
        if own.of is not None:
            medians = results.sets[own.of].by_topic[measure.name].median
            if results.sees_all:
                others = values[results.sets[own.of].rows]
                ranks = ranks_among(own_values, others, lower_is_better=measure.lower_is_better)

        for topic, value, median, rank in zip(
            results.read.qrels.topic_ids,
            own_values.tolist(),
            medians.tolist(),
            ranks.tolist(),
            strict=True,
        ):
            whole_rank = int(rank) if math.isfinite(rank) else None
            rows.append([topic, measure.name, value, value - median, whole_rank])

    rank_note = "rank: 1 and the number of better runs of the reference set"
    comments = [
        rank_note if results.sees_all else "rank: given when results are released to participants"
    ]
    columns = ["topic", "measure", "value", "difference_from_median", "rank"]

    return Table.of_values(f"{own.entry.run.tag}.topics", columns, rows, comments)


def _trec_eval(results: OwnResults, own: OwnEntry, evaluation: Evaluation) -> bytes:
    evaluation.qrels = results.read.qrels
    vectors = {name: values[own.row] for name, values in results.read.values.items()}
    values = RunValues(evaluation, results.read.by_topic, vectors, own.means)
    return "".join(RUN_VALUE_EXPORTS["trec_eval"](own.entry.run, values)).encode()


def _difference_picture(results: OwnResults, own: OwnEntry) -> bytes | None:
    """Return the picture of the first measure with values of topics, if it has medians."""
    if own.of is None or not results.read.by_topic:
        return None

    measure = results.read.by_topic[0]
    reference_set = results.sets[own.of]
    figures = reference_set.by_topic[measure.name]
    if not np.isfinite(figures.median).any():
        return None

    own_values = results.read.values[measure.name][own.row]
    columns = (own_values, figures.low, figures.median, figures.high)
    rows = zip(results.read.qrels.topic_ids, *(column.tolist() for column in columns), strict=True)
    figure = median_difference_figure(
        [TopicComparison(*row) for row in rows],
        measure=measure.name,
        run=own.entry.run.tag,
        reference=f"{len(reference_set.rows)} runs",
    )

    return render(figure, Look(), "svg")


def _significance(results: OwnResults) -> Table:
    columns = [
        "measure",
        "tag",
        "against",
        "topics",
        "difference",
        "low",
        "high",
        "p",
        "p_corrected",
        "significant",
    ]
    rows = [
        [
            pair.measure.name,
            pair.own.entry.run.tag,
            pair.against,
            pair.topics,
            pair.difference,
            pair.low,
            pair.high,
            pair.p,
            pair.corrected,
            pair.significant,
        ]
        for pair in tested_entries(results)
    ]
    comments = [
        f"test: {TEST}, two-sided; 95% intervals of each pair; "
        "p_corrected: Holm, over your runs against the same one",
        "significant: p_corrected below 0.05. "
        "The median run has the median of the reference set on every topic",
        f"engine {ENGINE_VERSION}",
    ]

    return Table.of_values("significance", columns, rows, comments)
