"""The API of a phase's results for its organisers: all packets, and statistics of topics."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from django.http import HttpResponse, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.campaigns.api.results import REFERENCE, Figures, figures_answer
from evalhub.campaigns.exports.all_packets import SECONDS, packets_archive, teams_with_packets
from evalhub.campaigns.exports.topic_statistics import topic_table
from evalhub.campaigns.questions.results import organised_values
from evalhub.campaigns.services.packets import check_evaluated
from evalhub.campaigns.services.reference_sets import ALL, REFERENCES
from evalhub.campaigns.services.topic_statistics import TopicStatistics, read_topic_statistics
from evalhub.campaigns.services.versions import edition_of
from metrics.api.answers import numbers
from metrics.exports.formats import FORMATS
from metrics.questions.parameters import query_of
from metrics.services.boards.board_question import active_qrels
from metrics.services.snapshots import read_in_snapshot
from metrics.services.work import begin_file
from runs.errors import NotFound
from runs.parameters import choice_in
from runs.web.permissions import Access
from runs.web.shapes import OneOf, shape

_FILES = ("csv", "md", "tex")


class FiguresWithMean(Figures):
    mean: Annotated[list[float | None], "of the runs with a value"]


class StatisticsOfSet(TypedDict):
    """The runs of a type that compete and were on time, and their figures on each topic."""

    run_type: Annotated[str, "empty where the phase has no types"]
    runs: int
    by_topic: Annotated[dict[str, FiguresWithMean], "by measure, in the order of `topics`"]


class TopicStatisticsAnswer(TypedDict):
    """The figures of a phase's entries on each topic."""

    campaign: str
    phase: str
    qrels: int
    scores: str
    reference: Annotated[str, OneOf(REFERENCES)]
    measures: list[str]
    topics: list[str]
    sets: list[StatisticsOfSet]


class PacketsView(APIView):
    """The packets of all teams with entries as one zip file, with `SHA256SUMS`, for organisers who may see values. Each
    stays as it was first made of a release; before results are disclosed they are drafts."""

    access = {"GET": Access.ORGANISERS}
    signed_in = True
    problems = (403, 409)

    @extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY})
    def get(self, request: Request, campaign: str, phase: str) -> StreamingHttpResponse:
        row = organised_values(request, campaign, phase)
        edition = edition_of(row, active_qrels(row.collection), sees_all=True)
        # Afterwards the answer has begun, and nothing can be refused.
        check_evaluated(row, edition.qrels)
        teams = teams_with_packets(row)
        if not teams:
            raise NotFound(f"no team has an entry in phase {phase}", code="not_found")

        begin_file(SECONDS * len(teams))
        name = f"{campaign}-{phase}-packets-v{edition.qrels.version}.zip"

        return StreamingHttpResponse(
            packets_archive(edition, teams),
            content_type="application/zip",
            headers={
                "Content-Disposition": f'attachment; filename="{name}"',
                "Cache-Control": "no-store",
            },
        )


class TopicStatisticsView(APIView):
    """Minimum, quartiles, medians, maximum and mean of each measure on each topic, over the entries that compete and were
    on time, for organisers who may see values; with `format` as a file."""

    access = {"GET": Access.ORGANISERS}
    signed_in = True
    problems = (403,)

    @extend_schema(
        responses={
            (200, "application/json"): shape(TopicStatisticsAnswer),
            (200, "text/csv"): OpenApiTypes.STR,
        },
        parameters=[
            REFERENCE,
            OpenApiParameter("format", enum=("json", *_FILES), description="default: json"),
        ],
    )
    def get(self, request: Request, campaign: str, phase: str) -> HttpResponse | Response:
        query = query_of(request)
        reference = choice_in(query, "reference", REFERENCES) or ALL
        kind = choice_in(query, "format", ("json", *_FILES)) or "json"
        row = organised_values(request, campaign, phase)

        def read() -> TopicStatistics:
            qrels = active_qrels(row.collection)
            return read_topic_statistics(phase=row, qrels=qrels, reference=reference)

        statistics = read_in_snapshot(read)
        if kind == "json":
            return Response(_answer(statistics))

        table = topic_table(statistics)
        return HttpResponse(FORMATS[kind].content(table), headers=FORMATS[kind].headers(table.name))


def _answer(statistics: TopicStatistics) -> TopicStatisticsAnswer:
    read = statistics.read
    sets = []
    for reference_set, means in zip(statistics.sets, statistics.means, strict=True):
        by_topic: dict[str, Any] = {
            name: {**figures_answer(figures), "mean": numbers(means[name].tolist())}
            for name, figures in reference_set.by_topic.items()
        }
        sets.append(
            StatisticsOfSet(
                run_type=reference_set.run_type, runs=len(reference_set.rows), by_topic=by_topic
            )
        )

    return TopicStatisticsAnswer(
        campaign=read.phase.campaign.slug,
        phase=read.phase.slug,
        qrels=read.qrels.version,
        scores=read.phase.collection.scores,
        reference=statistics.reference,
        measures=[measure.name for measure in read.measures],
        topics=read.qrels.topic_ids,
        sets=sets,
    )
