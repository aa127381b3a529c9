"""Convert values of other programs into tables of run, topic, measure and value.

TIRA's form `trec-eval-leaderboard` has these columns, with lines for `all` topics and texts among the
values. Every Eval Ever's instances are lines of JSON (`*_samples.jsonl`), one for each model, sample
and evaluation. Numbers stay the text that the file has, so that none is rounded.

Source: tira.check_format, trec-eval-leaderboard; evaleval/every_eval_ever,
instance_level_eval.schema.json 0.2.1
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from .converting import Number
from .errors import BadSource

TIRA, EVERY_EVAL_EVER = VALUE_FORMS = ("tira", "every-eval-ever")
_ALL_TOPICS = "all"
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_PREFIX = "x:"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,59}")
# What a name of a measure must not have.
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_.@+-]+|^[.@+-]")
_NOT_IN_ID = re.compile(r"[\x00-\x1f\x7f]")
_HEADER = ("run", "run_id")
_FIELDS = ("model_id", "sample_id", "evaluation_name", "evaluation")


@dataclass
class ValuesConverter:
    """Converts one file; `name` is that of the file.

    `runs` and `measures` have other names for those of the file. Without one a model is called by
    the last part of its id, and characters that a measure must not have become underscores.
    """

    name: str
    form: str
    runs: dict[str, str] = field(default_factory=dict)
    measures: dict[str, str] = field(default_factory=dict)
    values: int = 0
    _left_out: dict[str, int] = field(default_factory=dict)
    _names: dict[str, None] = field(default_factory=dict)

    def note(self) -> str:
        """Say what was converted, and what was left out."""
        left_out = "".join(f"; {number} {what} left out" for what, number in self._left_out.items())
        return f"{self.name}: {self.values:,} values of {', '.join(self._names) or 'nothing'}{left_out}"

    def lines(self, file: IO[bytes]) -> Iterator[str]:
        """Yield the lines of the table. Raise BadSource for a line that is not of the form."""
        read = self._tira if self.form == TIRA else self._instance
        for number, content in enumerate(file, 1):
            try:
                text = content.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise BadSource(f"{self.name}:{number}: not UTF-8") from error

            row = read(number, text) if text else None
            if row:
                self._check(number, row)
                self.values += 1
                yield "\t".join(row) + "\n"

    def _check(self, number: int, row: tuple[str, str, str, str]) -> None:
        run, topic, measure, _ = row
        for what, name in (("run", run), ("topic", topic)):
            if not name or _NOT_IN_ID.search(name):
                raise BadSource(
                    f"{self.name}:{number}: the name of a {what} is {name[:60]!r}; it must not be "
                    "empty, or have tabs or other control characters"
                )

        if not _NAME.fullmatch(measure):
            raise BadSource(
                f"{self.name}:{number}: a measure cannot be called {measure[:80]!r}: names have 1 to "
                "60 letters, digits and _.@+-; write --measure OLD=NEW"
            )

    def _tira(self, number: int, text: str) -> tuple[str, str, str, str] | None:
        columns = text.split()
        if len(columns) != 4:
            raise BadSource(
                f"{self.name}:{number}: {len(columns)} columns where run, topic, measure and value "
                "are expected"
            )

        run, topic, measure, value = columns
        if run.lower() in _HEADER and value.lower() == "value":
            return None
        if topic == _ALL_TOPICS:
            self._leave_out("means")
            return None
        if not _NUMBER.fullmatch(value):
            self._leave_out("texts")
            return None
        return self.runs.get(run, run), topic, self._measure(measure), value

    def _instance(self, number: int, text: str) -> tuple[str, str, str, str]:
        try:
            record: Any = json.loads(text, parse_float=Number, parse_int=Number)
        except (ValueError, RecursionError) as error:
            raise BadSource(f"{self.name}:{number}: not a line of JSON ({error})") from error

        missing = [name for name in _FIELDS if not isinstance(record, dict) or name not in record]
        if missing:
            raise BadSource(
                f"{self.name}:{number}: no {missing[0]}; an instance of Every Eval Ever has "
                f"{', '.join(_FIELDS)}"
            )

        evaluation = record["evaluation"]
        score = evaluation.get("score") if isinstance(evaluation, dict) else None
        if not isinstance(score, Number):
            raise BadSource(f"{self.name}:{number}: evaluation.score is not a number")

        model = str(record["model_id"])
        run = self.runs.get(model, model.rpartition("/")[2])
        return run, str(record["sample_id"]), self._measure(str(record["evaluation_name"])), score

    def _measure(self, name: str) -> str:
        measure = self.measures.get(name) or _NOT_IN_NAME.sub("_", name.removeprefix(_PREFIX))
        measure = measure.removeprefix(_PREFIX)
        self._names[measure] = None
        return measure

    def _leave_out(self, what: str) -> None:
        self._left_out[what] = self._left_out.get(what, 0) + 1


def names_in(pairs: list[str], option: str) -> dict[str, str]:
    """Return new names by old ones from texts such as OLD=NEW."""
    names = {}
    for pair in pairs:
        old, sign, new = pair.rpartition("=")
        if not (sign and old and new):
            raise BadSource(f"{option} {pair!r}: write OLD=NEW")
        names[old] = new
    return names
