"""The API of a team's results in a phase."""

from __future__ import annotations

from typing import Annotated, TypedDict
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.campaigns.api.boards import ExcludedTopic, excluded_topics
from evalhub.campaigns.exports.packet import make_packet
from evalhub.campaigns.questions.results import results_in
from evalhub.campaigns.services.packets import check_evaluated, keep_packet, kept_packet
from evalhub.campaigns.services.reference_sets import ALL, REFERENCES, ReferenceSet
from evalhub.campaigns.services.results import OwnEntry, OwnResults, read_own_results
from evalhub.campaigns.services.versions import edition_of
from metrics.api.answers import Mean, number, numbers
from metrics.engine import ENGINE_VERSION
from metrics.engine.analysis.reference import TopicFigures
from metrics.questions.declared import parameter
from metrics.questions.parameters import query_of
from metrics.services.snapshots import read_in_snapshot
from metrics.services.work import begin_drawing
from runs.models import Entry
from runs.parameters import choice_in
from runs.web.permissions import Access
from runs.web.shapes import OneOf, shape

TEAM = parameter("team", "for organisers: a team")
REFERENCE = parameter(
    "reference", "default: all runs, or of each team the best one", choices=REFERENCES
)


class Figures(TypedDict):
    """Of a measure over the runs of a reference set: a number for each topic, null where no run has a value, and where
    too few runs would give their values away."""

    min: list[float | None]
    q1: list[float | None]
    median: Annotated[
        list[float | None], "the mean of the two middle values where their number is even"
    ]
    median_upper: Annotated[
        list[float | None], "the (floor(n/2)+1)-th smallest value, as TREC has it"
    ]
    q3: list[float | None]
    max: list[float | None]
    n: Annotated[list[int], "runs with a value"]


class ReferenceAnswer(TypedDict):
    """The runs beside which those of a type stand: they compete, are on time, and were not withdrawn."""

    run_type: Annotated[str, "empty where the phase has no types"]
    runs: int
    withheld: Annotated[bool, "whether numbers are left out because there are few runs"]
    by_topic: Annotated[dict[str, Figures], "by measure"]


class MeanWithInterval(Mean):
    low: Annotated[float | None, "of the 95% interval; null where there is none"]
    high: float | None


class EntryResults(TypedDict):
    """The values of an entry of the team."""

    entry: UUID
    run: UUID
    number: int
    tag: str
    role: Annotated[str, OneOf(Entry.Role.choices)]
    run_type: str
    late: bool
    in_reference: Annotated[bool, "whether it is one of the runs of its reference set"]
    judged_at_10: float | None
    judged_depth: Annotated[
        int, "every document of the ranks 1 to this one is judged, on every topic"
    ]
    means: dict[str, MeanWithInterval]
    values: Annotated[
        dict[str, list[float | None]], "by measure, in the order of `topics`; null is undefined"
    ]


class TeamResults(TypedDict):
    """A team's own values beside the figures of each topic."""

    campaign: str
    phase: str
    team: str
    collection: str
    qrels: int
    qrels_sha256: str
    scores: str
    engine_version: str
    reference: Annotated[str, OneOf(REFERENCES)]
    measures: Annotated[list[str], "the first one is the primary one"]
    topics: list[str]
    excluded_topics: Annotated[
        list[ExcludedTopic], "by the phases on its collection; every value is without them"
    ]
    reference_sets: list[ReferenceAnswer]
    entries: list[EntryResults]


