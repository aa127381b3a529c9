"""The page of a run, of one of its rankings, and its progress through the queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from metrics.charts.values.charts import RUN_CHARTS, RunChartRequest
from metrics.charts.values.curves import curve_figure
from metrics.charts.values.rankings import ranking_figure
from metrics.engine.curve.curves import CURVES, MAX_DEPTH
from metrics.engine.measures.grammar import parse_measure
from metrics.exports.formats import FORMATS
from metrics.exports.values.run_values import RUN_VALUE_EXPORTS
from metrics.models import Evaluation
from metrics.pages.parts import (
    PageFigure,
    Query,
    RunField,
    fill,
    level_class,
    query_of,
    query_string,
    run_figure,
    run_subject,
    status_piece,
)
from metrics.pages.shares import share_address
from metrics.pages.values.curves import (
    RECALL_PARAMETERS,
    curve_choices,
    ranks_read,
    reading_table,
    recall_choices,
)
from metrics.pages.values.lineage import lineage_state, read_lineage
from metrics.pages.values.parameters import changes_since, parameter_lines
from metrics.pages.values.summary import read_summary
from metrics.questions.answer_cache import Subject, cached_page
from metrics.questions.parameters import scores_in
from metrics.questions.rankings import topic_in
from metrics.questions.run_ids import shown_without_tags
from metrics.questions.topics import topic_address
from metrics.services.boards.curves_together import read_curves_together
from metrics.services.question import measure_in, measures_in
from metrics.services.queue.status import detailed_statuses
from metrics.services.values.common_values import qrels_cautions
from metrics.services.values.curves import CurveQuery
from metrics.services.values.rankings import Ranking, read_ranking
from metrics.services.values.values import (
    RunValues,
    comparable_runs,
    find_evaluation,
    is_comparable,
    read_values,
)
from metrics.tables import (
    Paging,
    columns_of,
    figure,
    mean_cell,
    metadata_lines,
    topic_lines,
)
from runs.api.tracking.edits import may_see_actors
from runs.formats.artifacts import TYPES
from runs.formats.parameters import flatten
from runs.models import Artifact, Collection, Experiment, Run, can_see_scores, document_address
from runs.pages.tracking.notes import shown_notes
from runs.pages.tracking.parameters import shown_edits
from runs.parameters import MAX_OFFSET, choice_in, integer_in
from runs.services.collections.documents import read_titles
from runs.services.storage.reports import grouped
from runs.services.submissions.runs import contradicted_ranks
from runs.services.tracking.labels import labels_of
from runs.services.tracking.lineage import Tree, has_lineage, read_tree
from runs.web.access import check_scores, find_once, scored_run, sees_scores, visible_run
from runs.web.views import page, reads

_TOPICS_OF_A_PAGE = 100
_DOCUMENTS_OF_A_PAGE = 100
_OTHERS_NAMED = 300
_MAX_VERSION = 10**6


def _shown_run(request: HttpRequest, run_id: UUID) -> Subject | None:
    """Return the subject of the page: the run, the reader's experiments with it, and its lineage,
    which may contain runs of other collections.

    Return None while the judgements are blind, and while the run waits for evaluation: the page
    then depends on the time, and on the rest of the queue.
    """
    run = visible_run(request, run_id)
    waits = (Evaluation.State.QUEUED, Evaluation.State.EVALUATING)
    if not sees_scores(request, run.collection):
        return None
    if run.evaluations.filter(state__in=waits).exists():
        return None
        return None

    groups = tuple((experiment.pk, experiment.name) for experiment in _experiments(request, run))
    return Subject(run.collection, (groups, lineage_state(_tree(request, run))))


def _experiments(request: HttpRequest, run: Run) -> list[Experiment]:
    experiments = (
        Experiment.objects.visible_to(request.user).filter(runs=run).order_by("name", "pk")
    )
    return find_once(request, ("experiments of", run.pk), lambda: list(experiments)) or []


def _tree(request: HttpRequest, run: Run) -> Tree | None:
    return find_once(
        request,
        ("tree of", run.pk),
        lambda: read_tree(run, request.user) if has_lineage(run) else None,
    )


@page
@reads(
    "measures", "sort", "order", "offset", "by", "other", "measure", "depth", "ranks",
    *RECALL_PARAMETERS, "qrels", "scores", "baseline",
)  # fmt: skip
@cached_page(_shown_run)
def run_page(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Show a run: its description, means, values by topic, and charts."""
    run = visible_run(request, run_id)
    query = shown_without_tags(
        query_of(request, run.collection), "other", run.collection, request.user
    )
    context = _about(request, run)
    context |= {
        "lineage": read_lineage(run, _tree(request, run), request.user, context["may_change"]),
        "query": query,
        "curves": list(CURVES),
        "max_depth": MAX_DEPTH,
        "measures": query.get("measures") or ", ".join(run.collection.measures),
    }

    status = max(
        fill(context, "since", changes_since, run, request.user, query),
        fill(context, "evaluation", _evaluation, request, run, query),
    )

    if "evaluation" in context:
        evaluation: Evaluation = context["evaluation"]
        query["other"] = _other(run, evaluation, query)
        others = comparable_runs(evaluation, _OTHERS_NAMED, query["other"])
        context |= {
            "stale": evaluation.is_stale,
            "other": RunField(
                "other", others, query["other"], more=len(others) >= _OTHERS_NAMED, none="none"
            ),
            "value_exports": _value_exports(run, query),
            "share": share_address(
                "run",
                run=str(run.pk),
                query=query_string({"measures": query.get("measures", "")})[1:],
            ),
        }

        chart_query = _chart_query(query, qrels=evaluation.qrels.version)
        status = max(
            fill(context, "values", run_values, run, evaluation, query),
            fill(context, "spread", _spread, run, evaluation, query),
            fill(context, "curve", _curve, run, evaluation, query),
            fill(context, "recall", _recall, run, evaluation, query),
            fill(context, "summary", read_summary, run, evaluation, chart_query),
        )

    return render(request, "metrics/run.html", context, status=status)


