"""A small ranking on which every measure can be tried, for its page: eight documents of one topic."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from metrics.engine.errors import MeasureError
from metrics.engine.grammar import Measure, parse_measure
from metrics.engine.judged import JudgedRun
from metrics.engine.judging import judge
from metrics.engine.measures.definition import Cutoff, MeasureDefinition
from runs.formats.trec_qrels import read_qrels
from runs.formats.trec_run import use_run

# Levels of the documents at ranks 1 to 8, None for the one that nobody judged; two relevant ones are not retrieved.
EXAMPLE_LEVELS = (3, 0, 2, None, 0, 1, 0, 2)
EXAMPLE_MISSED = (3, 1)
_SUFFIXES = {
    Cutoff.NONE: ("",),
    Cutoff.OPTIONAL: ("", "@3", "@8"),
    Cutoff.REQUIRED: ("@3", "@8"),
    Cutoff.SHARE: ("@0.2", "@0.5"),
}
# Parameters that change a value visibly, each in place of its default.
_VARIANTS = {"rel": "2", "gains": "'exp'", "p": "0.5", "judged_only": "True", "relative": "True", "beta": "2"}


@dataclass(frozen=True)
class ExampleValue:
    """A measure and its value on the example; None where it has none there."""

    measure: Measure
    value: float | None


def example_values(definition: MeasureDefinition) -> list[ExampleValue]:
    """The measure at some cutoffs, and with some of its parameters set otherwise."""
    given = [f"{one.name}={one.example}" for one in definition.parameters if one.example]
    known = {one.name for one in definition.parameters if not one.example}
    suffixes = _SUFFIXES[definition.cutoff]
    names = [_written(definition, given, suffix) for suffix in suffixes]
    names += [
        _written(definition, [*given, f"{name}={value}"], suffixes[-1])
        for name, value in _VARIANTS.items()
        if name in known
    ]
    return [_value(measure) for measure in dict.fromkeys(_understood(names))]


def _written(definition: MeasureDefinition, arguments: list[str], suffix: str) -> str:
    return definition.name + (f"({','.join(arguments)})" if arguments else "") + suffix


def _understood(names: list[str]) -> Iterator[Measure]:
    """Those that have a meaning: some parameters need another one beside them."""
    for name in names:
        with contextlib.suppress(MeasureError):
            yield parse_measure(name)


def _value(measure: Measure) -> ExampleValue:
    run = _judged()
    return ExampleValue(measure, measure.aggregate(measure.compute(run), run)[0])


@cache
def _judged() -> JudgedRun:
    levels = [(f"d{rank}", level) for rank, level in enumerate(EXAMPLE_LEVELS, 1)]
    missed = [(f"m{number}", level) for number, level in enumerate(EXAMPLE_MISSED, 1)]
    qrels = "".join(f"1 0 {doc_id} {level}\n" for doc_id, level in [*levels, *missed] if level is not None)
    run = "".join(f"1 Q0 {doc_id} {rank} {100 - rank} example\n" for rank, (doc_id, _) in enumerate(levels, 1))
    judgements = read_qrels(lambda: io.BytesIO(qrels.encode())).judgements
    return use_run(lambda: io.BytesIO(run.encode()), lambda blocks: judge(blocks, judgements))[1]
