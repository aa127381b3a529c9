"""Conditions of a filter on parameters, against an oracle in Python, and what is said of those that cannot be read."""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser

from metrics.services.boards.matching import matching_runs
from metrics.services.snapshots import one_snapshot
from runs.errors import InvalidInput
from runs.models import Collection, Run, User
from runs.services.tracking.parameters import store_parameters
from tests.metrics.boards import make_board, make_run, simulated

KEYS = ("k", "bm25.k1", "number of cores")
VALUES = (
    None, 1, "1", True, False, 0.9, "0.9", 2, -1500.0, 0, "splade-v2", "Splade", "Straße", "2026-02-01",
    "2026-01-31T10:00", "x" * 300, 0.1 + 0.2,
)  # fmt: skip
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
Term = tuple[str, Callable[[dict[str, Any]], bool]]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equals(value: Any, wanted: str) -> bool:
    """What `=wanted` means for a stored value."""
    if wanted in ("true", "false"):
        return isinstance(value, bool) and value == (wanted == "true")
    if re.fullmatch(r"-?[0-9.]+(e[0-9]+)?", wanted):
        return is_number(value) and abs(value - float(wanted)) <= 1e-12 * abs(value)
    pattern = ".*".join(re.escape(part) for part in wanted.strip('"').casefold().split("*"))
    return isinstance(value, str) and re.fullmatch(pattern, value.casefold()[:200]) is not None


def condition(rng: random.Random) -> Term:
    key = rng.choice(KEYS)
    name = f'param:"{key}"' if " " in key else f"param:{key}"
    kind = rng.randrange(5)
    if kind == 0:
        return name, lambda run: run.get(key) is not None
    if kind == 1:
        sign, bound = rng.choice(list(COMPARE)), rng.choice(("0.9", "1", "-2", "1.5e3", "0"))
        return (
            f"{name}{sign}{bound}",
            lambda run: is_number(run.get(key)) and COMPARE[sign](run[key], float(bound)),
        )
    if kind == 2:
        sign, day = rng.choice(list(COMPARE)), rng.choice(("2026-01-31", "2026-02-01"))
        dated = re.compile(r"\d{4}-\d\d-\d\d")
        return (
            f"{name}{sign}{day}",
            lambda run: (
                bool(dated.match(str(run.get(key)))) and COMPARE[sign](str(run[key])[:10], day)
            ),
        )
    if kind == 3:
        low, high = sorted(rng.sample((-1500, 0, 0.9, 1, 2), 2))
        return (
            f"{name}={low}..{high}",
            lambda run: is_number(run.get(key)) and low <= run[key] <= high,
        )
    wanted = rng.sample(
        ("1", '"1"', "true", "false", "0.9", "splade*", "*a*", '"0.9"', "STRASSE", "0.3", "-1.5e3"),
        2,
    )
    sign = rng.choice(("=", "!="))
    return (
        f"{name}{sign}{','.join(wanted)}",
        lambda run: (
            run.get(key) is not None
            and any(equals(run[key], value) for value in wanted) == (sign == "=")
        ),
    )


def tree(rng: random.Random, depth: int) -> Term:
    if depth == 0 or rng.random() < 0.3:
        return condition(rng)
    if rng.random() < 0.3:
        text, holds = tree(rng, depth - 1)
        return f"-({text})", lambda run: not holds(run)
    (first_text, first), (right, second) = tree(rng, depth - 1), tree(rng, depth - 1)
    if rng.random() < 0.5:
        return f"({first_text}) ({right})", lambda run: first(run) and second(run)
    return f"({first_text} OR {right})", lambda run: first(run) or second(run)


@pytest.fixture
def board(alice: User) -> Collection:
    return make_board(alice.personal_team, {"AP": simulated(3, 8)})


def store(collection: Collection, documents: dict[str, dict[str, Any]]) -> None:
    runs = [make_run(collection, tag) for tag in documents]
    for run in runs:
        run.metadata = {
            name: value for name, value in documents[run.tag].items() if value is not None
        }
    Run.objects.bulk_update(runs, ["metadata"])
    store_parameters(collection, runs)


def tags_of(collection: Collection, text: str) -> list[str]:
    own = Run.objects.filter(collection=collection, tag__startswith="run")
    return sorted(
        matching_runs(collection, text, AnonymousUser(), own).values_list("tag", flat=True)
    )


@pytest.mark.slow
def test_filters_mean_what_the_oracle_says(board: Collection) -> None:
    rng = random.Random(7)
    documents = {f"run{number}": {key: rng.choice(VALUES) for key in KEYS} for number in range(40)}
    store(board, documents)
    for _ in range(120):
        text, holds = tree(rng, 2)
        expected = sorted(tag for tag, values in documents.items() if holds(values))
        assert tags_of(board, text) == expected, text
        rest = sorted(documents.keys() - set(expected))
        assert tags_of(board, f"-({text})") == rest, text


