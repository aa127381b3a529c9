"""Every regular expression of the code takes time in proportion to its input, however hostile the input is."""

from __future__ import annotations

import ast
import importlib
import itertools
import os
import random
import re
import signal
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, cast

import pytest

from tests.test_architecture import modules

METHODS = ("match", "fullmatch", "search", "sub", "split", "finditer", "findall")
VALIDATORS = ("RegexValidator", "RegexField")
# Expressions that would be slow on a long text, and the longest one that reaches them.
SHORT = {
    "metrics.engine.measures.grammar._ARGUMENT": 200,
    "metrics.engine.measures.spelling._PARTS": 200,
    "metrics.services.boards.filter_grammar._FIELD": 500,
}
# These read what is ours: source code and docstrings.
OURS = (
    "evalhub.management.commands.document_statistics", "metrics.engine.compiled.machine_code",
    "metrics.engine.measures.definition._RANGE", "metrics.engine.measures.definition._SECTION",
)  # fmt: skip
SCREENED, SUSPECT_SECONDS = 400, 0.0003
# Eight times the input: 8 where time is proportional, 64 where it is quadratic.
FACTOR, MOST = 8, 24
LIMIT_SECONDS = 60
# Hostile inputs of one expression, of up to 46,000; `make fuzz` tries all of them.
EXAMPLES = int(os.environ.get("EVALHUB_TEST_READER_EXAMPLES", "0")) * 1000 or 5000
_ASSIGNED = (ast.Assign, ast.AnnAssign)


@dataclass(frozen=True)
class Expression:
    name: str
    pattern: re.Pattern[Any]
    methods: tuple[str, ...]


def expressions() -> Iterator[Expression]:
    """Those of module constants, with the methods that the module calls; those written where they are used."""
    for module, tree in modules().items():
        constants = _constants(module, tree)
        compiled = {
            inner for node in tree.body if isinstance(node, _ASSIGNED) for inner in ast.walk(node)
        }
        for name, pattern in constants.items():
            yield Expression(
                f"{module}.{name}", pattern, _methods_called(tree, name.partition("[")[0])
            )
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and node not in compiled
                and (expression := _written_here(node))
            ):
                method, text = expression
                yield Expression(f"{module}:{node.lineno}", re.compile(text), (method,))


def _constants(module: str, tree: ast.Module) -> dict[str, re.Pattern[Any]]:
    patterns: dict[str, re.Pattern[Any]] = {}
    for node in tree.body:
        if isinstance(node, _ASSIGNED) and _compiles(node):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name = ast.unparse(target)
            try:
                # Some modules import a library that the tests do not have.
                value = eval(ast.unparse(cast(ast.expr, node.value)), {"re": re})
            except NameError:
                value = getattr(importlib.import_module(module), name)
            several = value.items() if isinstance(value, dict) else [("", value)]
            patterns |= {
                f"{name}[{key}]" if key else name: value
                for key, value in several
                if isinstance(value, re.Pattern)
            }
    return patterns


def _compiles(node: ast.AST) -> bool:
    called = (
        inner
        for inner in ast.walk(node)
        if isinstance(inner, ast.Attribute) and inner.attr == "compile"
    )
    return any(ast.unparse(call) == "re.compile" for call in called)


def _methods_called(tree: ast.Module, name: str) -> tuple[str, ...]:
    """The methods of the expression that the module calls; `match` where it is handed to something else."""
    called = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in METHODS
        and ast.unparse(node.value) == name
    }
    return tuple(sorted(called)) or ("match",)


def _written_here(call: ast.Call) -> tuple[str, str | bytes] | None:
    """The method and the expression of `re.method(expression, ...)` or of a validator; what varies in it is one x."""
    called = (
        call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    )
    if called not in (*METHODS, "compile", *VALIDATORS):
        return None
    function = ast.unparse(call.func)
    method = function.removeprefix("re.")
    if function.rpartition(".")[2] in VALIDATORS:
        method = "search"
    elif not function.startswith("re.") or method not in (*METHODS, "compile"):
        return None
    node = call.args[0] if call.args else None
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return method.replace("compile", "search"), node.value
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "x" for part in node.values]
        return method.replace("compile", "search"), "".join(map(str, parts))
    return None


