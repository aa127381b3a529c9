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
from evalhub.campaigns.exports.all_packets import new_packet
from evalhub.campaigns.questions.results import results_in
from evalhub.campaigns.services.packets import kept_packet
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
        question = results_in(request, campaign, phase, query_of(request).get("team"))
        edition = edition_of(question.phase, question.active, sees_all=question.sees_all)
        packet = kept_packet(edition, question.participation)
        if packet is None:
            begin_drawing()
            packet = new_packet(edition, question.participation)

        response = HttpResponse(bytes(packet.content), content_type="application/zip")
        response["Content-Disposition"] = f'attachment; filename="{packet.name}"'
        response["X-SHA256"], response["ETag"] = packet.sha256, f'"{packet.sha256}"'

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
            question = results_in(request, campaign, phase, query.get("team"))
            return read_own_results(
                phase=question.phase,
                participation=question.participation,
                qrels=question.qrels,
                sees_all=question.sees_all,
                reference=reference,
                as_of=question.as_of,
            )

        return Response(results_answer(read_in_snapshot(read)))


def results_answer(results: OwnResults) -> TeamResults:
    values = results.read
    return TeamResults(
        campaign=values.phase.campaign.slug,
        phase=values.phase.slug,
        team=results.participation.team.slug,
        collection=values.phase.collection.slug,
        qrels=values.qrels.version,
        qrels_sha256=values.qrels.sha256,
        scores=values.phase.collection.scores,
        engine_version=ENGINE_VERSION,
        reference=results.reference,
        measures=[measure.name for measure in values.measures],
        topics=values.qrels.topic_ids,
        excluded_topics=excluded_topics(values.phase.collection),
        reference_sets=[_reference_answer(reference_set) for reference_set in results.sets],
        entries=[_entry_results(results, own) for own in results.entries],
    )


def _reference_answer(reference_set: ReferenceSet) -> ReferenceAnswer:
    return ReferenceAnswer(
        run_type=reference_set.run_type,
        runs=len(reference_set.rows),
        withheld=reference_set.withheld,
        by_topic={
            name: figures_answer(figures) for name, figures in reference_set.by_topic.items()
        },
    )


def figures_answer(figures: TopicFigures) -> Figures:
    return Figures(
        min=numbers(figures.low.tolist()),
        q1=numbers(figures.q1.tolist()),
        median=numbers(figures.median.tolist()),
        median_upper=numbers(figures.median_upper.tolist()),
        q3=numbers(figures.q3.tolist()),
        max=numbers(figures.high.tolist()),
        n=figures.n.tolist(),
    )


def _entry_results(results: OwnResults, own: OwnEntry) -> EntryResults:
    means = {}
    for name, (mean, topics) in own.means.items():
        low, high = own.intervals.get(name, (None, None))
        means[name] = MeanWithInterval(
            mean=number(mean), topics=topics, low=number(low), high=number(high)
        )

    return EntryResults(
        entry=own.entry.pk,
        run=own.entry.run_id,
        number=own.entry.number,
        tag=own.entry.run.tag,
        role=own.entry.role,
        run_type=own.entry.run_type,
        late=own.entry.late,
        in_reference=own.counts,
        judged_at_10=number(own.judged),
        judged_depth=own.depth,
        means=means,
        values={
            name: numbers(values[own.row].tolist()) for name, values in results.read.values.items()
        },
    )
