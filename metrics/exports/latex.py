"""A LaTeX table in the style of booktabs, which the document must load."""

from __future__ import annotations

import re
from collections.abc import Iterator

from metrics.exports.table import BEST_MARK, BETTER, WORSE, Cell, Column, Row, Table

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    # Unlike \textquotedbl, it is in every font, also without fontenc.
    '"': r"{\char34}", "`": r"\textasciigrave{}",
    "\N{BLACK CIRCLE}": r"$\bullet$", "\N{MINUS SIGN}": "$-$",
}  # fmt: skip
_MARKS = {BETTER: r"$^{\uparrow}$", WORSE: r"$^{\downarrow}$"}
# The marks of several baselines have letters after arrows.
_ARROWS = {"\N{UPWARDS ARROW}": r"\uparrow ", "\N{DOWNWARDS ARROW}": r"\downarrow "}
_FIGURE = re.compile(f"({BEST_MARK} )?[-\N{MINUS SIGN}]?[0-9.,]+%?|\N{EN DASH}|")
_NO_MARK = r"\phantom{$^{\uparrow}$}"
# A longer table has no room on one page.
_MOST_LINES = 40


def render(table: Table) -> Iterator[str]:
    """Yield a table environment below a comment with the packages that it needs.

    Many rows are a longtable, which repeats its head on each page.
    """
    headings = table.headings
    rows = [(row, table.cells(row)) for row in table.rows]
    form = "".join(
        _alignment(column, [cells[place] for _, cells in rows])
        for place, column in enumerate(headings)
    )
    head = _line(escaped(column.heading) for column in headings)
    body = list(_body(headings, rows))
    long = len(body) > _MOST_LINES

    packages = "booktabs,textcomp,longtable" if long else "booktabs,textcomp"
    comment = (
        f"% needs \\usepackage{{{packages}}} and, below LuaLaTeX and XeLaTeX, which letters beyond "
        "Latin need, \\usepackage[T1]{fontenc}"
    )
    caption, label = rf"\caption{{{_caption(table)}}}", rf"\label{{tab:{table.name}}}"

    if long:
        top = [r"  \toprule", f"  {head}", r"  \midrule"]
        lines = [
            rf"\begin{{longtable}}{{{form}}}",
            rf"  {caption}{label} \\",
            *top,
            r"  \endfirsthead",
            *top,
            r"  \endhead",
            r"  \bottomrule",
            r"  \endfoot",
            *(f"  {line}" for line in body),
            r"\end{longtable}",
        ]
    else:
        lines = [
            r"\begin{table}",
            r"  \centering",
            f"  {caption}",
            f"  {label}",
            rf"  \begin{{tabular}}{{{form}}}",
            r"    \toprule",
            f"    {head}",
            r"    \midrule",
            *(f"    {line}" for line in body),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
        ]

    yield "\n".join([comment, *lines, ""])


def escaped(text: str) -> str:
    """Escape text for LaTeX, in one line; two hyphens do not become a dash."""
    line = "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))
    return line.replace("--", "-{}-").replace("--", "-{}-")


def _alignment(column: Column, cells: list[Cell]) -> str:
    """Return r for a column of figures, l for one of texts.

    Marks of varying width after the figures would move these.
    """
    if column.head or any(cell.aside or (cell.mark and cell.mark not in _MARKS) for cell in cells):
        return "l"
    return "r" if column.direction or all(_FIGURE.fullmatch(cell.text) for cell in cells) else "l"


def _caption(table: Table) -> str:
    text = " ".join(map(escaped, table.notes)).replace("alpha =", r"$\alpha$ =")
    return text.replace("(up)", r"($\uparrow$)").replace("(down)", r"($\downarrow$)")


def _body(headings: list[Column], rows: list[tuple[Row, list[Cell]]]) -> Iterator[str]:
    for row, cells in rows:
        if row.begins_part:
            yield r"\midrule"

        yield _line(_cell(row, *pair) for pair in zip(headings, cells, strict=True))


def _cell(row: Row, column: Column, cell: Cell) -> str:
    text = escaped(cell.text)
    if column.head:
        # The p of a row is a variable.
        text = f"{text[:-1]}$p$" if text.endswith(", p") else text
        return rf"\textit{{{text}}}" if row.baseline else text

    if column.direction:
        text = text.replace("-", "$-$")

    if cell.best:
        text = rf"\textbf{{{text}}}"

    mark = ""
    if column.with_marks or cell.mark in _MARKS:
        mark = _MARKS.get(cell.mark, _NO_MARK)
    elif cell.mark:
        above = "".join(_ARROWS.get(character, character) for character in cell.mark)
        mark = rf"$^{{\mathrm{{{above}}}}}$" if cell.mark.isalnum() else f"$^{{{above}}}$"

    aside = f" {escaped(cell.aside)}" if cell.aside else ""
    return text + mark + aside


def _line(cells: Iterator[str]) -> str:
    line = " & ".join(cells)
    # After the end of the line before, LaTeX would take these for its parameters.
    return rf"{'{}' if line.startswith(('[', '*')) else ''}{line} \\"
