"""A LaTeX table in the style of booktabs, which the document must load; a long one breaks over pages."""

from __future__ import annotations

from collections.abc import Iterator

from metrics.exports.comparisons.differences import (
    DifferenceTable,
    MarkedDifference,
    difference_table,
    two_kinds,
)
from metrics.exports.comparisons.table import BETTER, WORSE, MeanCell, MeanTable, table_of
from metrics.services.comparisons.shown_pairs import PairSelection
from metrics.services.comparisons.stored import Answer
from runs.models import Collection

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "-": "{-}", "`": r"\textasciigrave{}", "'": r"\textquotesingle{}",
    "\N{BLACK CIRCLE}": r"$\bullet$",
}  # fmt: skip
_MARKS = {BETTER: r"$^{\uparrow}$", WORSE: r"$^{\downarrow}$"}
# A longer table has no room on one page.
_MOST_ROWS = 40
_NO_MARK = r"\phantom{$^{\uparrow}$}"


def render(collection: Collection, answer: Answer, selection: PairSelection) -> Iterator[str]:
    """Render a table environment; of two kinds of tests, with the differences."""
    if two_kinds(answer.query):
        return iter([_differences(difference_table(collection, answer), collection.slug)])
    return iter([written(table_of(collection, answer), collection.slug)])


def escaped(text: str) -> str:
    """Escape text for LaTeX, in one line; two hyphens do not become a dash."""
    return "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))


def written(table: MeanTable, label: str) -> str:
    """Render a table, with the packages it needs in a comment above."""
    form = f"{'r' * len(table.before)}l{'l' * len(table.measures)}{'r' * len(table.after)}"
    head = _row(
        *table.before, table.subject, *map(escaped, table.measures), *map(escaped, table.after)
    )
    body = [_line(table, place) for place in range(len(table.lines))]
    return _environment(form, _caption(table.caption), label, head, body)


def _environment(form: str, caption: str, label: str, head: str, body: list[str]) -> str:
    """Return a table environment, or a longtable, which has its own caption and repeats its head on each page."""
    long = len(body) > _MOST_ROWS
    packages = "booktabs,textcomp,longtable" if long else "booktabs,textcomp"
    needs = (
        f"% needs \\usepackage{{{packages}}} and, below LuaLaTeX and XeLaTeX, which letters beyond Latin need, "
        "\\usepackage[T1]{fontenc}"
    )
    if long:
        rows = [row.removeprefix("  ") for row in body]
        top = [r"  \toprule", f"  {head}", r"  \midrule"]
        lines = [
            needs,
            rf"\begin{{longtable}}{{{form}}}",
            rf"  \caption{{{caption}}}\label{{tab:{label}}} \\",
            *top,
            r"  \endfirsthead",
            *top,
            r"  \endhead",
            r"  \bottomrule",
            r"  \endfoot",
            *rows,
            r"\end{longtable}",
        ]
        return "\n".join([*lines, ""])
    lines = [
        needs,
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{caption}}}",
        rf"  \label{{tab:{label}}}",
        rf"  \begin{{tabular}}{{{form}}}",
        r"    \toprule",
        f"    {head}",
        r"    \midrule",
        *body,
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join([*lines, ""])


def _differences(table: DifferenceTable, label: str) -> str:
    """Render runs, differences and tests of all runs, with a rule between them."""
    body = [f"    {_row(escaped(name), *means)}" for name, means in table.means]
    body.append(r"    \midrule")
    body += [
        f"    {_row(f'{escaped(a)} $-$ {escaped(b)}', *map(_marked, cells))}"
        for (a, b), cells in table.differences
    ]
    if table.omnibus:
        body.append(r"    \midrule")
    body += [
        f"    {_row(f'{escaped(name)}, $p$', *map(escaped, found))}"
        for name, found in table.omnibus
    ]
    head = _row("Run", *map(escaped, table.measures))
    return _environment(f"l{'l' * len(table.measures)}", _caption(table.caption), label, head, body)


def _caption(sentences: list[str]) -> str:
    text = " ".join(map(escaped, sentences)).replace("alpha =", r"$\alpha$ =")
    return text.replace("(up)", r"($\uparrow$)").replace("(down)", r"($\downarrow$)")


def _marked(cell: MarkedDifference) -> str:
    by_ranks = "$^{" + "*" * cell.by_ranks + "}$" if cell.by_ranks else ""
    by_means = f" ({escaped('#' * cell.by_means)})" if cell.by_means else ""
    return cell.text.replace("-", "$-$") + by_ranks + by_means


def _line(table: MeanTable, place: int) -> str:
    line = table.lines[place]
    name = rf"\textit{{{escaped(line.name)}}}" if line.baseline else escaped(line.name)
    columns = zip(table.measures, line.cells, strict=True)
    cells = (_cell(cell, table.has_room_for_marks(measure)) for measure, cell in columns)
    return f"    {_row(*map(escaped, line.start), name, *cells, *map(escaped, line.after))}"


def _row(*cells: str) -> str:
    return rf"{' & '.join(cells)} \\"


def _cell(cell: MeanCell, with_room: bool) -> str:
    text = rf"\textbf{{{cell.text}}}" if cell.best else cell.text
    if with_room:
        return text + _MARKS.get(cell.mark, _NO_MARK)
    return rf"{text}$^{{\mathrm{{{cell.mark}}}}}$" if cell.mark else text
