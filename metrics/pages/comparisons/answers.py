"""A finished comparison on pages: the parts that are the same for two and for many runs."""

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
from metrics.pages.parts import ShownFigure, shared_figure, shared_files
from metrics.pages.values.curves import curve_choices, ranks_read, reading_table, recall_choices
from metrics.services.boards.curves_together import (
    MAX_TOGETHER,
    read_curves_together,
    read_recall_together,
)
from metrics.services.comparisons.comparison import Compared, split_omnibus
from metrics.services.comparisons.shown_pairs import (
    coverage_cautions,
    names_of,
    rows_of,
    run_of,
)
from metrics.services.comparisons.stored import Answer
from metrics.services.question import measure_in, run_ids_in
from metrics.services.values.common_values import not_corrected_again, qrels_cautions
from metrics.services.values.curves import CurveQuery, RecallQuery
from runs.errors import InvalidInput
from runs.models import Collection, ShareLink

# The runs among which those with a curve are chosen.
_CHOICES = 200
# Charts with a row for each run are tall from this many runs on.
_FEW_ROWS = 12


@dataclass(frozen=True)
class Shown:
    """An answer under the selected measure; its numbers and verdicts are those of the first test.
    With a `link` it is shown to readers of a share link."""

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
        """Return why there are no verdicts, if there are too few topics."""
        return too_few(self.compared.topics) if self.compared.topics < MIN_TOPICS else ""

    @property
    def rows(self) -> list[int]:
        return rows_of(self.answer, self.compared)

    @cached_property
    def drawn(self) -> list[Evaluation]:
        """Return those whose curves are drawn, the best first: of the runs that `draw` names, or of
        the first ones, as many as a chart has colours for. Raise InvalidInput for more, and for a
        run that is not compared."""
        there = {str((one := self.evaluation(row)).run_id): one for row in self.rows}
        named = set(run_ids_in(self.text, "draw"))
        if len(named) > MAX_TOGETHER:
            message = f"{len(named)} runs; a chart shows the curves of at most {MAX_TOGETHER}"
            raise InvalidInput(message, pointer="draw")
        for run in named - set(there):
            raise InvalidInput(
                f"run {run} is not among the compared runs", code="unknown_run", pointer="draw"
            )
        return [one for run, one in there.items() if run in named] or list(there.values())[
            :MAX_TOGETHER
        ]

    @property
    def pair(self) -> bool:
        """Return whether two runs are compared that are not withdrawn."""
        return self.compared.pairs.runs == len(self.rows) == 2

    @property
    def stale(self) -> bool:
        return self.answer.stale

    @property
    def in_detail(self) -> bool:
        """Return whether topics, curves and rankings are shown: not to readers of a link, and not
        of old values."""
        return not self.stale and self.link is None

    @cached_property
    def asked(self) -> dict[str, str]:
        """Return the query as parameters."""
        query = self.answer.query
        if self.answer.stored and not query.runs:
            runs = [str(evaluation.run_id) for evaluation in self.answer.entrants.evaluations]
            query = replace(query, runs=runs)
        return query.address()

    def evaluation(self, row: int) -> Evaluation:
        return self.answer.entrants.evaluations[self.compared.order[row]]


def show(
    collection: Collection, answer: Answer, text: Text, link: ShareLink | None = None
) -> Shown:
    """Return the answer under the measure named by `by`, or the first one."""
    by = measure_in(text, "by", answer.results[0].measure.name, collection.documents)
    compared = next((one for one in answer.results if one.measure == by), answer.results[0])
    return Shown(collection, answer, compared, text, link)


def common_parts(shown: Shown) -> dict[str, Any]:
    """Return the parts of the context that the pages of two and of many runs share."""
    answer, compared = shown.answer, shown.compared
    unsuited = qrels_cautions([compared.measure], answer.entrants.qrels)
    covered = coverage_cautions(answer, compared)
    if shown.pair:
        # Under the verdict there is a sentence of both shares.
        covered = [caution for caution in covered if caution.code != "uneven_judging"]
    cautions = [
        *unsuited,
        *compared.cautions,
        *covered,
        *split_omnibus(compared, answer.query.rule),
    ]
    messages = [caution.message for caution in cautions]
    among = f"among {named_family(answer, shown.family.test)}: " if answer.narrowed else ""
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
        # A caution that some of the tests have names them.
        named = "" if len(names) == tests else f"{', '.join(names)}: "
        messages.append(f"{among}{named}{message}")
    baseline = compared.pairs.baseline
    return {
        "shown": shown,
        "qrels": answer.entrants.qrels,
        "measures": [one.measure.name for one in answer.results],
        "measure": compared.measure.name,
        "coverage": coverage_sentences(answer, compared),
        "cautions": list(dict.fromkeys(messages)),
        "baseline": run_of(answer, compared, baseline)
        if baseline is not None and baseline in shown.rows
        else None,
        "confidence": f"{100 * answer.query.options.confidence:g}%",
        "files": files(shown),
        "left_out": len(compared.left_out),
        "posteriors": bool(answer.query.practical.posteriors),
        "rope": f"{answer.query.practical.rope:g}",
        "equivalence": equivalence_sentence(answer, compared),
    }