class PacketView(APIView):
    """A team's results as a zip file, which stays as it was first made of a release; its SHA-256 is in `X-SHA256` and
    `ETag`. Organisers get that of the team that is named, or a draft of it before results are
    disclosed."""

    access = {"GET": Access.PARTICIPANTS}
    signed_in = True
    problems = (403, 409)

    @extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY}, parameters=[TEAM])
    def get(self, request: Request, campaign: str, phase: str) -> HttpResponse:
        asked = results_in(request, campaign, phase, query_of(request).get("team"))
        edition = edition_of(asked.phase, asked.active, sees_all=asked.sees_all)
        kept = kept_packet(edition, asked.participation)
        if kept is None:
            check_evaluated(edition.phase, edition.qrels)
            begin_drawing()

            def read() -> OwnResults:
                return read_own_results(
                    phase=edition.phase,
                    participation=asked.participation,
                    qrels=edition.qrels,
                    sees_all=edition.whole,
                    as_of=edition.as_of,
                    names_at=edition.as_of,
                )

            made = make_packet(edition, read_in_snapshot(read))
            kept = keep_packet(
                edition,
                asked.participation,
                name=made.name,
                content=made.content,
                sha256=made.sha256,
            )

        response = HttpResponse(bytes(kept.content), content_type="application/zip")
        response["Content-Disposition"] = f'attachment; filename="{kept.name}"'
        response["X-SHA256"], response["ETag"] = kept.sha256, f'"{kept.sha256}"'

        return response


class ResultsView(APIView):
    """A team's means and values of topics in a phase, beside minimum, quartiles, medians and maximum of each topic over
    its reference set; for organisers those of the team that is named."""

    access = {"GET": Access.PARTICIPANTS}
    signed_in = True
    problems = (403,)

    @extend_schema(responses=shape(TeamResults), parameters=[TEAM, REFERENCE])
    def get(self, request: Request, campaign: str, phase: str) -> Response:
        query = query_of(request)
        reference = choice_in(query, "reference", REFERENCES) or ALL

        def read() -> OwnResults:
            asked = results_in(request, campaign, phase, query.get("team"))
            return read_own_results(
                phase=asked.phase,
                participation=asked.participation,
                qrels=asked.qrels,
                sees_all=asked.sees_all,
                reference=reference,
                as_of=asked.as_of,
            )

        return Response(results_answer(read_in_snapshot(read)))


def results_answer(found: OwnResults) -> TeamResults:
    read = found.read
    return TeamResults(
        campaign=read.phase.campaign.slug,
        phase=read.phase.slug,
        team=found.participation.team.slug,
        collection=read.phase.collection.slug,
        qrels=read.qrels.version,
        qrels_sha256=read.qrels.sha256,
        scores=read.phase.collection.scores,
        engine_version=ENGINE_VERSION,
        reference=found.reference,
        measures=[measure.name for measure in read.measures],
        topics=read.qrels.topic_ids,
        excluded_topics=excluded_topics(read.phase.collection),
        reference_sets=[_set(one) for one in found.sets],
        entries=[_entry(found, one) for one in found.entries],
    )


def _set(found: ReferenceSet) -> ReferenceAnswer:
    figures = {name: _figures(one) for name, one in found.by_topic.items()}
    return ReferenceAnswer(
        run_type=found.run_type, runs=len(found.rows), withheld=found.withheld, by_topic=figures
    )


def _figures(found: TopicFigures) -> Figures:
    return Figures(
        min=numbers(found.low.tolist()),
        q1=numbers(found.q1.tolist()),
        median=numbers(found.median.tolist()),
        median_upper=numbers(found.median_upper.tolist()),
        q3=numbers(found.q3.tolist()),
        max=numbers(found.high.tolist()),
        n=found.n.tolist(),
    )


def _entry(found: OwnResults, one: OwnEntry) -> EntryResults:
    means = {}
    for name, (mean, topics) in one.means.items():
        low, high = one.intervals.get(name, (None, None))
        means[name] = MeanWithInterval(
            mean=number(mean), topics=topics, low=number(low), high=number(high)
        )

    return EntryResults(
        entry=one.entry.pk,
        run=one.entry.run_id,
        number=one.entry.number,
        tag=one.entry.run.tag,
        role=one.entry.role,
        run_type=one.entry.run_type,
        late=one.entry.late,
        in_reference=one.counts,
        judged_at_10=number(one.judged),
        judged_depth=one.depth,
        means=means,
        values={
            name: numbers(values[one.row].tolist()) for name, values in found.read.values.items()
        },
    )
