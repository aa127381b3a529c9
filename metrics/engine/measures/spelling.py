"""Suggest the known name that an unknown one may mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches

from metrics.engine.errors import MeasureError

# Comparing takes the product of the lengths; no name is longer.
_LONGEST = 60


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known name most like the word whatever its case, or None where none is like it."""
    folded: dict[str, str] = {}
    for name in known:
        folded.setdefault(name.casefold(), name)
    found = get_close_matches(word[:_LONGEST].casefold(), folded, n=1)
    return folded[found[0]] if found else None


def meant(word: str, known: Iterable[str], among: str) -> str:
    """Return the end of a refusal: the name that was meant, or else all of them, after what `among`
    calls them."""
    names = list(known)
    near = closest(word, names)
    if near:
        return f"did you mean {near!r}?"
    return f"{among} {', '.join(names)}" if names else f"{among} none"


# A name with parameters and cutoff in either grammar: nDCG(gains='exp')@10, ndcg_cut_10, P.5
_PARTS = re.compile(
    r"\s*(?P<name>[^()@\s]*?[^()@\s\d._])(?:_cut)?(?P<arguments>\(.*\))?(?:[@._](?P<cutoff>[\d.]+))?\s*",
    re.DOTALL,
)
# How like a name must be: measures have short ones.
_LIKENESS = 0.7


def meant_measure(text: str, names: Mapping[str, str], read: Callable[[str], object]) -> str | None:
    """Return the measure that an unknown name may mean, as `read` takes it; `names` has the
    spellings of each.

    The parameters and the cutoff stay where they fit; a measure that must have a cutoff gets one.
    """
    parts = _PARTS.fullmatch(text)
    if parts is None:
        return None

    folded = {_plain(spelling): name for spelling, name in names.items()}
    found = get_close_matches(_plain(parts["name"])[:_LONGEST], folded, n=1, cutoff=_LIKENESS)
    if not found:
        return None

    name, arguments = folded[found[0]], parts["arguments"] or ""
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


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()