# What in an expression may stand for a character; the rest of it says how often and in what order.
# Names of groups and numbers of repetitions are taken for characters as well: that tells more of
# them apart than needed.
ATOM = re.compile(
    r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\(?:x..|u.{4}|U.{8}|[0-7]+|.)|[^\\()?*+|^$\[]", re.DOTALL
)
REPEATED = re.compile(r"\\[1-9]|\(\?P=|\(\?\(")


def seen_as(expression: re.Pattern[Any], pattern: str) -> Callable[[str], Hashable]:
    """What the expression sees of a text: of each character, which of its sets and signs it belongs to."""
    if REPEATED.search(pattern):
        return lambda text: text
    kinds = {r"\w", r"\s", r"\n", *ATOM.findall(pattern)} - {r"\b", r"\B", r"\A", r"\Z"}
    flags = expression.flags & (re.IGNORECASE | re.ASCII | re.DOTALL)
    if isinstance(expression.pattern, bytes):
        flags |= re.ASCII
    compiled = [
        re.compile(kind if len(kind) > 1 or kind == "." else re.escape(kind), flags)
        for kind in sorted(kinds)
    ]
    return lambda text: tuple(
        tuple(bool(kind.fullmatch(string)) for kind in compiled) for string in text
    )


def fragments(expression: re.Pattern[Any], pattern: str) -> list[str]:
    """What hostile input is put together from: the signs and words of the expression, and one of each common kind. Of
    several that the expression takes for the same, one."""
    words = re.findall(r"[^\\()\[\]{}?*+|.^$]{2,12}", pattern)
    seen, examples = seen_as(expression, pattern), dict[Hashable, str]()
    for part in [*"a1 ,()\n_", *sorted(set(pattern) - {"\\"}), *words]:
        examples.setdefault(seen(part), part)
    return list(examples.values())[:34]


def hostile(expression: re.Pattern[Any]) -> list[tuple[str, str, str]]:
    """Beginnings, what is repeated, and ends: a sample of them, the same each time."""
    text = expression.pattern
    parts = fragments(expression, text if isinstance(text, str) else text.decode("latin-1"))
    pairs = [part + other for part, other in itertools.product(parts, repeat=2)]
    inputs = [
        *itertools.product(["", *parts], parts, ["", "\0", *parts]),
        *itertools.product(["a" + part for part in parts], parts, ["\0"]),
        *itertools.product([""], pairs, ["", "\0", ")"]),
    ]
    return random.Random(0).sample(inputs, min(EXAMPLES, len(inputs)))


def runner(expression: Expression, method: str) -> Callable[[str], object]:
    """Run the method over a text to its end."""
    pattern = expression.pattern
    call = getattr(pattern, method)
    if method == "sub":
        call = lambda text: pattern.sub("" if isinstance(text, str) else b"", text)  # noqa: E731
    elif method == "finditer":
        call = lambda text: sum(1 for _ in pattern.finditer(text))  # noqa: E731
    return call if isinstance(pattern.pattern, str) else lambda text: call(text.encode())


def seconds(run: Callable[[str], object], text: str) -> float:
    began = time.thread_time()
    run(text)
    return time.thread_time() - began


def best(run: Callable[[str], object], text: str) -> float:
    return min(seconds(run, text) for _ in range(3))


def growth(run: Callable[[str], object], parts: tuple[str, str, str]) -> float:
    """How many times longer eight times the input takes, measured from half a millisecond on."""
    begin, unit, end = parts
    times = 25
    while (short := best(run, begin + unit * times + end)) < 0.0005:
        times *= 2
    long = begin + unit * times * FACTOR + end
    once = seconds(run, long) / short
    # Nothing else makes a run take so much longer than another that it is measured again.
    return once if once > 4 * MOST else min(once, best(run, long) / short)


@contextmanager
def limited(most: float) -> Iterator[None]:
    """End with TimeoutError what takes more seconds of processor time: the matcher looks at signals as it goes."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"{most} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def worst(expression: Expression, longest: int | None) -> str | None:
    """The first input for which the expression's time grows faster than its length, or is long where it is bounded."""
    for method in expression.methods:
        run = runner(expression, method)
        for parts in hostile(expression.pattern):
            begin, unit, end = parts
            tried = begin + unit * (longest or SCREENED) + end
            taken = seconds(run, tried)
            if longest and taken > 0.05 and best(run, tried) > 0.05:
                return f"{method} of {begin!r} + {unit!r} x {longest} + {end!r}"
            if not longest and taken > SUSPECT_SECONDS and best(run, tried) > SUSPECT_SECONDS:
                grown = growth(run, parts)
                if grown > MOST:
                    return f"{method} of {begin!r} + {unit!r} x n + {end!r}: {grown:.0f} times for {FACTOR} n"
    return None


@pytest.mark.slow
def test_no_expression_is_slow_on_hostile_input(subtests: pytest.Subtests) -> None:
    strangers = [expression for expression in expressions() if not expression.name.startswith(OURS)]
    assert set(SHORT) <= {expression.name for expression in strangers}
    assert len(strangers) > 50

    for expression in strangers:
        with subtests.test(expression.name), limited(LIMIT_SECONDS):
            assert worst(expression, SHORT.get(expression.name)) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "method"), [(r"[,\s]+(?![^()]*\))", "split"), (r"\w+=", "search")]
)
def test_slow_expressions_are_found(pattern: str, method: str) -> None:
    with limited(LIMIT_SECONDS):
        result = worst(Expression("slow", re.compile(pattern), (method,)), None)
    assert result


def test_an_expression_that_never_ends_is_found() -> None:
    with limited(0.1), pytest.raises(TimeoutError):
        worst(Expression("endless", re.compile(r"(a+)+b"), ("match",)), None)
