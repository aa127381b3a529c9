"""Suggest the known name that an unknown one may mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches

from metrics.engine.errors import MeasureError

# The time of a comparison grows with the product of the lengths; no name is longer.
_LONGEST = 60


def closest(word: str, names: Iterable[str]) -> str | None:
    """Return the name most like the word, whatever its case, or None if none is like it."""
    folded: dict[str, str] = {}
    for name in names:
        folded.setdefault(name.casefold(), name)
    matches = get_close_matches(word[:_LONGEST].casefold(), folded, n=1)
    return folded[matches[0]] if matches else None


def suggest(word: str, names: Iterable[str], among: str) -> str:
    """Return the end of a refusal: the most similar name, or else all names after the words
    `among`."""
    choices = list(names)
    nearest = closest(word, choices)
    if nearest:
        return f"did you mean {nearest!r}?"
    return f"{among} {', '.join(choices)}" if choices else f"{among} none"


# A name with parameters and cutoff in either grammar: nDCG(gains='exp')@10, ndcg_cut_10, P.5
_PARTS = re.compile(
    r"\s*(?P<name>[^()@\s]*?[^()@\s\d._])(?:_cut)?(?P<arguments>\(.*\))?"
    r"(?:[@._](?P<cutoff>[\d.]+))?\s*",
    re.DOTALL,
)
# The least similarity of a name; names of measures are short.
_LIKENESS = 0.7


def suggest_measure(
    text: str, names: Mapping[str, str], read: Callable[[str], object]
) -> str | None:
    """Return the measure that an unknown name may mean, as `read` takes it; `names` has the
    spellings of each.

    The parameters and the cutoff stay where they fit; a measure that must have a cutoff gets one.
    """
    parts = _PARTS.fullmatch(text)
    if parts is None:
        return None

    folded = {_without_marks(spelling): name for spelling, name in names.items()}
    matches = get_close_matches(
        _without_marks(parts["name"])[:_LONGEST], folded, n=1, cutoff=_LIKENESS
    )
    if not matches:
        return None

    name, arguments = folded[matches[0]], parts["arguments"] or ""
    cutoff = f"@{parts['cutoff']}" if parts["cutoff"] else ""
    for candidate in (
        f"{name}{arguments}{cutoff}",
        f"{name}{cutoff}",
        name,
        f"{name}@10",
        f"{name}@0.1",
    ):
        with suppress(MeasureError):
            return str(read(candidate))

    return None


def _without_marks(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()
