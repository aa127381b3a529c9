"""The page of a run, of one of its rankings, and its progress through the queue."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from metrics.charts.values.charts import RUN_CHARTS, RunChartRequest
from metrics.charts.values.curves import curve_figure
from metrics.charts.values.rankings import ranking_figure
from metrics.engine.cautions import Caution
from metrics.engine.curve.curves import CURVES, MAX_DEPTH
from metrics.engine.errors import MeasureError
from metrics.engine.measures.grammar import Measure, parse_measure
from metrics.exports.formats import FORMATS
from metrics.exports.table import Cell
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
from metrics.pages.values.replicates import replicates_part
from metrics.pages.values.standing import read_standing
from metrics.pages.values.summary import read_summary
from metrics.questions.answer_cache import Subject, cached_page
from metrics.questions.run_ids import shown_without_tags
from metrics.questions.topics import topic_address
from metrics.services.boards.curves_together import read_curves_together
from metrics.services.boards.mean_intervals import intervals_of, within_range
from metrics.services.boards.topic_selection import SelectionQuery, TopicSelection, flags_of
from metrics.services.question import measures_in
from metrics.services.queue.status import detailed_statuses
from metrics.services.values.common_values import qrels_cautions
from metrics.services.values.curves import DEPTH, CurveQuery
from metrics.services.values.judged_views import runs_ranked_alike
from metrics.services.values.rankings import Ranking, read_ranking, titles_of_relevant
from metrics.services.values.values import (
    EvaluationQuery,
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
    with_minus,
)
from runs.api.tracking.edits import may_see_actors
from runs.formats.artifacts import TYPES
from runs.formats.parameters import flatten
from runs.models import Artifact, Collection, Experiment, Run, can_see_scores, document_address
from runs.pages.tracking.notes import shown_notes
from runs.pages.tracking.parameters import shown_edits
from runs.parameters import MAX_OFFSET, choice_in, integer_in
from runs.services.collections.documents import read_titles
from runs.services.collections.topic_attributes import attribute_keys
from runs.services.storage.reports import grouped
from runs.services.submissions.runs import contradicted_ranks
from runs.services.tracking.labels import labels_of
from runs.services.tracking.lineage import Tree, has_lineage, read_tree
from runs.web.access import check_scores, find_once, scored_run, sees_scores, visible_run
from runs.web.views import page, reads

_TOPICS_OF_A_PAGE = 100
_DOCUMENTS_OF_A_PAGE = 100
# The measures of tables that the page of a run without a ranking names by itself.
_MEASURES_NAMED = 10
_OTHERS_NAMED = 300
_CONFIDENCE = 0.95
_MAX_VERSION = 10**6
# The pages of a run by the names of their addresses, and those that a run without values lacks.
_PARTS = {
    "run-page": "Overview",
    "run-topics-page": "Topics",
    "run-curves-page": "Curves",
    "run-parameters-page": "Parameters",
    "run-files-page": "Files and notes",
}
_OF_VALUES = ("run-topics-page", "run-curves-page")
# The parameters that all of them keep: the first of the measures is drawn, and ranks the run.
_OF_ALL_PARTS = ("measures", "other", "baseline", "topics", "qrels", "scores")
_OF_TOPICS = ("sort", "order", "offset")
_OF_CURVES = ("depth", "ranks", *RECALL_PARAMETERS)
# Addresses from before a run had several pages have these as well.
_MOVED = ("by", "measure", *_OF_TOPICS, *_OF_CURVES)


def _shown_run(request: HttpRequest, run_id: UUID) -> Subject | None:
    """Return the subject of a page: the run, the reader's experiments with it, and its lineage,
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
@reads(*_OF_ALL_PARTS, *_MOVED)
@cached_page(_shown_run)
def run_page(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Show a run: its rank, its means and their distribution over topics."""
    run = visible_run(request, run_id)
    moved = _moved_address(run, query_of(request))
    if moved:
        return HttpResponseRedirect(moved)

    context, status = _head(request, run, "run-page")
    query = context["query"]
    context |= {
        "labels": labels_of([run.pk]).get(run.pk, []),
        "experiments": _experiments(request, run),
        "may_remove": Collection.objects.managed_by(request.user)
        .filter(pk=run.collection_id)
        .exists(),
    }

    selection = context.get("selection")
    if evaluation := context.get("evaluation"):
        parameters = _chart_query(query, **_of_evaluation(evaluation, query))
        status = max(
            status,
            fill(context, "values", run_means, run, evaluation, query, selection),
            fill(context, "bars", _bars, run, evaluation, {**query, "other": ""}),
        )
        if run.has_ranking:
            status = max(
                status,
                fill(context, "alike", runs_ranked_alike, evaluation, request.user),
                fill(context, "summary", read_summary, run, evaluation, parameters, selection),
            )

    if run.has_replicates:
        measure = context.get("measure")
        context["replicates"] = replicates_part(run, evaluation, measure, request.user, selection)

    return render(request, "metrics/run.html", context, status=status)


@page
@reads(*_OF_ALL_PARTS, *_OF_TOPICS)
@cached_page(_shown_run)
def run_topics_page(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Show the values of a run by topic, alone or against another run."""
    run = visible_run(request, run_id)
    context, status = _head(request, run, "run-topics-page")

    if evaluation := context.get("evaluation"):
        query = context["query"]
        query["other"] = _other(run, evaluation, query)
        others = comparable_runs(evaluation, _OTHERS_NAMED, query["other"])
        context |= {
            "other": RunField(
                "other", others, query["other"], more=len(others) >= _OTHERS_NAMED, none="none"
            ),
        }
        status = max(
            status,
            fill(context, "bars", _bars, run, evaluation, query),
            fill(context, "distribution", _distribution, run, evaluation, query),
            fill(context, "values", run_values, run, evaluation, query, context.get("selection")),
        )

    return render(request, "metrics/run_topics.html", context, status=status)


@page
@reads(*_OF_ALL_PARTS, *_OF_CURVES)
@cached_page(_shown_run)
def run_curves_page(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Show a run's measure by rank, with its readings, and its precision-recall curve."""
    run = visible_run(request, run_id)
    context, status = _head(request, run, "run-curves-page")
    context["max_depth"] = MAX_DEPTH

    if evaluation := context.get("evaluation"):
        query = context["query"]
        status = max(
            status,
            fill(context, "curve", _curve, run, evaluation, query, context.get("selection")),
            fill(context, "recall", _recall, run, evaluation, query),
        )

    return render(request, "metrics/run_curves.html", context, status=status)


@page
@reads(*_OF_ALL_PARTS)
@cached_page(_shown_run)
def run_parameters_page(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Show how a run was made: its parameters and costs, their edits, and its lineage."""
    run = visible_run(request, run_id)
    context, status = _head(request, run, "run-parameters-page")
    edits = shown_edits(run)
    context |= {
        "parameters": parameter_lines(run, can_see_scores(request.user, run.collection)),
        "left_out": flatten(run.metadata).left_out,
        "edits": edits,
        "named": bool(edits) and may_see_actors(request.user, run),
        "lineage": read_lineage(run, _tree(request, run), request.user, context["may_change"]),
    }
    status = max(status, fill(context, "since", changes_since, run, request.user, context["query"]))

    return render(request, "metrics/run_parameters.html", context, status=status)


@page
@reads(*_OF_ALL_PARTS)
@cached_page(_shown_run)
def run_files_page(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Show the files and notes of a run, and the provenance of its values."""
    run = visible_run(request, run_id)
    context, status = _head(request, run, "run-files-page")
    context |= {
        "artifacts": list(Artifact.objects.filter(run=run, deleted_at=None)),
        "types": TYPES,
        "most_bytes": settings.EVALHUB_MAX_ARTIFACT_BYTES,
        "notes": shown_notes(request.user, "run", run),
        "warnings": grouped(run.warnings),
        "ir_metadata": list(metadata_lines(run.ir_metadata)),
    }

    return render(request, "metrics/run_files.html", context, status=status)


def _moved_address(run: Run, query: Query) -> str:
    """Return the address of the page that now has what an older address names, or "" for an address
    of today."""
    named = {name for name in _MOVED if query.get(name)}
    if not named:
        return ""

    measures = query.get("by") or query.get("measures")
    part = "run-page"
    own: tuple[str, ...] = _OF_ALL_PARTS
    if named & {"measure", *_OF_CURVES}:
        part, own = "run-curves-page", (*_OF_ALL_PARTS, *_OF_CURVES)
        if query.get("measure"):
            measures = _listed(query["measure"], DEPTH)
    elif named & {*_OF_TOPICS} or query.get("other"):
        part, own = "run-topics-page", (*_OF_ALL_PARTS, *_OF_TOPICS)

    parameters = {name: query.get(name, "") for name in own} | {"measures": measures}
    return reverse(part, args=[run.pk]) + query_string({}, **parameters)


def _head(request: HttpRequest, run: Run, part: str) -> tuple[dict[str, Any], int]:
    """Return what all pages of a run begin with, and the status: its rank, its state, and the
    addresses of its pages, which keep the measures, the baseline and the judgements."""
    query = shown_without_tags(
        query_of(request, run.collection), "other", run.collection, request.user
    )
    named = query.get("measures") or run.has_ranking
    if not named and sees_scores(request, run.collection):
        # Measures of rankings say nothing of it.
        query["measures"] = ",".join(_measures_with_values(run))

    context: dict[str, Any] = {
        "run": run,
        "query": query,
        "measures": query.get("measures") or ", ".join(run.collection.measures),
        "may_change": Run.objects.owned_by(request.user).filter(pk=run.pk).exists(),
        "subject": run_subject(run.pk),
        "status": detailed_statuses([run], request.user)[str(run.pk)],
        "contradicted": contradicted_ranks([run.pk]).get(run.pk),
    }

    status = max(
        fill(context, "evaluation", _evaluation, request, run, query),
        fill(context, "measure", first_measure, run, query),
    )
    if evaluation := context.get("evaluation"):
        shared = {name: query.get(name, "") for name in ("measures", "topics")}
        context |= {
            "stale": evaluation.is_stale,
            "names": [
                f"{team}/{tag}" for _, tag, team in comparable_runs(evaluation, _OTHERS_NAMED, "")
            ],
            "exports": _value_exports(run, query),
            "share": share_address("run", run=str(run.pk), query=query_string(shared)[1:]),
            "topic_keys": attribute_keys(run.collection),
        }
        status = max(status, fill(context, "selection", _selection, evaluation, query))
        if not evaluation.is_stale:
            status = max(status, fill(context, "standing", read_standing, run, request.user, query))

    of_all_parts = {name: query[name] for name in _OF_ALL_PARTS if query.get(name)}
    parameters = query_string(of_all_parts) if of_all_parts else ""
    context["parts"] = [
        (title, reverse(name, args=[run.pk]) + parameters, name == part)
        for name, title in _PARTS.items()
        if (evaluation or name not in _OF_VALUES)
        and (run.has_ranking or run.has_replicates or name != "run-curves-page")
    ]

    return context, status


def _measures_with_values(run: Run) -> list[str]:
    """Return the first measures of which tables have values of a run."""
    rows = run.collection.external_measures.filter(values_of_runs__run=run).order_by("name")
    return [str(measure) for measure in rows[:_MEASURES_NAMED]]


def _other(run: Run, evaluation: Evaluation, query: Query) -> str:
    """Return the run to compare values with: the chosen one, or the baseline of the page's address
    if it is evaluated in the same way."""
    baseline = query.get("baseline", "")
    if "other" in query or not baseline or baseline == str(run.pk):
        return query.get("other", "")

    try:
        return baseline if is_comparable(evaluation, UUID(baseline)) else ""
    except ValueError:
        # The rank of the run is replaced by what is wrong with the baseline.
        return ""


def _value_exports(run: Run, query: Query) -> list[tuple[str, str]]:
    """Return title and address of each other format of the values by topic."""
    parameters = query_string(
        {name: query.get(name, "") for name in ("measures", "topics", "qrels", "scores")}
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
    ranking = read_ranking(evaluation=evaluation, topic_id=topic_id)
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
            ranking_figure(ranking, run=run.tag, titles=titles_of_relevant(run.collection, ranking))
        )
        context["chart"] = run_figure(figure, run.pk, parameters, "wide")

    return render(request, "metrics/ranking.html", context)


def _evaluation(request: HttpRequest, run: Run, query: Query) -> Evaluation:
    check_scores(request, run.collection)
    return find_evaluation(run=run, query=EvaluationQuery.read(query))


def _selection(evaluation: Evaluation, query: Query) -> TopicSelection | None:
    return SelectionQuery.read(query).select(evaluation)


def run_values(
    run: Run, evaluation: Evaluation, query: Query, selection: TopicSelection | None = None
) -> dict[str, Any]:
    """Return a page of a run's values by topic."""
    measures = measures_in(query, "measures", run.collection.measures, run.collection)
    sort = run.collection.measure(query["sort"]) if query.get("sort") else None
    descending = choice_in(query, "order", ("desc", "asc")) != "asc"
    needed = list(dict.fromkeys([*measures, *([sort] if sort else [])]))
    values = read_values(evaluation=evaluation, measures=needed, selected=flags_of(selection))
    values = replace(values, measures=measures)
    offset = integer_in(query, "offset", 0, 0, MAX_OFFSET)
    paging = Paging(offset, _TOPICS_OF_A_PAGE, len(values.topic_ids))
    lines = topic_lines(
        values, sort, descending, slice(paging.offset, paging.offset + paging.limit)
    )
    topics_of_page = run.collection.topics.filter(topic_id__in=[line.topic_id for line in lines])
    titles = dict(topics_of_page.values_list("topic_id", "title"))
    base = reverse("topics-page", args=[run.collection.slug])

    return {
        "columns": columns_of(measures, sort, descending),
        "cautions": [caution.message for caution in _cautions(measures, evaluation, selection)],
        "lines": [
            replace(
                line, title=titles.get(line.topic_id, ""), page=topic_address(base, line.topic_id)
            )
            for line in lines
        ],
        "paging": paging,
    }


def _cautions(
    measures: list[Measure], evaluation: Evaluation, selection: TopicSelection | None
) -> list[Caution]:
    selected = selection.cautions if selection else []
    return [*selected, *qrels_cautions(measures, evaluation.qrels)]


@dataclass(frozen=True)
class MeanLine:
    """The mean of one measure with its interval; `address` is the page with the measure first."""

    measure: Measure
    cell: Cell
    interval: str
    address: str


def run_means(
    run: Run, evaluation: Evaluation, query: Query, selection: TopicSelection | None = None
) -> dict[str, Any]:
    """Return the means of a run with their intervals over topics."""
    measures = measures_in(query, "measures", run.collection.measures, run.collection)
    selected = flags_of(selection)
    values = read_values(evaluation=evaluation, measures=measures, selected=selected)
    judged = len(values.topic_ids)
    intervals = intervals_of(
        [evaluation.pk], measures, _CONFIDENCE, evaluation.qrels.topics, selected
    )

    lines = []
    for measure in measures:
        cell = mean_cell(measure, values.means[measure.name], judged)
        aggregate = ""
        if measure.aggregate_name != "mean":
            aggregate = f"{measure.aggregate_name} over topics"

        if measure.pools:
            aggregate += ", of averaged vectors"

        error = values.errors.get(measure.name)
        sampling = ""
        if error and error.mean is not None:
            sampling = f"standard error {figure(measure, error.mean)} from the sampling"

        note = "; ".join(part for part in (aggregate, sampling, cell.note) if part)
        ends = within_range(intervals, measure).get(evaluation.pk, ())
        rest = [other.name for other in measures if other != measure]
        lines.append(
            MeanLine(
                measure=measure,
                cell=replace(cell, note=note),
                interval=" to ".join(with_minus(figure(measure, end)) for end in ends),
                address=query_string(query, measures=",".join([measure.name, *rest])),
            )
        )

    cautions = [caution.message for caution in _cautions(measures, evaluation, selection)]
    return {"means": lines, "cautions": cautions, "confidence": f"{100 * _CONFIDENCE:g}%"}


def _chart_query(query: Query, **parameters: Any) -> dict[str, str]:
    """Return the parameters of a chart's address: the score precision, and those that are given."""
    return {
        "scores": query.get("scores", ""),
        **{name: str(value) for name, value in parameters.items() if value},
    }


def _of_evaluation(evaluation: Evaluation, query: Query) -> dict[str, Any]:
    return {"topics": query.get("topics", ""), "qrels": evaluation.qrels.version}


def _chart(
    chart: str, run: Run, evaluation: Evaluation, parameters: Mapping[str, str]
) -> PageFigure:
    return run_figure(
        RUN_CHARTS[chart](RunChartRequest(run, evaluation, parameters)), run.pk, parameters, "half"
    )


def _distribution(run: Run, evaluation: Evaluation, query: Query) -> PageFigure:
    """Return the chart of the values of the first measure."""
    measure = first_measure(run, query)
    parameters = _chart_query(query, measure=measure.name, **_of_evaluation(evaluation, query))
    return _chart("distribution", run, evaluation, parameters)


def _bars(run: Run, evaluation: Evaluation, query: Query) -> PageFigure:
    """Return the chart with a bar for each topic, alone or against another run."""
    measure = first_measure(run, query)
    parameters = _chart_query(query, measure=measure.name, **_of_evaluation(evaluation, query))
    return _chart("topics", run, evaluation, {**parameters, "other": query.get("other", "")})


def first_measure(run: Run, query: Query) -> Measure:
    collection = run.collection
    return measures_in(query, "measures", collection.measures, collection)[0]


def measure_with_curve(measures: list[Measure]) -> Measure | None:
    return next((measure for measure in measures if measure.definition.name in CURVES), None)


def _curve(
    run: Run, evaluation: Evaluation, query: Query, selection: TopicSelection | None
) -> dict[str, Any]:
    """Return the curve of the first measure that has one, with its readings at the requested
    ranks."""
    collection = run.collection
    measures = measures_in(query, "measures", collection.measures, collection)
    drawn = measure_with_curve(measures)
    parameters_of_curve = {name: query[name] for name in ("depth", "ranks") if query.get(name)}
    if drawn:
        parameters_of_curve["measure"] = drawn.name

    question = replace(CurveQuery.read(parameters_of_curve), with_readings=True)
    together = read_curves_together(evaluations=[evaluation], query=question, selection=selection)
    measure = together.measure
    parameters = _chart_query(
        query, measure=measure.name, depth=question.depth, **_of_evaluation(evaluation, query)
    )
    chart = curve_figure(
        together.curves[0], measure=measure, run=run.tag, confidence=question.confidence
    )
    chart = RunChartRequest(run, evaluation, parameters).source_of(
        chart.of_topics(selection), measure.name
    )
    others = [other.name for other in measures if other != drawn]

    return {
        "measure": measure.name,
        "without": measures[0].name if drawn != measures[0] else "",
        "depth": question.depth,
        "ranks": ",".join(map(str, ranks_read(question))),
        "choices": [
            (name, query_string(query, measures=",".join([_listed(name, question.depth), *others])))
            for name in curve_choices(measure)
        ],
        "readings": reading_table(together, question),
        "address": reverse("run-curve", args=[run.pk])
        + query_string({**parameters, "readings": "true"}),
        "chart": run_figure(chart, run.pk, parameters, "half"),
    }


def _listed(curve: str, depth: int) -> str:
    """Return the measure of a list that draws a curve: some need a cutoff. What is not a measure
    stays as it is."""
    for name in (curve, f"{curve}@{depth}"):
        with suppress(MeasureError):
            return parse_measure(name).name

    return curve


def _recall(run: Run, evaluation: Evaluation, query: Query) -> dict[str, Any]:
    """Return the curve of a level and all above it, or of a single `level`."""
    choices = recall_choices(query, evaluation.qrels)
    parameters = _chart_query(query, **choices["parameters"], **_of_evaluation(evaluation, query))
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
    measures = measures_in({}, "measures", run.collection.measures, run.collection)
    values = read_values(evaluation=evaluation, measures=measures)
    place = values.topic_ids.index(topic_id)
    return [
        (measure.name, figure(measure, float(values.vectors[measure.name][place])))
        for measure in measures
    ]
