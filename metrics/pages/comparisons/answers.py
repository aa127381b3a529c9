"""A finished comparison on pages: the parts of the pages of two runs and of many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from metrics.charts.figure import Figure
from metrics.charts.values.curves_together import curves_together_figure
from metrics.charts.values.recall_together import recall_together_figure
from metrics.engine.curve.curves import MAX_DEPTH
from metrics.engine.significance import TESTS
from metrics.engine.significance.families import Family
from metrics.engine.significance.verdicts import MIN_TOPICS
from metrics.exports.comparisons import EXPORTS
from metrics.exports.comparisons.coverage import coverage_sentences
from metrics.exports.comparisons.tables import two_kinds
from metrics.exports.comparisons.words import (
    PRACTICAL_NAMES,
    TEST_NAMES,
    equivalence_sentence,
    named_family,
    too_few,
)
from metrics.exports.formats import FORMATS
from metrics.models import Evaluation
from metrics.pages.comparisons.controls import Text
from metrics.pages.parts import PageFigure, fill, shared_figure, shared_files
from metrics.pages.values.curves import (
    RECALL_PARAMETERS,
    curve_choices,
    ranks_read,
    reading_table,
    recall_choices,
)
from metrics.services.boards.curves_together import (
    MAX_TOGETHER,
    read_curves_together,
    read_recall_together,
)
from metrics.services.comparisons.comparison import Compared, split_omnibus
from metrics.services.comparisons.shown_pairs import (
    coverage_cautions,
    names_of,
    runs_by_row,
)
from metrics.services.comparisons.stored import Answer
from metrics.services.question import measure_in, run_ids_in
from metrics.services.values.common_values import not_corrected_again, qrels_cautions
from metrics.services.values.curves import CurveQuery, RecallQuery
from runs.errors import InvalidInput
from runs.models import Collection, Run, ShareLink

# The parameters of the curves, which are drawn if the address has one of them.
CURVE_PARAMETERS = ("curve", "depth", "ranks", *RECALL_PARAMETERS, "draw")
# The runs that are offered for a curve.
_CHOICES = 200
# Charts with a row for each run are tall for more runs than this.
_FEW_ROWS = 12


@dataclass(frozen=True)
class ShownComparison:
    """An answer under the selected measure; its numbers and verdicts are those of the first test.

    With a `link` it is shown to readers of a share link.
    """

    collection: Collection
    answer: Answer
    compared: Compared
    text: Text
    link: ShareLink | None = None

    @property
    def family(self) -> Family:
        return self.compared.families[0]

    @property
    def joint_intervals(self) -> bool:
        """Return whether the intervals hold for all pairs at once."""
        return TESTS[self.family.test].joint_intervals and self.family.size > 1

    @property
    def too_few(self) -> str:
        """Return a sentence on too few topics for verdicts; empty if there are enough."""
        return too_few(self.compared.topics) if self.compared.topics < MIN_TOPICS else ""

    @cached_property
    def runs(self) -> dict[int, Run]:
        """Return the runs that are not withdrawn by their rows, best first."""
        return runs_by_row(self.answer, self.compared)

    @cached_property
    def evaluations_with_curves(self) -> list[Evaluation]:
        """Return the evaluations whose curves are drawn, the best first.

        They are those of the runs that `draw` names, or of the first ones, as many as a chart has
        colours for. Raise InvalidInput for more, and for a run that is not compared.
        """
        evaluations = {}
        for row in self.runs:
            evaluation = self.evaluation(row)
            evaluations[str(evaluation.run_id)] = evaluation

        named = set(run_ids_in(self.text, "draw"))
        if len(named) > MAX_TOGETHER:
            message = f"{len(named)} runs; a chart shows the curves of at most {MAX_TOGETHER}"
            raise InvalidInput(message, pointer="draw")

        for run in named - set(evaluations):
            raise InvalidInput(
                f"run {run} is not among the compared runs", code="unknown_run", pointer="draw"
            )

        if not named:
            return list(evaluations.values())[:MAX_TOGETHER]

        return [evaluation for run, evaluation in evaluations.items() if run in named]

    @property
    def pair(self) -> bool:
        """Return whether the comparison is of two runs, of which none is withdrawn."""
        return self.compared.pairs.runs == len(self.runs) == 2

    @property
    def stale(self) -> bool:
        return self.answer.stale

    @property
    def in_detail(self) -> bool:
        """Return whether the page has topics, curves and rankings.

        Readers of a link see none, and old values have none.
        """
        return not self.stale and self.link is None

    @property
    def has_curves(self) -> bool:
        """Return whether the page has curves, beyond what `in_detail` says.

        Attributes may have changed since a stored comparison selected its topics, and charts of
        curves select them anew.
        """
        return self.in_detail and not (self.answer.stored and self.answer.entrants.selection)

    @cached_property
    def parameters(self) -> dict[str, str]:
        """Return the query as parameters, without weights, which files and charts do not have."""
        query = replace(self.answer.query, weights=None)
        if self.answer.stored and not query.runs:
            runs = [str(evaluation.run_id) for evaluation in self.answer.entrants.evaluations]
            query = replace(query, runs=runs)
        return query.address()

    def evaluation(self, row: int) -> Evaluation:
        return self.answer.entrants.evaluations[self.compared.order[row]]


def show(
    collection: Collection, answer: Answer, text: Text, link: ShareLink | None = None
) -> ShownComparison:
    """Return the answer under the measure named by `tab`, or the first one."""
    tab = measure_in(text, "tab", answer.results[0].measure.name, collection)
    compared = next((part for part in answer.results if part.measure == tab), answer.results[0])
    return ShownComparison(collection, answer, compared, text, link)


def common_parts(comparison: ShownComparison) -> dict[str, Any]:
    """Return the parts of the context that the pages of two and of many runs share."""
    answer, compared = comparison.answer, comparison.compared
    coverage = coverage_cautions(answer, compared)
    if comparison.pair:
        # A sentence under the verdict has the shares of both runs.
        coverage = [caution for caution in coverage if caution.code != "uneven_judging"]

    cautions = [
        *qrels_cautions([compared.measure], answer.entrants.qrels),
        *compared.cautions,
        *coverage,
        *split_omnibus(compared, answer.query.rule),
    ]
    selection = answer.entrants.selection
    if selection:
        cautions = [*selection.cautions, *cautions]

    messages = [caution.message for caution in cautions]
    among = ""
    if answer.narrowed:
        among = f"among {named_family(answer, comparison.family.test)}: "

    # A caution that only some of the tests have names them.
    tests_of: dict[str, list[str]] = {}
    for family in compared.families:
        messages += [
            caution.message
            for caution in not_corrected_again(family.test, answer.query.rule.correction)
        ]
        for caution in dict.fromkeys(family.result.cautions):
            tests_of.setdefault(caution.message, []).append(TEST_NAMES[family.test])

    if compared.equivalence:
        for caution in compared.equivalence.cautions:
            tests_of.setdefault(caution.message, []).append(PRACTICAL_NAMES["tost"])

    tests = len(compared.families) + (compared.equivalence is not None)
    for message, names in tests_of.items():
        tests_words = "" if len(names) == tests else f"{', '.join(names)}: "
        messages.append(f"{among}{tests_words}{message}")

    baselines = [comparison.runs[row] for row in compared.pairs.baselines if row in comparison.runs]

    return {
        "comparison": comparison,
        "qrels": answer.entrants.qrels,
        "selection": selection,
        "measures": [result.measure.name for result in answer.results],
        "measure": compared.measure.name,
        "coverage": coverage_sentences(answer, compared),
        "cautions": list(dict.fromkeys(messages)),
        "baselines": baselines,
        "confidence": f"{100 * answer.query.options.confidence:g}%",
        "files": files(comparison),
        "left_out": len(compared.left_out),
        "posteriors": bool(answer.query.practical.posteriors),
        "rope": f"{answer.query.practical.rope:g}",
        "equivalence": equivalence_sentence(answer, compared),
    }


def files(comparison: ShownComparison) -> list[tuple[str, str]]:
    """Return the title and address of this comparison in every format.

    A table is for one test, or for one of ranks and one of means.
    """
    if comparison.link:
        return shared_files(comparison.link, EXPORTS)

    stored, query = comparison.answer.stored, comparison.answer.query
    has_table = len(query.tests) == 1 or two_kinds(query)

    if stored:
        kinds = ["csv", "md", "tex"] if has_table else ["csv"]
        selection = ""
        if comparison.answer.narrowed:
            selection = f"?{urlencode({'runs': ','.join(query.runs)})}"

        addresses = {
            kind: reverse("stored-comparison-export", args=[stored.pk, kind]) + selection
            for kind in kinds
        }
        addresses["json"] = reverse("stored-comparison", args=[stored.pk]) + selection
    else:
        slug, parameters = comparison.collection.slug, comparison.parameters
        of_table = parameters if has_table else {**parameters, "tests": comparison.family.test}
        addresses = {}
        for kind in ("csv", "md", "tex"):
            text = urlencode(parameters if kind == "csv" else of_table)
            addresses[kind] = f"{reverse('comparison-export', args=[slug, kind])}?{text}"
        text = urlencode(parameters | ({"weights": query.weights} if query.weights else {}))
        addresses["json"] = f"{reverse('comparison', args=[slug])}?{text}"

    titles = {kind: FORMATS[kind].title for kind in EXPORTS} | {"json": "JSON"}
    return [(titles[kind], address) for kind, address in addresses.items()]


def answer_figure(comparison: ShownComparison, figure: Figure) -> PageFigure:
    """Return a chart of the comparison with a row for each run."""
    tall = len(comparison.runs) > _FEW_ROWS
    sizes = ("tall", "narrow-tall") if tall else ("column", "narrow")
    if comparison.link:
        return shared_figure(figure, comparison.link, *sizes)

    chosen = {"measures": comparison.compared.measure.name, "tests": comparison.family.test}

    if comparison.answer.stored:
        if comparison.answer.narrowed:
            chosen["runs"] = ",".join(comparison.answer.query.runs)

        return PageFigure(
            figure,
            "stored-comparison-chart",
            {"comparison": comparison.answer.stored.pk},
            chosen,
            *sizes,
        )

    arguments = {"collection": comparison.collection.slug}
    parameters = {**comparison.parameters, **chosen}

    return PageFigure(figure, "collection-chart", arguments, parameters, *sizes)


def fill_curves(context: dict[str, Any], comparison: ShownComparison) -> int:
    """Add the curves of some runs if they are requested. Return the status of the page."""
    if not any(comparison.text.get(name) for name in CURVE_PARAMETERS):
        return 200

    context["with_curves"] = True
    if len(comparison.runs) > MAX_TOGETHER:
        fill(context, "curve_runs", curve_runs_part, comparison)

    return max(
        fill(context, "curves", curves_part, comparison),
        fill(context, "recall", recall_part, comparison),
    )


def curves_part(comparison: ShownComparison) -> dict[str, Any]:
    """Return the curves of some runs with their readings, under the measure that is requested."""
    text = comparison.text
    curve_text = {
        "measure": text.get("curve", ""),
        "depth": text.get("depth", ""),
        "ranks": text.get("ranks", ""),
    }
    query = replace(CurveQuery.read(curve_text), with_readings=True)
    evaluations = comparison.evaluations_with_curves
    selection = comparison.answer.entrants.selection
    together = read_curves_together(evaluations=evaluations, query=query, selection=selection)
    parameters = {
        "measure": together.measure.name,
        "depth": str(query.depth),
        **_together(comparison),
    }
    figure = curves_together_figure(together, len(comparison.runs))
    page = reverse("collection-curves", args=[comparison.collection.slug])

    return {
        "readings": reading_table(together, query),
        "ranks": ",".join(map(str, ranks_read(query))),
        "address": f"{page}?{urlencode(parameters)}&readings=true",
        "measure": together.measure.name,
        "depth": query.depth,
        "most": MAX_DEPTH,
        "choices": curve_choices(together.measure),
        "all": len(evaluations) == len(comparison.runs),
        "number": len(evaluations),
        "figure": PageFigure(
            figure,
            "collection-chart",
            {"collection": comparison.collection.slug},
            parameters,
            "wide",
        ),
    }


def curve_runs_part(comparison: ShownComparison) -> dict[str, Any]:
    """Return the runs that have a curve, and the runs that can have one: those of the table."""
    drawn = {evaluation.run_id for evaluation in comparison.evaluations_with_curves}
    runs = list(comparison.runs.values())[:_CHOICES]
    names = names_of(runs)

    return {
        "choices": [(run.pk, names[run], run.pk in drawn) for run in runs],
        "number": len(drawn),
        "most": MAX_TOGETHER,
        "runs": len(comparison.runs),
    }


def recall_part(comparison: ShownComparison) -> dict[str, Any]:
    """Return precision over recall of some runs."""
    choices = recall_choices(comparison.text, comparison.answer.entrants.qrels)
    evaluations = comparison.evaluations_with_curves
    together = read_recall_together(
        evaluations=evaluations,
        query=RecallQuery.read(choices["parameters"]),
        selection=comparison.answer.entrants.selection,
    )
    parameters = {**choices["parameters"], **_together(comparison)}
    arguments = {"collection": comparison.collection.slug}
    page = reverse("collection-precision-recall", args=[comparison.collection.slug])

    return choices | {
        "all": len(evaluations) == len(comparison.runs),
        "number": len(evaluations),
        "address": f"{page}?{urlencode(parameters)}",
        "figure": PageFigure(
            recall_together_figure(together, len(comparison.runs)),
            "collection-chart",
            arguments,
            parameters,
            "wide",
        ),
    }


def _together(comparison: ShownComparison) -> dict[str, str]:
    """Return the runs with curves, and the topics, as parameters of their charts."""
    runs = ",".join(str(evaluation.run_id) for evaluation in comparison.evaluations_with_curves)
    selection = comparison.answer.entrants.selection
    parameters = {
        "runs": runs,
        "scores": comparison.answer.query.scores or "",
        "topics": selection.text if selection else "",
    }
    return {name: value for name, value in parameters.items() if value}
