"""The gate: check a run against a baseline by rules: it is fine, worse or undecided.

All numbers are the server's. The gate waits until both runs are evaluated under the same judgements
by the same engine; numbers that were read under others are read again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from .errors import BadRule, EvaluationFailed, NotFound, Refused, TimedOut
from .rules import (
    AT_LEAST,
    FINE,
    NO_SIGNIFICANT_DROP,
    UNDECIDED,
    WORSE,
    Result,
    Rule,
    decide,
    decide_least,
    parse_rule,
    read_pair,
)
from .runs import LABEL, Run, wait_for
from .sending import Call
from .verdicts import Verdict

if TYPE_CHECKING:
    from .collection import Collection

TESTS = ("paired_t", "bootstrap", "randomisation")
PREVIOUS = "previous"
# How names of measures begin that have values from tables.
_FROM_TABLES = "x:"
_JUDGED = "Judged@10"
_MAX_WORST = 5
_MAX_TOPICS = 1000
# How often numbers are read while judgements or the engine change.
_TRIES = 5
# The end of a tag after its stem: a number, or a commit.
_TAG_SUFFIX = re.compile(r"-(\d+|[0-9a-f]{7,40})\Z")


@dataclass(frozen=True)
class Question:
    """The rules of a gate, a test of TESTS, the level, and the seconds to wait for evaluations."""

    rules: tuple[Rule, ...]
    test: str = "paired_t"
    alpha: float = 0.05
    timeout: float = 600.0


def question_of(
    rules: str | Rule | Iterable[str | Rule], test: str, alpha: float, timeout: float
) -> Question:
    """Return the question; raise BadRule for a rule, ValueError for a test or level."""
    rules = [rules] if isinstance(rules, str | Rule) else list(rules)
    if not rules:
        raise ValueError("a gate needs a rule, such as 'nDCG@10 no-worse-than 0.01'")
    if test not in TESTS:
        raise ValueError(f"test is one of {', '.join(TESTS)}, not {test!r}")
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha is between 0 and 0.5, not {alpha!r}")

    return Question(tuple(map(parse_rule, rules)), test, alpha, timeout)


def evaluate_gate(
    collection: Collection,
    run: str | Run,
    baseline: str | Run | None,
    question: Question,
    *,
    no_baseline: str = "fail",
) -> Verdict:
    """Return the verdict.

    Raise NotFound without such a baseline, unless `no_baseline` is `pass`: a first run has none.
    """
    candidate = run if isinstance(run, Run) else collection.run(run)
    if baseline is None and any(rule.kind != AT_LEAST for rule in question.rules):
        raise BadRule(
            "every rule but at-least needs a baseline, such as a label or the run before: evh gate "
            f"{collection.slug} {candidate.tag} --baseline label:main, or --baseline previous"
        )

    reference, notes = None, []
    try:
        reference = _find_baseline(collection, candidate, baseline)
    except NotFound:
        if no_baseline != "pass":
            raise
        notes.append(f"there is no baseline {baseline} yet: nothing was compared")

    results, (qrels, engine) = _consistent_results(collection, candidate, reference, question)
    decide(results, question.alpha)
    if reference:
        _find_worst(collection, candidate, reference, results)

    # Lists of runs lack the number of a run among those of its team.
    candidate.refresh()
    verdicts = {result.verdict for result in results}
    worst = next((verdict for verdict in (WORSE, UNDECIDED) if verdict in verdicts), FINE)

    return Verdict({
        "verdict": worst,
        "collection": collection.slug,
        "qrels": qrels,
        "engine_version": engine,
        "test": question.test,
        "alpha": question.alpha,
        "candidate": _describe(candidate),
        "baseline": _describe(reference) if reference else None,
        "rules": [result.raw() for result in results],
        "notes": notes,
        "url": _address(collection, candidate, reference, question),
    })  # fmt: skip


def _consistent_results(
    collection: Collection, candidate: Run, baseline: Run | None, question: Question
) -> tuple[list[Result], tuple[int, str]]:
    """Return the numbers of every rule, all under the same judgements and engine, and these."""
    runs = [candidate, *([baseline] if baseline else [])]
    for tries_left in reversed(range(_TRIES)):
        wait_for(collection._hub, runs, question.timeout)
        for run in runs:
            if run.state in ("failed", "cancelled"):
                raise EvaluationFailed(run)

        try:
            results, versions = _results(collection, candidate, baseline, question)
        except Refused as error:
            # Since the evaluation, other judgements were activated, or another engine began.
            if error.code not in ("unknown_run", "not_evaluated") or not tries_left:
                raise
        else:
            if len(versions) == 1:
                return results, versions.pop()

        for run in runs:
            run.refresh()

    raise TimedOut(runs, question.timeout)


def promote(collection: Collection, verdict: Verdict, label: str, baseline: str | None) -> None:
    """Let a label name the candidate.

    If the baseline was this label, the label is moved only if it still names the baseline: otherwise
    another run was promoted meanwhile, and Conflict is raised.
    """
    fields: dict[str, Any] = {"run": verdict.candidate["id"], "note": f"gate: {verdict.verdict}"}
    reference = verdict.baseline
    same_team = not reference or reference["team"] == verdict.candidate["team"]
    baseline = baseline or ""
    is_label = baseline.startswith(LABEL)
    if same_team and is_label and baseline.removeprefix(LABEL).rpartition("/")[2] == label:
        fields["expected"] = reference["id"] if reference else None

    collection._hub.send(Call("PUT", f"{collection.path}labels/{label}/", json=fields))


def _find_baseline(
    collection: Collection, candidate: Run, baseline: str | Run | None
) -> Run | None:
    if baseline is None or isinstance(baseline, Run):
        return baseline
    if baseline != PREVIOUS:
        return collection.run(baseline)

    stem = stem_of(candidate.tag)
    earlier = collection.runs(team=candidate.team, tag=stem, submitted_before=candidate.created_at)
    for run in earlier:
        if stem_of(run.tag) == stem and run.state not in ("failed", "cancelled"):
            return run

    detail = f"team {candidate.team} has no earlier run {stem} in {collection.slug}"
    raise NotFound(404, {"code": "not_found", "detail": detail})


def stem_of(tag: str) -> str:
    """Return a tag without the number or commit at its end: bm25 of bm25-2, main of main-3f2a1bc."""
    return _TAG_SUFFIX.sub("", tag)


def _results(
    collection: Collection, candidate: Run, baseline: Run | None, question: Question
) -> tuple[list[Result], set[tuple[int, str]]]:
    """Return the numbers of every rule, and the judgements and engines under which they were read."""
    results, versions = [], set()
    for rule in question.rules:
        if rule.kind == AT_LEAST:
            lower_is_better = _is_lower_better(collection, rule.measure)
            # Values from tables say nothing of what the run retrieved.
            from_tables = rule.measure.startswith(_FROM_TABLES)
            measures = {"measures": rule.measure if from_tables else f"{rule.measure},{_JUDGED}"}
            body = collection._hub.read(f"runs/{candidate.id}/values/", measures)
            mean = next(iter(body["means"].values()))
            coverage = None if from_tables else _coverage_of(body)
            results.append(
                decide_least(rule, mean["mean"], mean["topics"], lower_is_better, coverage)
            )
        elif baseline is None:
            results.append(Result(rule, FINE, "there is nothing to be worse than yet"))
            continue
        elif baseline.id == candidate.id:
            results.append(Result(rule, FINE, "the baseline is this run itself"))
            continue
        else:
            two_sided = rule.kind == NO_SIGNIFICANT_DROP
            parameters = {
                "measures": rule.measure,
                "tests": question.test,
                "baseline": baseline,
                "alpha": question.alpha,
                # One-sided at alpha is the end of the two-sided interval at twice alpha.
                "confidence": repr(round(1 - (1 if two_sided else 2) * question.alpha, 12)),
                "correction": "none",
            }
            try:
                body = collection.compare(
                    candidate, baseline, timeout=question.timeout, **parameters
                ).raw
            except Refused as error:
                if error.code != "too_few_topics":
                    raise
                results.append(Result(rule, UNDECIDED, error.detail))
                continue

            results.append(read_pair(rule, body["measures"][0], str(candidate.id), question.test))

        versions.add((body["qrels"], body["engine_version"]))

    return results, versions or {(candidate.status["qrels"], "")}


def _is_lower_better(collection: Collection, measure: str) -> bool:
    if measure.startswith(_FROM_TABLES):
        name = quote(measure.removeprefix(_FROM_TABLES), safe="")
        declared = collection._hub.read(f"{collection.path}external-measures/{name}/")
        return bool(declared["direction"] == "lower")
    return bool(collection._hub.read(f"measures/{quote(measure, safe='')}/")["lower_is_better"])


def _coverage_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return how much of a run was measured, from its values and its Judged@10."""
    answered, topics = body["coverage"]["answered"], body["coverage"]["judged"]
    coverage = {"answered": answered / topics if topics else None, "k": 10}
    # A rule about Judged@10 itself has one mean.
    if len(body["means"]) > 1:
        coverage["judged"] = body["means"][_JUDGED]["mean"]
    return coverage