def files(shown: Shown) -> list[tuple[str, str]]:
    """Return the addresses of this comparison in every format.

    A table is for one test, or for one of ranks and one of means.
    """
    if shown.link:
        return shared_files(shown.link, EXPORTS)
    stored, asked, query = shown.answer.stored, shown.asked, shown.answer.query
    tabled = len(query.tests) == 1 or two_kinds(query)
    if stored:
        kinds = ["csv", "md", "tex"] if tabled else ["csv"]
        some = f"?{urlencode({'runs': ','.join(query.runs)})}" if shown.answer.narrowed else ""
        addresses = {
            kind: reverse("stored-comparison-export", args=[stored.pk, kind]) + some
            for kind in kinds
        }
        addresses["json"] = reverse("stored-comparison", args=[stored.pk]) + some
    else:
        slug, one = (
            shown.collection.slug,
            asked if tabled else {**asked, "tests": shown.family.test},
        )
        addresses = {
            kind: f"{reverse('comparison-export', args=[slug, kind])}?{urlencode(asked if kind == 'csv' else one)}"
            for kind in ("csv", "md", "tex")
        }
        addresses["json"] = f"{reverse('comparison', args=[slug])}?{urlencode(asked)}"
    names = {kind: FORMATS[kind].title for kind in EXPORTS} | {"json": "JSON"}
    return [(names[kind], address) for kind, address in addresses.items()]


def answer_figure(shown: Shown, figure: Figure) -> ShownFigure:
    """Return a chart of the comparison with a row for each run."""
    tall = len(shown.rows) > _FEW_ROWS
    sizes = ("tall", "narrow-tall") if tall else ("column", "narrow")
    if shown.link:
        return shared_figure(figure, shown.link, *sizes)
    chosen = {"measures": shown.compared.measure.name, "tests": shown.family.test}
    if shown.answer.stored:
        chosen |= {"runs": ",".join(shown.answer.query.runs)} if shown.answer.narrowed else {}
        return ShownFigure(
            figure,
            "stored-comparison-chart",
            {"comparison": shown.answer.stored.pk},
            chosen,
            *sizes,
        )
    arguments = {"collection": shown.collection.slug}
    return ShownFigure(figure, "collection-chart", arguments, {**shown.asked, **chosen}, *sizes)


def curves_part(shown: Shown) -> dict[str, Any]:
    """Return the curves of some runs with their readings, under the requested measure and to the
    requested rank."""
    text = shown.text
    given = {
        "measure": text.get("curve", ""),
        "depth": text.get("depth", ""),
        "ranks": text.get("ranks", ""),
    }
    query = replace(CurveQuery.read(given), with_readings=True)
    evaluations = shown.drawn
    together = read_curves_together(evaluations=evaluations, query=query)
    asked = {"measure": together.measure.name, "depth": str(query.depth), **_together(shown)}
    figure = curves_together_figure(together, len(shown.rows))
    return {
        "readings": reading_table(together, query),
        "ranks": ",".join(map(str, ranks_read(query))),
        "address": f"{reverse('collection-curves', args=[shown.collection.slug])}?{urlencode(asked)}&readings=true",
        "measure": together.measure.name,
        "depth": query.depth,
        "most": MAX_DEPTH,
        "choices": curve_choices(together.measure),
        "all": len(evaluations) == len(shown.rows),
        "drawn": len(evaluations),
        "figure": ShownFigure(
            figure, "collection-chart", {"collection": shown.collection.slug}, asked, "wide"
        ),
    }


def drawn_choices(shown: Shown) -> dict[str, Any]:
    """Return which runs have a curve, and which can have one instead: those of the table."""
    drawn = {evaluation.run_id for evaluation in shown.drawn}
    runs = [run_of(shown.answer, shown.compared, row) for row in shown.rows[:_CHOICES]]
    names = names_of(runs)
    return {
        "choices": [(run.pk, names[run], run.pk in drawn) for run in runs],
        "drawn": len(drawn),
        "most": MAX_TOGETHER,
        "runs": len(shown.rows),
    }


def recall_part(shown: Shown) -> dict[str, Any]:
    """Return precision over recall of some runs."""
    choices, evaluations = recall_choices(shown.text, shown.answer.entrants.qrels), shown.drawn
    together = read_recall_together(
        evaluations=evaluations, query=RecallQuery.read(choices["parameters"])
    )
    asked, arguments = (
        {**choices["parameters"], **_together(shown)},
        {"collection": shown.collection.slug},
    )
    return choices | {
        "all": len(evaluations) == len(shown.rows),
        "drawn": len(evaluations),
        "address": f"{reverse('collection-precision-recall', args=[shown.collection.slug])}?{urlencode(asked)}",
        "figure": ShownFigure(
            recall_together_figure(together, len(shown.rows)),
            "collection-chart",
            arguments,
            asked,
            "wide",
        ),
    }


def _together(shown: Shown) -> dict[str, str]:
    """Return the drawn runs as parameters of their charts."""
    asked = {"runs": ",".join(str(evaluation.run_id) for evaluation in shown.drawn)}
    scores = shown.answer.query.scores
    return asked | ({"scores": scores} if scores else {})
