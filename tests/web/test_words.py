"""What people read is plain English, with the one word for each thing that docs/glossary.md has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("runs", "metrics", "evalhub")
# What is not written, and what is written instead. A space stands for any white space.
BETTER = {
    # One word for each thing.
    r"(?<!-)\bboards?\b": "leaderboard",
    r"\bfigures?\b(?!=)": "chart, value or number",
    r"\b(tombstones?|bury|buried|(?:take|taken|takes) (?:it |them )?away)\b": "withdraw or remove",
    r"\b(?:run|set)s? (?:was|were) deleted\b": "withdrawn",
    r"\b(?:un)?tick(?:ed|s)?\b": "select, clear",
    r"\bJudged by qrels\b": "Evaluated against qrels",
    r"\bScores read as\b": "Score precision",
    r"\b(?:accounts?|tokens?|teams?|collections?|users?) (?:is|are|was) made\b": "created",
    r"\bmakes? (?:a|an|the|another) (?:account|token|team|collection|administrator|user)\b": "create",
    r"\bWorks for\b": "Expires after",
    # Dialect.
    r"\bhere (?:is|are) (?:\d|\{)": "found 1",
    r"\b(?:where|if) left out\b": "default: ...",
    r"\bnobody\b": "name who: no run, no worker, unjudged, ...",
    r"\bsomebody\b": "someone, or say who",
    r"\bwhoever\b": "users who ..., anyone who",
    r"\bneed not\b": "may not, do not have to",
    r"\basked for\b": "requested",
    r"\bask for (?:it|fewer|more|less|a|an|one|some)\b": "request, use",
    r"\bfor good\b": "permanently",
    r"\bby (?:itself|themselves)\b": "automatically",
    r"\bwithout a word\b": "silently",
    r"\bto the last (?:byte|bit)\b": "byte-for-byte identical, exact",
    r"\bbegin (?:again|anew)\b": "Reset",
    r"\btry it again\b": "Retry",
    r"\bhow it goes on\b": "its progress",
    r"\bwhat (?:became|becomes) of\b": "name it",
    r"\bthose that count\b|\bthe ones? that counts?\b": "active",
    r"(?<!there)\sis no\b(?! (?:longer|such|run|worker)\b)": "is not a",
    r"\bin all\b": "in total",
    r"\bmade up\b": "simulated",
    r"\bmay not see\b": "cannot see",
    r"[\d}] %(?![\w(])": "no space before %",
    # What pages and charts were once called.
    r"\bDown the ranking\b": "By rank cutoff",
    r"(?-i:\bOver the topics\b)": "Distribution over topics",
    r"\bPrecision over recall\b": "Precision-recall curve",
    r"\bDocuments in ties\b|\bshares? (?:its|their) score\b": "Tied documents, have tied scores",
    r"\bhow sure\b": "how reliable, uncertainty",
    r"\bfirst on\b": "ranked first",
    r"\bseparated from\b": "differ significantly from",
    r"\bgains? so far\b": "cumulated gain",
    r"\bdo not fit together\b": "wrong user name or password",
}
WRONG = [
    (re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE), better)
    for pattern, better in BETTER.items()
]
READ_ATTRIBUTES = r"(?:title|placeholder|aria-label|alt|label|instead|button)=\"([^\"]*)\""


def found_in(text: str, line: int = 1) -> Iterator[str]:
    for pattern, better in WRONG:
        for match in pattern.finditer(text):
            message = " ".join(match.group().split())
            yield f"{line + text.count(chr(10), 0, match.start())}: {message!r}; write: {better}"


def blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def shown_of(html: str) -> str:
    """A template's text and the attributes that are read out or shown, each where it stands in the file."""
    html = re.sub(r"\{#.*?#\}|<code>.*?</code>|<svg.*?</svg>", blank, html, flags=re.DOTALL)
    spans = [match.span(1) for match in re.finditer(READ_ATTRIBUTES, html)]
    text = re.sub(r"\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", blank, html, flags=re.DOTALL)
    for start, end in spans:
        text = text[:start] + re.sub(r"\{%.*?%\}|\{\{.*?\}\}", blank, html[start:end]) + text[end:]
    return text


def literals_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every text of a module that has a space, but for docstrings; `{}` stands for what a text is given."""
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                part.value if isinstance(part, ast.Constant) else "{}" for part in node.values
            )  # type: ignore[misc]
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inside | alone
        ):
            text = node.value
        if " " in text.strip():
            yield getattr(node, "lineno", 1), text


def files(ending: str) -> list[Path]:
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob(ending)]
    return sorted(path for path in paths if path.parent.name != "migrations")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a comparison needs two runs, here are 1", True),
        ("a comparison needs two runs; found 1", False),
        ("the\n board", True),
        ("the leaderboard", False),
        ("sDCG(figure='best')", False),
    ],
)
def test_the_table_finds_what_it_is_for(text: str, expected: bool) -> None:
    assert bool(list(found_in(text))) == expected


def test_pages_use_the_words_of_the_glossary() -> None:
    wrong = [
        f"{p.relative_to(ROOT)}:{match}"
        for p in files("*.html")
        for match in found_in(shown_of(p.read_text()))
    ]
    assert not wrong, "\n".join(wrong)


def test_errors_and_messages_use_the_words_of_the_glossary() -> None:
    wrong = []
    for path in files("*.py"):
        for line, text in literals_of(ast.parse(path.read_text())):
            # Only the first line of a long text is told: it is near enough.
            wrong += [f"{path.relative_to(ROOT)}:{line}+{match}" for match in found_in(text, 0)]
    assert not wrong, "\n".join(wrong)