def _find_worst(
    collection: Collection, candidate: Run, baseline: Run, results: list[Result]
) -> None:
    """Add the topics that lost most to each result, with their texts if these may be read."""
    texts: dict[str, str] | None = None
    for result in results:
        if result.d is None or not result.n:
            continue

        difference = collection.difference(candidate, baseline, result.rule.measure)
        sign = -1 if result.lower_is_better else 1
        differences = [
            (sign * topic["difference"], topic)
            for topic in difference.topics
            if topic["difference"] is not None
        ]
        losses = [pair for pair in differences if pair[0] < 0]
        losses = sorted(losses, key=lambda pair: pair[0])[:_MAX_WORST]

        if losses and texts is None:
            texts = _texts_of_topics(collection)

        result.worst_topics = [
            {"topic_id": topic["topic_id"], "text": (texts or {}).get(topic["topic_id"], ""), "d": d,
             "candidate": topic["a"], "baseline": topic["b"]}
            for d, topic in losses
        ]  # fmt: skip


def _texts_of_topics(collection: Collection) -> dict[str, str]:
    try:
        listed = collection._hub.pages(f"{collection.path}topics/", rows=_MAX_TOPICS)
    except Refused:
        return {}
    return {topic["topic_id"]: topic["title"] for topic in listed["results"]}


def _describe(run: Run) -> dict[str, Any]:
    fields = {name: run.raw[name] for name in ("id", "team", "tag", "sha256")}
    return {**fields, "number": run.raw.get("number"), "page": run.page}


def _address(
    collection: Collection, candidate: Run, baseline: Run | None, question: Question
) -> str:
    """Return the address of the page with all numbers."""
    if baseline is None or baseline.id == candidate.id:
        return str(candidate.page)
    measures = ",".join(dict.fromkeys(rule.measure for rule in question.rules))
    runs = {"runs": f"{candidate.id},{baseline.id}", "baseline": baseline.id, "measures": measures}

    return f"{collection.page}comparison/?{urlencode(runs, safe=',')}"