def _other(run: Run, evaluation: Evaluation, query: Query) -> str:
    """Return the run to compare values with: the chosen one, or the baseline of the page's address
    if it is evaluated in the same way."""
    baseline = query.get("baseline", "")
    if "other" in query or not baseline or baseline == str(run.pk):
        return query.get("other", "")

    try:
        return baseline if is_comparable(evaluation, UUID(baseline)) else ""
    except ValueError:
        # The part with the changes since the baseline shows what is wrong with it.
        return ""


def _value_exports(run: Run, query: Query) -> list[tuple[str, str]]:
    """Return title and address of each other format of the values by topic."""
    parameters = query_string(
        {name: query.get(name, "") for name in ("measures", "qrels", "scores")}
    )
    files = [
        (FORMATS[kind].title, reverse("run-values-export", args=[run.pk, kind]) + parameters)
        for kind in RUN_VALUE_EXPORTS
    ]
    return [("JSON", reverse("run-values", args=[run.pk]) + parameters), *files]


@page
def run_status(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Show the progress of a run."""
    run = visible_run(request, run_id)
    return status_piece(
        request, run_subject(run.pk), detailed_statuses([run], request.user)[str(run.pk)]
    )


@page
@reads("topic", "offset", "qrels", "scores")
def ranking_page(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Show the documents of a run for one topic."""
    run = scored_run(request, run_id)
    query = query_of(request)
    evaluation = _evaluation(request, run, query)
    topic_ids: list[str] = evaluation.qrels.topic_ids
    topic_id = query.get("topic") or topic_ids[0]
    ranking = read_ranking(evaluation=evaluation, topic_id=topic_in({"topic": topic_id}))
    place = topic_ids.index(topic_id)
    offset = integer_in(query, "offset", 0, 0, MAX_OFFSET)
    paging = Paging(offset, _DOCUMENTS_OF_A_PAGE, len(ranking.documents))
    context: dict[str, Any] = {
        "run": run,
        "evaluation": evaluation,
        "stale": evaluation.is_stale,
        "query": query,
        "topic": run.collection.topics.filter(topic_id=topic_id).first(),
        "topic_page": topic_address(reverse("topics-page", args=[run.collection.slug]), topic_id),
        "ranking": ranking,
        "paging": paging,
        "lines": _documents(run.collection, ranking, paging),
        "values": _of_topic(run, evaluation, topic_id),
        # The topics before and after this one in the order of the judgements.
        "before": topic_ids[place - 1] if place else None,
        "after": topic_ids[place + 1] if place + 1 < len(topic_ids) else None,
    }

    if ranking.documents:
        parameters = _chart_query(query, qrels=evaluation.qrels.version, topic=topic_id)
        figure = RunChartRequest(run, evaluation, parameters).source_of(
            ranking_figure(ranking, run=run.tag)
        )
        context["chart"] = run_figure(figure, run.pk, parameters, "wide")

    return render(request, "metrics/ranking.html", context)


def _about(request: HttpRequest, run: Run) -> dict[str, Any]:
    status = detailed_statuses([run], request.user)[str(run.pk)]
    edits = shown_edits(run)
    return {
        "run": run,
        "edits": edits,
        "named": bool(edits) and may_see_actors(request.user, run),
        "may_change": Run.objects.owned_by(request.user).filter(pk=run.pk).exists(),
        "may_remove": Collection.objects.managed_by(request.user)
        .filter(pk=run.collection_id)
        .exists(),
        "subject": run_subject(run.pk),
        "status": status,
        "parameters": parameter_lines(run, can_see_scores(request.user, run.collection)),
        "left_out": flatten(run.metadata).left_out,
        "ir_metadata": list(metadata_lines(run.ir_metadata)),
        "warnings": grouped(run.warnings),
        "contradicted": contradicted_ranks([run.pk]).get(run.pk),
        "artifacts": list(Artifact.objects.filter(run=run, deleted_at=None)),
        "types": TYPES,
        "most_bytes": settings.EVALHUB_MAX_ARTIFACT_BYTES,
        "labels": labels_of([run.pk]).get(run.pk, []),
        "experiments": _experiments(request, run),
        "notes": shown_notes(request.user, "run", run),
    }


def _evaluation(request: HttpRequest, run: Run, query: Query) -> Evaluation:
    check_scores(request, run.collection)
    version = integer_in(query, "qrels", 0, 0, _MAX_VERSION) or None
    return find_evaluation(run=run, scores=scores_in(query), version=version)


def run_values(run: Run, evaluation: Evaluation, query: Query) -> dict[str, Any]:
    """Return the means of a run, and a page of its values by topic."""
    measures = measures_in(query, "measures", run.collection.measures, run.collection.documents)
    sort = parse_measure(query["sort"], run.collection.documents) if query.get("sort") else None
    descending = choice_in(query, "order", ("desc", "asc")) != "asc"
    paging = Paging(
        integer_in(query, "offset", 0, 0, MAX_OFFSET), _TOPICS_OF_A_PAGE, evaluation.qrels.topics
    )
    needed = list(dict.fromkeys([*measures, *([sort] if sort else [])]))
    values = replace(read_values(evaluation=evaluation, measures=needed), measures=measures)
    lines = topic_lines(
        values, sort, descending, slice(paging.offset, paging.offset + paging.limit)
    )
    topics_of_page = run.collection.topics.filter(topic_id__in=[line.topic_id for line in lines])
    titles = dict(topics_of_page.values_list("topic_id", "title"))
    base = reverse("topics-page", args=[run.collection.slug])

    return {
        "columns": columns_of(measures, sort, descending),
        "means": _means(values),
        "cautions": [caution.message for caution in qrels_cautions(measures, evaluation.qrels)],
        "lines": [
            replace(
                line, title=titles.get(line.topic_id, ""), page=topic_address(base, line.topic_id)
            )
            for line in lines
        ],
        "paging": paging,
    }


def _means(values: RunValues) -> list[tuple[str, str, Any]]:
    """Return the name, the definition's name and the mean of each measure."""
    judged, means = len(values.topic_ids), []
    for measure in values.measures:
        cell = mean_cell(measure, values.means[measure.name], judged)
        aggregate = ""
        if measure.aggregate_name != "mean":
            aggregate = f"{measure.aggregate_name} over topics"

        if measure.pools:
            aggregate += ", of averaged vectors"

        note = "; ".join(part for part in (aggregate, cell.note) if part)
        means.append((measure.name, measure.definition.name, replace(cell, note=note)))

    return means


def _chart_query(query: Query, **parameters: Any) -> dict[str, str]:
    """Return the parameters of a chart's address: the score precision, and those that are given."""
    return {
        "scores": query.get("scores", ""),
        **{name: str(value) for name, value in parameters.items() if value},
    }


def _chart(
    chart: str, run: Run, evaluation: Evaluation, parameters: Mapping[str, str]
) -> PageFigure:
    return run_figure(
        RUN_CHARTS[chart](RunChartRequest(run, evaluation, parameters)), run.pk, parameters, "half"
    )


def _spread(run: Run, evaluation: Evaluation, query: Query) -> dict[str, Any]:
    """Return the charts of one measure over the topics: the distribution of its values, and a bar
    for each topic, alone or against another run."""
    measure = measure_in(query, "by", run.collection.measures[0], run.collection.documents)
    parameters = _chart_query(query, measure=measure.name, qrels=evaluation.qrels.version)
    parameters_of_pair = {**parameters, "other": query.get("other", "")}

    return {
        "measure": measure.name,
        "distribution": _chart("distribution", run, evaluation, parameters),
        "topics": _chart("topics", run, evaluation, parameters_of_pair),
    }


def _curve(run: Run, evaluation: Evaluation, query: Query) -> dict[str, Any]:
    """Return the curve with its readings at the requested ranks."""
    parameters_of_curve = {
        name: query[name] for name in ("measure", "depth", "ranks") if query.get(name)
    }
    question = replace(CurveQuery.read(parameters_of_curve), with_readings=True)
    together = read_curves_together(evaluations=[evaluation], query=question)
    measure = together.measure
    parameters = _chart_query(
        query, measure=measure.name, depth=question.depth, qrels=evaluation.qrels.version
    )
    figure = curve_figure(
        together.curves[0], measure=measure, run=run.tag, confidence=question.confidence
    )
    figure = RunChartRequest(run, evaluation, parameters).source_of(figure, measure.name)

    return {
        "measure": measure.name,
        "depth": question.depth,
        "ranks": ",".join(map(str, ranks_read(question))),
        "choices": curve_choices(measure),
        "readings": reading_table(together, question),
        "address": reverse("run-curve", args=[run.pk])
        + query_string({**parameters, "readings": "true"}),
        "chart": run_figure(figure, run.pk, parameters, "half"),
    }


def _recall(run: Run, evaluation: Evaluation, query: Query) -> dict[str, Any]:
    """Return the curve of a level and all above it, or of a single `level`."""
    choices = recall_choices(query, evaluation.qrels)
    parameters = _chart_query(query, **choices["parameters"], qrels=evaluation.qrels.version)
    return choices | {"chart": _chart("precision-recall", run, evaluation, parameters)}


@dataclass(frozen=True)
class DocumentLine:
    """A document of a ranking on the page; `total` is the sum of the gains down to its rank."""

    rank: int
    doc_id: str
    address: str
    title: str
    snippet: str
    score: str
    tied: bool
    level: int | None
    label: str
    gain: str
    total: str

    @property
    def kind(self) -> str:
        return level_class(self.level)


def _documents(collection: Collection, ranking: Ranking, paging: Paging) -> list[DocumentLine]:
    documents = ranking.documents[paging.offset : paging.offset + paging.limit]
    titles = read_titles(collection, (document.doc_id for document in documents))
    labels, sums = collection.level_labels, ranking.cumulated
    return [
        DocumentLine(
            rank=document.rank,
            doc_id=document.doc_id,
            address=document_address(collection, document.doc_id),
            title=titles[document.doc_id].title,
            snippet=titles[document.doc_id].snippet,
            score=f"{document.score:.6g}",
            tied=document.tied,
            level=document.level,
            label="" if document.level is None else str(labels.get(str(document.level), "")),
            gain=f"{document.gain:g}",
            total=f"{sums[document.rank - 1]:g}" if document.rank <= len(sums) else "",
        )
        for document in documents
    ]


def _of_topic(run: Run, evaluation: Evaluation, topic_id: str) -> list[tuple[str, str]]:
    measures = measures_in({}, "measures", run.collection.measures, run.collection.documents)
    values = read_values(evaluation=evaluation, measures=measures)
    place = values.topic_ids.index(topic_id)
    return [
        (measure.name, figure(measure, float(values.vectors[measure.name][place])))
        for measure in measures
    ]