def test_types_are_kept_apart(board: Collection) -> None:
    documents = {
        "run-number": {"k": 1},
        "run-text": {"k": "1"},
        "run-true": {"k": True},
        "run-none": {"k": None},
    }
    store(board, documents)
    assert tags_of(board, "param:k=1") == ["run-number"]
    assert tags_of(board, 'param:k="1"') == ["run-text"]
    assert tags_of(board, "param:k=true") == ["run-true"]
    assert tags_of(board, "param:k!=1") == ["run-text", "run-true"]
    assert tags_of(board, "-param:k=1") == ["run-none", "run-text", "run-true"]
    assert tags_of(board, "-param:k") == ["run-none"]
    assert tags_of(board, "has:parameters") == ["run-number", "run-text", "run-true"]


@pytest.mark.django_db(transaction=True)
def test_what_is_remembered_of_a_parameter_follows_every_change(board: Collection) -> None:
    def ask(text: str) -> list[str]:
        # As every request does: what it asks is remembered until anything is committed.
        with one_snapshot():
            return tags_of(board, text)

    def change(metadata: dict[str, Any]) -> None:
        Run.objects.filter(pk=run.pk).update(metadata=metadata)
        run.refresh_from_db()
        store_parameters(board, [run])

    with pytest.raises(InvalidInput, match="no run here has a parameter k"):
        ask("param:k=1")
    store(board, {"run": {"k": 1}})
    run = Run.objects.get(tag="run")
    assert ask("param:k=1") == ask("param:k=1") == ["run"]
    change({"k": "one"})
    assert ask("param:k=one") == ["run"]
    with pytest.raises(InvalidInput, match="the only value of k is text"):
        ask("param:k>1")
    change({})
    with pytest.raises(InvalidInput, match="no run here has a parameter k"):
        ask("param:k=one")


def test_names_may_have_dots_and_blanks(board: Collection) -> None:
    store(
        board,
        {"run1": {"a\\.b": 1}, "run2": {"a": {"b": 2}}, "run3": {"number of cores": 3, "a": 9}},
    )
    assert tags_of(board, "param:a\\.b=1") == ["run1"]
    assert tags_of(board, "param:a.b") == ["run2"]
    assert tags_of(board, 'param:"number of cores">2') == ["run3"]
    assert tags_of(board, "PARAM:a=9 OR param:a.b<3") == ["run2", "run3"]


REFUSED = {
    "param:bm25.k": "character 1: no run here has a parameter bm25.k; there are bm25.b and bm25.k1",
    "-param:zzz": "character 2: no run here has a parameter zzz; there are bm25.b, bm25.k1, model and on",
    "param:bm25.k1>": "character 14: > needs a number or a date such as 2026-01-31",
    "param:bm25.k1>fast": "character 14: > needs a number or a date such as 2026-01-31",
    'param:bm25.k1>"1"': "character 14: > needs a number or a date",
    "param:bm25.k1=": "character 14: = needs a value",
    "param:bm25.k1=>1": "character 14: after = a value must follow",
    "param:model>0.9": "character 1: all 2 values of model are text; > compares numbers",
    "param:on=1..2": "character 1: the only value of on is true or false; a range compares numbers",
    "param:": "character 7: param: needs the name of a parameter, such as param:k1",
    "param:k:1": "character 8: a comparison such as >0.9 or a space must follow here",
    "param:bm25.k1=2..1": "character 14: a range goes from its lower end to its upper one",
    "param:bm25.k1=1..2,4": "character 14: use a range alone",
    "param:bm25.k1=1..2026-01-31": "character 14: both ends of a range are numbers",
    "cost:latency_ms<20": "character 1: no run here has a cost latency_ms; there are no costs",
    "cost:x=fast": "character 7: a cost is a number",
    "measure:MAP@5": "character 1: measure:MAP@5 is not stored for this collection; stored are AP",
    "measure:AP>2026-01-31": "character 11: a measure is a number, not a date",
    "nDCG@10>0.5": "character 1: measure:nDCG@10 is not stored for this collection; stored are AP",
    "x k1<=0.9": "character 3: no run here has a parameter k1; there are bm25.b, bm25.k1, model and on",
    "param:k1 > 1": "character 10: > must directly follow what it compares",
    " ".join(["param:model"] * 31): "at most 30 terms and values",
    "x" * 1001: "1,001 characters; at most 1,000 are read",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items(), ids=[text[:30] for text in REFUSED])
def test_what_cannot_be_read_is_told_with_its_place(
    board: Collection, text: str, message: str
) -> None:
    store(
        board,
        {"run1": {"bm25": {"k1": 1, "b": 2}, "model": "x"}, "run2": {"model": "y", "on": True}},
    )
    with pytest.raises(InvalidInput) as refused:
        tags_of(board, text)
    assert message in refused.value.message
    assert (refused.value.code, refused.value.pointer) == ("bad_filter", "filter")


def test_near_names_are_those_of_visible_runs_alone(board: Collection) -> None:
    store(board, {"run1": {"shown": 1}, "run2": {"showm": 1}})
    Run.objects.filter(tag="run2").update(deleted_at="2026-01-01T00:00Z")
    for text in ("param:showm", "param:showx"):
        with pytest.raises(InvalidInput, match=r"there is shown$"):
            tags_of(board, text)
