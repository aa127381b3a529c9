"""evalhub document_measures: print docs/measures.md, generated from the docstrings of the MEASURES table."""

from __future__ import annotations

from typing import Any

from evalhub.management import command
from metrics.engine.measures import MEASURES
from metrics.engine.measures.definition import Cutoff, MeasureDefinition, show

_HEAD = """\
# Measures

Made from the docstrings by `evalhub document_measures > docs/measures.md`.

A name is `Name(parameter=value,...)@cutoff`, as in ir_measures; parameters at their default are left out. trec_eval's
names are understood as well (`ndcg_cut_10` or `ndcg@10`, `P_5`, `map`), and ndeval's (`alpha-nDCG@10`, `strec@5`), and
answered in this form. `rel` is the lowest level that counts as relevant, `level` in its place the only one;
`judged_only=True` leaves unjudged documents and those of a level below 0 out before ranking (the condensed list,
trec_eval -J).

Measures of sessions of several queries (`sDCG`, `nsDCG` and others) are in [sessions.md](sessions.md#measures).

**Gains.** A list such as `gains='0-1-10-100'` goes from level 0 on, and a level above its last one gains as much as
that. Pairs such as `gains='1:1,2:10'` say what these levels gain; any other keeps its level as gain, as in trec_eval.
`linear`, `exp`, `tenfold` and `binary` hold for any number of levels. Where judged levels go beyond a list, answers
carry the caution `gains_completed`; where a level gains less than a lower one, `gain_order`.

**The number of documents.** A measure that needs `documents`, the size of the collection, and is written without it
takes the number that the collection has, and has it in its name in the answer: `NormRecall` of a collection of 528,155
documents is `NormRecall(documents=528155)`. A number in the name wins. `evalhub eval` takes it from `-N`.
"""
_SECTIONS = ("formula", "range", "source", "elsewhere", "undefined")


class Command(command.Command):
    help = "Print docs/measures.md."

    def handle(self, **options: Any) -> None:
        self.stdout.write(document(), ending="")


def document() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *(describe(definition) for definition in MEASURES.values())])


def describe(definition: MeasureDefinition) -> str:
    """Return a measure's section of the page."""
    sections = definition.sections()
    cutoffs = {Cutoff.NONE: "", Cutoff.OPTIONAL: "[@k]", Cutoff.REQUIRED: "@k", Cutoff.SHARE: "@r"}
    lines = [f"## {definition.name}{cutoffs[definition.cutoff]}", "", sections["summary"], ""]

    lines += [f"- {name.capitalize()}: {sections[name]}" for name in _SECTIONS if name in sections]
    if definition.default_cutoff:
        lines.append(f"- `@k` (default `{definition.default_cutoff}`)")
    for parameter in definition.parameters:
        lines.append(
            f"- `{parameter.name}` (default `{show(parameter.default)}`): {parameter.text}"
        )

    names = [*definition.aliases, *(f"{form} (`{name}`)" for form, name in definition.forms)]
    if definition.trec_eval:
        names.append(f"trec_eval `{definition.trec_eval}`")
    if names:
        lines.append(f"- Also: {', '.join(names)}")

    return "\n".join([*lines, ""])
