"""The parameters of a comparison page, and its form."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from metrics.engine.significance import CORRECTIONS, TESTS
from metrics.engine.significance.families import USUAL_TEST, USUAL_TEST_OF_A_PAIR
from metrics.engine.significance.pairs import DEFAULTS, TIES, ZEROS
from metrics.engine.significance.practical import PRACTICAL
from metrics.exports.comparisons.words import CORRECTION_NAMES, PRACTICAL_NAMES, TEST_NAMES
from metrics.models import Evaluation
from metrics.pages.comparisons.words import ASKS, PRACTICAL_ASKS
from metrics.pages.parts import RunField
from metrics.services.boards.board_question import active_qrels
from metrics.services.boards.selection import tested_measures
from metrics.services.boards.topic_selection import with_key
from metrics.services.comparisons.comparison import ComparisonQuery
from metrics.services.question import run_ids_in
from runs.errors import InvalidInput
from runs.models import Collection, Qrels
from runs.services.collections.topic_attributes import attribute_keys

Text = Mapping[str, str]
# At most this many runs are listed to select; others can be selected on a leaderboard.
_LISTED = 200
_NAMED = 24
# Parameters with a field of their own, in addition to the numbers and those of Wilcoxon's test.
_OF_TOPICS = ("topics", "by", "weights")
_FIELDS = ("measures", "runs", "baseline", "tests", "correction")
_NUMBERS = [
    kind
    for kind in ComparisonQuery.parameters()
    if kind.name in ("alpha", "confidence", "margin", "rope")
]

# How Wilcoxon's test treats zeros and ties: parameter, label, default, choices.
_WILCOXON = (
    (
        "ties",
        "Ties of Wilcoxon's test",
        DEFAULTS.ties,
        dict(zip(TIES, ("exact", "rounded, to 12 digits"), strict=True)),
    ),
    (
        "zeros",
        "Zeros of Wilcoxon's test",
        DEFAULTS.zeros,
        dict(zip(ZEROS, ("dropped", "ranked and then dropped (Pratt)"), strict=True)),
    ),
)


@dataclass(frozen=True)
class RunChoice:
    """A run that may take part; `without` is the address of the page without a chosen run."""

    id: str
    tag: str
    team: str
    chosen: bool
    without: str = ""


@dataclass(frozen=True)
class Choice:
    """An entry of a list of tests or corrections."""

    name: str
    title: str
    chosen: bool
    asks: str = ""


@dataclass(frozen=True)
class Controls:
    """The form, with the current values of its fields."""

    measures: str
    runs: list[RunChoice]
    # Without a spelling mistake these are ids.
    baselines: list[str]
    tests: list[Choice]
    practical: list[Choice]
    corrections: list[Choice]
    families: list[Choice]
    numbers: dict[str, str]
    wilcoxon: list[tuple[str, str, list[Choice]]]
    hidden_fields: dict[str, str]
    # The keys of attributes of topics; without any, topics cannot be selected here.
    keys: list[str]
    topics: str
    by: str
    weights: str

    @property
    def chosen(self) -> list[RunChoice]:
        return [run for run in self.runs if run.chosen]

    @property
    def more(self) -> bool:
        """Return whether there may be runs that are not listed."""
        return len(self.runs) >= _LISTED

    @property
    def field(self) -> RunField:
        """Return the choice of the baseline."""
        choices = [(run.id, run.tag, run.team) for run in self.runs]
        chosen = next(iter(self.baselines), "")
        return RunField("baseline", choices, chosen, self.more, "none (all pairs)")

    @property
    def further(self) -> list[str]:
        """Return the baselines after the first one."""
        return self.baselines[1:]

    @property
    def named(self) -> list[RunChoice]:
        """Return the chosen runs if there are few enough to name each."""
        return self.chosen if len(self.chosen) <= _NAMED else []

    @property
    def question(self) -> str:
        """Return what is compared in one line: measures, tests, correction, family and level."""
        families = [choice for choice in self.families if choice.chosen]
        alone = any(not choice.name for choice in families)
        corrections = [choice for choice in self.corrections if choice.chosen and not alone]

        titles = [choice.title for choice in [*corrections, *families]]
        topics = f"topics {self.topics}" if self.topics else ""
        parts = [self.measures, topics, self.chosen_tests, *titles, self.numbers["alpha"]]

        return ", ".join(part for part in parts if part)

    @property
    def chosen_tests(self) -> str:
        return ", ".join(test.title for test in [*self.tests, *self.practical] if test.chosen)


def make_controls(collection: Collection, text: Text) -> Controls:
    """Return the form. Raise NotFound without judgements."""
    qrels = active_qrels(collection)
    runs = _runs(collection, qrels, text)

    baselines = _parts(text, "baseline")
    # Without chosen runs, every run is compared with the baselines.
    chosen = set(_parts(text, "runs"))
    chosen.update(baselines if chosen else [])
    of_a_pair = len(chosen or runs) == 2
    family = text.get("family") or ""

    tests = [part.strip() for part in (text.get("tests") or text.get("test") or "").split(",")]
    if not any(tests):
        tests = [USUAL_TEST_OF_A_PAIR if of_a_pair and not family else USUAL_TEST]

    correction = text.get("correction") or "holm"

    keys = attribute_keys(collection)
    wilcoxon = []
    for name, title, usual, choices in _WILCOXON:
        value = text.get(name) or usual
        options = [Choice(choice, words, choice == value) for choice, words in choices.items()]
        wilcoxon.append((name, title, options))

    return Controls(
        measures=text.get("measures") or text.get("measure") or tested_measures(collection)[0],
        runs=runs,
        baselines=baselines,
        tests=[Choice(name, TEST_NAMES[name], name in tests, ASKS[name]) for name in TESTS],
        practical=[
            Choice(name, PRACTICAL_NAMES[name], name in tests, PRACTICAL_ASKS[name])
            for name in PRACTICAL
        ],
        corrections=[
            Choice(name, CORRECTION_NAMES[name], name == correction) for name in CORRECTIONS
        ],
        families=_families(family) if of_a_pair and len(runs) > 2 else [],
        numbers={kind.name: text.get(kind.name) or kind.write(kind.default) for kind in _NUMBERS},
        wilcoxon=wilcoxon,
        hidden_fields={
            name: text[name]
            for name in _hidden_names()
            if text.get(name) and not (keys and name in _OF_TOPICS)
        },
        keys=with_key(keys, text.get("by") or "") if keys else [],
        topics=text.get("topics") or "",
        by=text.get("by") or "",
        weights=text.get("weights") or "",
    )


def _parts(text: Text, name: str) -> list[str]:
    return [part.strip() for part in text.get(name, "").split(",") if part.strip()]


def _families(family: str) -> list[Choice]:
    """Return the runs among which a pair can be tested: none, all, or those of the address."""
    titles = {"": "tested alone", "all": "tested among all runs"}
    titles.setdefault(family, "tested among the runs that it was selected from")
    return [Choice(name, title, name == family) for name, title in titles.items()]


def _hidden_names() -> list[str]:
    """Return the parameters without a field, which the form sends on unchanged."""
    with_field = {*_FIELDS, *(kind.name for kind in _NUMBERS), *(name for name, *_ in _WILCOXON)}
    return [kind.name for kind in ComparisonQuery.parameters() if kind.name not in with_field]


def _runs(collection: Collection, qrels: Qrels, text: Text) -> list[RunChoice]:
    """Return the evaluated runs by tag, always with the chosen ones and the baselines."""
    current = Evaluation.objects.current(qrels, text.get("scores") or collection.scores).evaluated()
    columns = current.order_by("run__tag", "run__team__slug").values_list(
        "run_id", "run__tag", "run__team__slug"
    )
    rows = {str(row[0]): row for row in columns[:_LISTED]}

    try:
        chosen = run_ids_in(text)
    except InvalidInput:
        # The answer reports the id that is none.
        chosen = []

    baselines: list[str] = []
    with suppress(InvalidInput):
        baselines = run_ids_in(text, "baseline")

    missing = [run for run in (*chosen, *baselines) if run not in rows]
    if missing:
        rows.update({str(row[0]): row for row in columns.filter(run__in=missing)})

    return [
        RunChoice(
            id=pk,
            tag=tag,
            team=team,
            chosen=pk in chosen,
            without=_without(collection, text, chosen, pk) if pk in chosen else "",
        )
        for pk, (_, tag, team) in rows.items()
    ]


def _without(collection: Collection, text: Text, chosen: list[str], run: str) -> str:
    query = {**text, "runs": ",".join(other for other in chosen if other != run)}
    query["baseline"] = ",".join(other for other in _parts(text, "baseline") if other != run)
    return address(collection, query)


def address(collection: Collection, text: Text) -> str:
    """Return the address of the comparison page with these parameters."""
    query = urlencode({name: value for name, value in text.items() if value})
    page = reverse("comparison-page", args=[collection.slug])
    return f"{page}?{query}" if query else page
