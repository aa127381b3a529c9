"""The packet of a team: everything that it is told of its runs in a phase, as one zip file.

The same results give the same bytes: files stand in a fixed order and have the time of the release.
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

from evalhub.campaigns.charts.difference import Beside, median_difference_figure
from evalhub.campaigns.exports.overview import overview_table
from evalhub.campaigns.exports.packet_readme import readme
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
    "median: the mean of the two middle values where their number is even; median_upper: the (floor(n/2)+1)-th "
    "smallest value, which TREC calls the median"
)
# No file is younger than the format of zip files.
_FIRST = datetime(1980, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Packet:
    """The bytes of a packet, and the name of its file."""

    content: bytes
    name: str

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


def make_packet(edition: Edition, found: OwnResults) -> Packet:
    """Return the packet of the results of a team in an edition of a phase. Overviews are in it where its team may see
    the results of others."""
    phase, team = edition.phase, found.participation.team.slug
    name = f"{phase.campaign.slug}-{phase.slug}-{team}"

    return Packet(
        zipped(_files(edition, found), edition.at), f"{name}-v{edition.qrels.version}.zip"
    )


def zipped(files: Mapping[str, bytes], at: datetime) -> bytes:
    """Return a zip file whose bytes depend on nothing but its files, their order, and this time."""
    buffer = io.BytesIO()
    moment = max(at, _FIRST).astimezone(UTC)

    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name, moment.timetuple()[:6])
            info.compress_type, info.create_system, info.external_attr = (
                zipfile.ZIP_DEFLATED,
                3,
                0o100644 << 16,
            )
            archive.writestr(info, content, compresslevel=9)

    return buffer.getvalue()


def _files(edition: Edition, found: OwnResults) -> dict[str, bytes]:
    files = {
        "summary.tsv": _tab_separated(_summary(found)),
        "topics.tsv": _tab_separated(_topics(found)),
        "significance.tsv": _tab_separated(_significance(found)),
    }
    keys = [found.read.evaluations[one.row] for one in found.entries]
    evaluations = Evaluation.objects.in_bulk(keys)

    for one, key in zip(found.entries, keys, strict=True):
        tag = one.entry.run.tag
        files[f"{tag}.trec_eval"] = _trec_eval(found, one, evaluations[key])
        files[f"{tag}.topics.tsv"] = _tab_separated(_own_topics(found, one))
        if picture := _difference(found, one):
            files[f"{tag}.difference.svg"] = picture

    if edition.whole:
        table = overview_table(edition, found.read, found.participation)
        for kind in ("tex", "md"):
            files[f"overview.{kind}"] = FORMATS[kind].content(table)

    return {"README.txt": readme(edition, found, ["README.txt", *files]).encode(), **files}


def _tab_separated(table: Table) -> bytes:
    return FORMATS["tsv"].content(table)


def _summary(found: OwnResults) -> Table:
    names = [measure.name for measure in found.read.measures]
    each = [f"{name}{end}" for name in names for end in ("", " low", " high", " topics")]
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
        *each,
    ]
    rows = []

    for one in found.entries:
        entry, cells = one.entry, list[object]()
        for name in names:
            mean, topics = one.means[name]
            low, high = one.intervals.get(name, (None, None))
            cells += [mean, low, high, topics]

        about = [entry.run.tag, entry.number, entry.run_type, entry.role, entry.late, one.counts]
        # No pool is recorded; the judged depth is what can be known.
        rows.append([*about, None, one.judged, one.depth, *cells])

    comments = [f"low and high: 95% interval of the mean, {MEAN_INTERVAL_METHOD}"]

    return Table.of_values("summary", columns, rows, comments)


def _topics(found: OwnResults) -> Table:
    columns = ["run_type", "topic", "measure", "n", "min", "q1", "median", "median_upper", "q3", "max",
               "best_tag_is_yours"]  # fmt: skip
    rows = []
    for place, one in enumerate(found.sets):
        own = [entry.row for entry in found.entries if entry.of == place and entry.counts]
        for measure in found.read.by_topic:
            numbers = one.by_topic[measure.name]
            best = numbers.low if measure.lower_is_better else numbers.high
            yours = (
                (found.read.values[measure.name][own] == best).any(axis=0)
                if own
                else np.zeros(len(best), bool)
            )
            told = [np.isfinite(best).tolist(), yours.tolist()]
            columns_of = [numbers.n, *_six(numbers)]

            for topic, known, mine, *cells in zip(
                found.read.qrels.topic_ids,
                *told,
                *(column.tolist() for column in columns_of),
                strict=True,
            ):
                rows.append([one.run_type, topic, measure.name, *cells, mine if known else None])

    notes = [*(set_said(one) for one in found.sets), UPPER_MEDIAN]

    return Table.of_values("topics", columns, rows, notes)


def _six(numbers: TopicFigures) -> list[np.ndarray]:
    return [numbers.low, numbers.q1, numbers.median, numbers.median_upper, numbers.q3, numbers.high]


def set_said(one: ReferenceSet) -> str:
    kind = f" of type {one.run_type}" if one.run_type else ""
    few = "; numbers of few runs are withheld" if one.withheld else ""
    return (
        f"reference set: {len(one.rows)} runs{kind} that compete, were in time and take part{few}"
    )


def _own_topics(found: OwnResults, one: OwnEntry) -> Table:
    rows = []
    for measure in found.read.by_topic:
        values = found.read.values[measure.name]
        own = values[one.row]
        medians = ranks = np.full(len(own), np.nan)
        if one.of is not None:
            medians = found.sets[one.of].by_topic[measure.name].median
            if found.sees_all:
                others = values[found.sets[one.of].rows]
                ranks = ranks_among(own, others, lower_is_better=measure.lower_is_better)

        for topic, value, median, rank in zip(
            found.read.qrels.topic_ids, own.tolist(), medians.tolist(), ranks.tolist(), strict=True
        ):
            rows.append(
                [
                    topic,
                    measure.name,
                    value,
                    value - median,
                    int(rank) if math.isfinite(rank) else None,
                ]
            )

    ranked = "rank: 1 and the number of better runs of the reference set"
    comments = [
        ranked if found.sees_all else "rank: given when results are released to participants"
    ]
    columns = ["topic", "measure", "value", "difference_from_median", "rank"]

    return Table.of_values(f"{one.entry.run.tag}.topics", columns, rows, comments)


def _trec_eval(found: OwnResults, one: OwnEntry, evaluation: Evaluation) -> bytes:
    evaluation.qrels = found.read.qrels
    vectors = {name: values[one.row] for name, values in found.read.values.items()}
    values = RunValues(evaluation, found.read.by_topic, vectors, one.means)
    return "".join(RUN_VALUE_EXPORTS["trec_eval"](one.entry.run, values)).encode()


def _difference(found: OwnResults, one: OwnEntry) -> bytes | None:
    """Return the picture of the first measure with values of topics, if its medians are told."""
    if one.of is None or not found.read.by_topic:
        return None

    measure = found.read.by_topic[0]
    numbers, own = (
        found.sets[one.of].by_topic[measure.name],
        found.read.values[measure.name][one.row],
    )
    columns = (own, numbers.low, numbers.median, numbers.high)
    rows = zip(found.read.qrels.topic_ids, *(column.tolist() for column in columns), strict=True)
    topics = [Beside(*row) for row in rows]
    if not np.isfinite(numbers.median).any():
        return None

    reference = f"{len(found.sets[one.of].rows)} runs"
    figure = median_difference_figure(
        topics, measure=measure.name, run=one.entry.run.tag, reference=reference
    )

    return render(figure, Look(), "svg")


def _significance(found: OwnResults) -> Table:
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
        [one.measure.name, one.own.entry.run.tag, one.against, one.topics, one.difference, one.low, one.high, one.p,
         one.corrected, one.significant]
        for one in tested_entries(found)
    ]  # fmt: skip
    comments = [
        f"test: {TEST}, two-sided; 95% intervals of each pair; p_corrected: Holm, over your runs against the same one",
        "significant: p_corrected below 0.05. The median run has the median of the reference set on every topic",
        f"engine {ENGINE_VERSION}",
    ]

    return Table.of_values("significance", columns, rows, comments)
