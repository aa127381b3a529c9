"""The grammar of measure names: ir_measures' form, and trec_eval's and ndeval's names as second
spellings.

    Name(parameter=value, ...)@cutoff   nDCG@10   P(rel=2)@5   nDCG(gains='exp',dis='jk',b=2)@10
    trec_eval names                     ndcg_cut_10   P_5   map   map_cut.100   recip_rank
    ndeval names                        alpha-nDCG@10   ERR-IA@20   strec@10   MAP-IA

The canonical name lists the parameters that differ from their default, in the order of the
definition.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.cautions import Caution
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.gains import GainMap
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.sampling import Design
from metrics.engine.measures import ESTIMATES, MEASURES
from metrics.engine.measures.definition import Aggregate, Cutoff, MeasureDefinition
from metrics.engine.measures.external import NO_RANKING, NOT_IN_TABLE, check_external, is_external
from metrics.engine.measures.spelling import suggest_measure
from metrics.engine.measures.undefined import why_undefined

MAX_NAME = 200
MAX_MEASURES = 100
# The most characters of a list of measures, checked before anything else.
MAX_LIST = MAX_MEASURES * MAX_NAME
# trec_eval uses this instead of a smaller value before it takes the logarithm.
MIN_GEOMETRIC = 0.00001

_NAME = re.compile(
    r"(?P<name>\w[\w-]*)(?:\((?P<arguments>.*)\))?(?:@(?P<cutoff>[^@()]+))?", re.DOTALL
)
_ARGUMENT = re.compile(r"""\s*(\w+)\s*=\s*("[^"]*"|'[^']*'|\{[^}]*\}|[^,'"{}]*?)\s*(?:,|$)""")
# Other names, each with its measure and the parameters it implies.
_FORMS = {
    form: (definition.name, implied)
    for definition in MEASURES.values()
    for form, implied in definition.forms
}
_TREC_EVAL = {d.trec_eval: (d.name, "") for d in MEASURES.values() if d.trec_eval} | _FORMS
# trec_eval's names are among them, because many tools write ndcg@10 for its ndcg_cut_10.
_ALIASES = _TREC_EVAL | {
    alias: (definition.name, "") for definition in MEASURES.values() for alias in definition.aliases
}
# Other common names, for errors that suggest the name here.
_WORDS = {
    "average precision": "AP",
    "mean average precision": "AP",
    "reciprocal rank": "RR",
    "hit rate": "Success",
    "hits": "Success",
    "f-measure": "F",
    "interpolated precision": "IPrec",
}
_SPELLINGS = (
    _WORDS
    | {alias: name for alias, (name, _) in _ALIASES.items()}
    | {definition.name: definition.name for definition in MEASURES.values()}
)
# Measures of sessions are in a table that this module does not import.
_OF_SESSIONS = re.compile(r"n?sDCG(_\w+)?|session-dcg|InstanceRecall|Session|Query")
# ir_measures writes NumRelRet as NumRet with a level.
_LEVEL = re.compile(r"\brel\s*=")
_NEEDED = {Cutoff.REQUIRED: "10", Cutoff.SHARE: "0.1"}
# ir_measures' spellings of parameters that have another name here; None means our default.
_IR_MEASURES: dict[tuple[str, str], tuple[str, str] | None] = {
    ("dcg", "log2"): None,
    ("dcg", "exp-log2"): ("gains", "exp"),
}


@dataclass(frozen=True)
class Measure:
    """A measure with all its parameters; `str()` is the canonical name, which parses back to an
    equal measure."""

    definition: MeasureDefinition
    cutoff: int | float | None
    values: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return self.name

    @cached_property
    def name(self) -> str:
        definition, cutoff = self.definition, self.cutoff
        pairs = zip(definition.parameters, self.values, strict=True)
        written = [
            parameter.show(value)
            for parameter, (_, value) in pairs
            if parameter.always_shown or value != parameter.default
        ]
        name = f"{definition.name}({','.join(written)})" if written else definition.name
        if cutoff is None:
            return name

        share = definition.cutoff is Cutoff.SHARE
        plain = f"{cutoff:.6f}".rstrip("0").rstrip(".") if share else str(cutoff)

        # trec_eval's form has no parameters.
        if written or not definition.trec_style:
            return f"{name}@{plain}"
        two_digits = f"{cutoff:.2f}"
        return f"{name}_{two_digits if share and float(two_digits) == cutoff else plain}"

    @cached_property
    def key(self) -> str:
        """Return the name, with the version of the values where these come from tables."""
        version = self.definition.version
        return f"{self.name} {version}" if version else self.name

    @cached_property
    def is_external(self) -> bool:
        """Return whether the values come from tables, and not from rankings."""
        return is_external(self.name)

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.values)

    @property
    def lower_is_better(self) -> bool:
        """Return whether lower values are better; a measure made of another one follows that
        one."""
        inner = self.parameters.get("of")
        if isinstance(inner, Measure):
            return inner.lower_is_better
        return self.definition.lower_is_better

    def compute(self, run: JudgedRun) -> Floats:
        """Return the measure's value for every topic, NaN where it is undefined; shape
        (topics,)."""
        if not run.ranked:
            return np.full(run.n_topics, np.nan)
        if run.sampling:
            self.check_design(run.sampling.design)
        run, parameters = self.as_called(run)
        return self.definition.compute(run, **parameters)

    @cached_property
    def error(self) -> Measure | None:
        """Return the measure that is the standard error of this one, an estimate from sampled
        judgements."""
        definition = MEASURES.get(f"{self.definition.name}_se")
        return replace(self, definition=definition) if definition else None

    def suits(self, design: Design) -> bool:
        """Return whether the measure takes into account, or need not, how judgements are
        sampled; values from tables do not depend on them."""
        return self.is_external or design in self.definition.designs

    def check_design(self, design: Design | None) -> None:
        """Raise MeasureError unless the measure suits judgements that are sampled so."""
        designs = self.definition.designs
        if design is None or self.suits(design):
            return

        problem = "takes documents outside the sample for not relevant"
        if designs:
            problem = f"needs {' or '.join(designs)}, not {design}"
        others = [name for name in ESTIMATES if design in MEASURES[name].designs]
        message = f"the judgements are sampled, and {self} {problem}: use {', '.join(others)}"
        raise MeasureError(message, code="sampled_judgements")

    @staticmethod
    def suited(measures: Iterable[Measure], design: Design | None) -> list[Measure]:
        """Return the measures that suit judgements; all of them without a design."""
        return [measure for measure in measures if design is None or measure.suits(design)]

    def why_undefined(self, run: JudgedRun, values: Floats) -> list[str | None]:
        """Return for each topic without a value the reason, a key of REASONS; `values` are the
        computed values of the run."""
        if self.is_external:
            return [NOT_IN_TABLE if math.isnan(value) else None for value in values.tolist()]
        if not run.ranked:
            return [NO_RANKING] * run.n_topics

        run, parameters = self.as_called(run)
        return why_undefined(self.definition.name, run, values, parameters)

    def as_called(self, run: JudgedRun) -> tuple[JudgedRun, dict[str, Any]]:
        """Return the run that the measure reads, and the arguments of its function."""
        parameters = {"cutoff": self.cutoff, **dict(self.values)}
        if parameters.pop("judged_only", False):
            run = run.condensed
        level = parameters.pop("level", None)
        return (run if level is None else run.of_level(level)), parameters

    @cached_property
    def pools(self) -> bool:
        """Return whether the value of a run is not computed from its values per topic:
        norm='average'."""
        return self.definition.pooled is not None and self.parameters["norm"] == "average"

    def cautions(self, levels: Iterable[int]) -> list[Caution]:
        """Return the cautions about the values under these levels."""
        levels, cautions = list(levels), []
        for _, value in self.values:
            if isinstance(value, GainMap):
                cautions += value.cautions(levels, self.name)
            elif isinstance(value, Measure):
                cautions += value.cautions(levels)

        return cautions

    @property
    def aggregate_name(self) -> str:
        """Return what the value of a run is: mean, sum, geometric mean, or pooled ratio."""
        return "pooled ratio" if self.pools else self.definition.aggregate.value

    def aggregate(self, values: Floats, run: JudgedRun | None = None) -> tuple[float | None, int]:
        """Return one value over the topics that have a value, and how many have one; `run` is
        needed if it `pools`."""
        defined = values[~np.isnan(values)]
        if not len(defined):
            return None, 0
        if self.pools:
            return self._pooled(run), len(defined)
        if self.definition.aggregate is Aggregate.GEOMETRIC:
            # trec_eval's floor is for measures from 0 to 1; values of tables are declared positive.
            floored = defined if self.is_external else np.maximum(defined, MIN_GEOMETRIC)
            return float(np.exp(np.mean(np.log(floored)))), len(defined)
        if self.definition.aggregate is Aggregate.ERROR:
            # The documents of each topic are drawn independently of those of the others.
            return float(np.sqrt(np.sum(np.square(defined))) / len(defined)), len(defined)

        total = float(np.sum(defined))
        if self.definition.aggregate is Aggregate.SUM:
            return total, len(defined)
        return total / len(defined), len(defined)

    def _pooled(self, run: JudgedRun | None) -> float:
        if self.definition.pooled is None or run is None:
            raise ValueError(
                f"the mean of {self} is made from the run, not from its values per topic"
            )

        run, parameters = self.as_called(run)
        return self.definition.pooled(run, **parameters)


@lru_cache(maxsize=10_000)
def parse_measure(text: str, documents: int | None = None) -> Measure:
    """Return the measure that `text` names in either spelling; raise MeasureError if none.

    `documents` is the size of the collection: a measure that needs it and names none uses it, and
    has it in its name. What names of value tables mean is known to their collection alone.
    """
    if is_external(text):
        message = f"{check_external(text)} is a measure of value tables: name its collection"
        raise MeasureError(message)

    parts = take_apart(text)
    name, implied = _ALIASES.get(parts[0], (parts[0], "")) if parts else ("", "")
    if parts is None or name not in MEASURES:
        return _parse_trec_eval(text.strip())

    if name == "NumRet" and _LEVEL.search(parts[1]):
        name = "NumRelRet"
    arguments = ",".join(part for part in (implied, parts[1]) if part)
    return read_measure(MEASURES[name], arguments, parts[2], documents)


def name_in_collection(text: str) -> str:
    """Return the canonical name of a measure that uses the number of documents of its collection,
    if it names none."""
    if is_external(text):
        return check_external(text)

    measure = parse_measure(text, 1)
    if measure == parse_measure(text, 2):
        return measure.name

    open_values = tuple(
        (name, None if name == "documents" else value) for name, value in measure.values
    )
    return replace(measure, values=open_values).name


def read_measure(
    definition: MeasureDefinition, arguments: str, cutoff: str | None, documents: int | None = None
) -> Measure:
    """Return the measure of a definition with parameters and cutoff as written. Raise MeasureError
    if they do not fit."""
    values = _read_arguments(definition, arguments, documents)
    measure = Measure(definition, _read_cutoff(definition, cutoff), values)
    if len(measure.name) > MAX_NAME:
        raise MeasureError(
            f"the canonical form of this name, {measure.name[:40]}..., is longer than {MAX_NAME}"
        )
    return measure


def take_apart(text: str) -> tuple[str, str, str | None] | None:
    """Return name, parameters and cutoff as they are written, or None if `text` has another form.
    Raise MeasureError if it is too long."""
    if len(text) > MAX_NAME:
        raise MeasureError(
            f"a measure name has at most {MAX_NAME} characters; this one begins {text[:40]!r}"
        )

    match = _NAME.fullmatch(text.strip())
    return (match["name"], match["arguments"] or "", match["cutoff"]) if match else None


def parse_measures(text: str, documents: int | None = None) -> list[Measure]:
    """Return the measures of a list separated by commas or blanks, in order, each once. Raise
    MeasureError for an invalid name."""
    return list(dict.fromkeys(parse_measure(name, documents) for name in split_names(text)))


def split_names(text: str) -> list[str]:
    """Return the names of a list separated by commas or blanks outside brackets. Raise MeasureError
    for a list that is too long."""
    if len(text) > MAX_LIST:
        message = (
            f"a list of measures has at most {MAX_LIST:,} characters; this one has {len(text):,}"
        )
        raise MeasureError(message, code="too_many_measures")

    names, start, depth = [], 0, 0
    for position, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth = max(depth - 1, 0)
        elif not depth and (character == "," or character.isspace()):
            names.append(text[start:position])
            start = position + 1

    names = [name for name in (*names, text[start:]) if name]
    if len(names) > MAX_MEASURES:
        raise MeasureError(
            f"{len(names)} measures requested; the limit is {MAX_MEASURES}",
            code="too_many_measures",
        )
    return names


def _read_cutoff(definition: MeasureDefinition, text: str | None) -> int | float | None:
    if text is None:
        if definition.cutoff in _NEEDED:
            example = f"{definition.name}@{_NEEDED[definition.cutoff]}"
            raise MeasureError(f"{definition.name} needs a cutoff: {example}", code="bad_parameter")
        return definition.default_cutoff

    if definition.cutoff is Cutoff.SHARE:
        return _read_share(definition, text)
    if definition.cutoff is Cutoff.NONE:
        raise MeasureError(
            f"{definition.name} takes no cutoff, but @{text} was given", code="bad_parameter"
        )

    limit = definition.max_cutoff
    if not re.fullmatch(r"[0-9]{1,7}", text) or not 1 <= int(text) <= limit:
        message = f"@{text}: the cutoff of {definition.name} is a whole number from 1 to {limit}"
        raise MeasureError(message, code="bad_parameter")

    return int(text)


def _read_share(definition: MeasureDefinition, text: str) -> float:
    limit = definition.max_share
    if not re.fullmatch(r"[0-9]*\.?[0-9]{1,6}", text) or not 0 <= float(text) <= limit:
        message = (
            f"@{text}: {definition.name} takes a share from 0 to {limit:g}, with at most six "
            "decimals"
        )
        raise MeasureError(message, code="bad_parameter")
    return float(text)


def _read_arguments(
    definition: MeasureDefinition, text: str, documents: int | None = None
) -> tuple[tuple[str, Any], ...]:
    if not text:
        return definition.values({}, documents)

    parameters = {parameter.name: parameter for parameter in definition.parameters}
    spellings = _IR_MEASURES if "gains" in parameters or definition.name == "ScaledDCG" else {}
    symbols = {parameter.symbol: parameter.name for parameter in definition.parameters}

    pairs = _split_arguments(text, symbols, spellings)
    arguments: dict[str, Any] = {}
    for name, value in pairs:
        if name not in parameters:
            takes = ", ".join(parameters) or "none"
            raise MeasureError(
                f"{definition.name} has no parameter {name!r}; it takes {takes}",
                code="bad_parameter",
            )

        parameter = parameters[name]
        size = (documents,) if parameter.names_measure else ()
        arguments[name] = parameter.read(name, value, *size)

    if "dis" in parameters and "b" in arguments and arguments.get("dis", "log2") == "log2":
        raise MeasureError(
            "b needs dis='jk' or dis='session': log2(i + 1) has its base", code="bad_parameter"
        )
    return definition.values(arguments, documents)


def _split_arguments(
    text: str,
    symbols: Mapping[str, str],
    spellings: Mapping[tuple[str, str], tuple[str, str] | None],
) -> list[tuple[str, str]]:
    arguments: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        match = _ARGUMENT.match(text, position)
        if not match:
            raise MeasureError(
                f"cannot read the parameters ({text}); write them as name=value, ..."
            )

        position = match.end()
        name, value = symbols.get(match[1], match[1]), match[2].strip("'\"")
        translated = spellings.get((name, value), (name, value))
        if translated and translated[0] in (earlier for earlier, _ in arguments):
            raise MeasureError(f"{translated[0]} is given twice in ({text})", code="bad_parameter")
        if translated:
            arguments.append(translated)

    return arguments


def _parse_trec_eval(text: str) -> Measure:
    match = re.fullmatch(r"([A-Za-z0-9_]*?[A-Za-z])(_cut)?(?:[._]((?:[0-9]*\.)?[0-9]+))?", text)
    name, arguments = _TREC_EVAL.get(match[1], ("", "")) if match else ("", "")
    if match is None or not name:
        raise MeasureError(_unknown(text))

    definition, number = MEASURES[name], match[3]
    if bool(match[2]) != (definition.cutoff is Cutoff.OPTIONAL and number is not None):
        raise MeasureError(_unknown(text))

    if number and definition.trec_parameter:
        arguments, number = f"{definition.trec_parameter}={number}", None
    return Measure(
        definition, _read_cutoff(definition, number), _read_arguments(definition, arguments)
    )


def trec_eval_measure(
    name: str, cutoff: int | float | None, arguments: Mapping[str, Any]
) -> Measure:
    """Return the measure that trec_eval calls `name`. `arguments` set its parameters of these names
    unchecked.

    trec_eval computes measures for which the grammar has no form.
    """
    measure_name, implied = _TREC_EVAL[name.removesuffix("_cut")]
    definition = MEASURES[measure_name]
    values = dict(_read_arguments(definition, implied))
    values.update((key, value) for key, value in arguments.items() if key in values)
    return Measure(definition, cutoff, tuple(values.items()))


def _unknown(text: str) -> str:
    name = text.partition("(")[0].partition("@")[0]
    if _OF_SESSIONS.fullmatch(name):
        return f"{name} is a measure of sessions, not of runs: use it with session sets"
    if name == "SDCG":
        return (
            "SDCG is ambiguous: write sDCG for the session measure, ScaledDCG for what "
            "ir_measures calls SDCG"
        )

    suggestion = suggest_measure(text, _SPELLINGS, parse_measure)
    if suggestion:
        return f"unknown measure {text!r}; did you mean {suggestion}?"
    return f"unknown measure {text!r}; names look like nDCG@10 or P(rel=2)@5"
