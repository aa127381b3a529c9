"""A LaTeX table in the style of booktabs, which the document must load."""

from __future__ import annotations

from collections.abc import Iterator

from metrics.exports.comparisons.table import BETTER, WORSE, MeanCell, MeanTable, table_of
from metrics.services.shown_pairs import PairSelection
from metrics.services.stored_comparisons import Answer
from runs.models import Collection

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "-": "{-}", "`": r"\textasciigrave{}", "'": r"\textquotesingle{}",
}  # fmt: skip
_MARKS = {BETTER: r"$^{\uparrow}$", WORSE: r"$^{\downarrow}$"}
_NO_MARK = r"\phantom{$^{\uparrow}$}"


def render(collection: Collection, answer: Answer, selection: PairSelection) -> Iterator[str]:
    """A table environment."""
    return iter([_written(table_of(collection, answer), collection.slug)])


def escaped(text: str) -> str:
    """Text that LaTeX sets as it is, in one line; no two hyphens become a dash."""
    return "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))


def _written(table: MeanTable, label: str) -> str:
    lines = [
        "% needs \\usepackage{booktabs,textcomp} and, below LuaLaTeX and XeLaTeX, \\usepackage[T1]{fontenc}",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{_caption(table)}}}",
        rf"  \label{{tab:{label}}}",
        rf"  \begin{{tabular}}{{l{'l' * len(table.measures)}}}",
        r"    \toprule",
        rf"    Run & {' & '.join(map(escaped, table.measures))} \\",
        r"    \midrule",
        *(_line(table, place) for place in range(len(table.lines))),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join([*lines, ""])


def _caption(table: MeanTable) -> str:
    text = " ".join(map(escaped, table.caption))
    return text.replace("(up)", r"($\uparrow$)").replace("(down)", r"($\downarrow$)").replace("alpha =", r"$\alpha$ =")


def _line(table: MeanTable, place: int) -> str:
    line = table.lines[place]
    name = rf"\textit{{{escaped(line.name)}}}" if line.baseline else escaped(line.name)
    return f"    {name} & {' & '.join(_cell(cell, table.with_baseline) for cell in line.cells)} \\\\"


def _cell(cell: MeanCell, with_baseline: bool) -> str:
    text = rf"\textbf{{{cell.text}}}" if cell.best else cell.text
    if with_baseline:
        return text + _MARKS.get(cell.mark, _NO_MARK)
    return rf"{text}$^{{\mathrm{{{cell.mark}}}}}$" if cell.mark else text
