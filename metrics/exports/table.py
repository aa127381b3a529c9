"""Table: columns, rows, and the sentences below them, for files in any format and for pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from string import ascii_lowercase
from typing import Any, Literal, Self

# The marks of a figure that is significantly better or worse than the baseline's, and of a run that
# can be the best.
BETTER, WORSE = "better", "worse"
BEST_MARK = "\N{BLACK CIRCLE}"
_ARROWS = {
    BETTER: "\N{BLACK UP-POINTING TRIANGLE}",
    WORSE: "\N{BLACK DOWN-POINTING TRIANGLE}",
}


_MARKS_OF_SEVERAL = {BETTER: "\N{UPWARDS ARROW}", WORSE: "\N{DOWNWARDS ARROW}"}


def baseline_letter(place: int) -> str:
    """Return the letter by which marks name one of several baselines."""
    return ascii_lowercase[place]


def marks_of_several(marks: Iterable[str]) -> str:
    """Return the mark of a figure from its mark, BETTER, WORSE or none, for each baseline."""
    return "".join(
        f"{_MARKS_OF_SEVERAL[mark]}{baseline_letter(place)}"
        for place, mark in enumerate(marks)
        if mark
    )


def listed_baselines(names: Sequence[str]) -> str:
    """Return the names of baselines; several have the letters of their marks before them."""
    if len(names) == 1:
        return names[0]
    listed = [f"{baseline_letter(place)}: {name}" for place, name in enumerate(names)]
    return f"{', '.join(listed[:-1])} or {listed[-1]}"


@dataclass(frozen=True)
class Cell:
    """A value as readers see it.

    `best` marks the best of its column, and `note` adds to the text. `mark` is better or worse, or
    else a text above the line; `aside` follows it.

    On a page, `address` is where the text leads, and `spoken` the name of the link. A `quiet` text
    is less than a result. After it come a word in a frame (`label`), `html`, such as a drawing of
    the value, and a `hint`.
    """

    text: str
    best: bool = False
    note: str = ""
    mark: str = ""
    aside: str = ""
    value: Any = None
    address: str = ""
    spoken: str = ""
    quiet: bool = False
    label: str = ""
    html: str = ""
    hint: str = ""

    @cached_property
    def marks(self) -> str:
        """Return the other marks, for pages."""
        return " ".join(text for text in ("" if self.arrow else self.mark, self.aside) if text)

    @cached_property
    def arrow(self) -> str:
        """Return the arrow of a figure that is better or worse, for pages."""
        return _ARROWS.get(self.mark, "")


Sorting = Literal["", "ascending", "descending"]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    `name` is its name in files of data; without one the column is for readers only. `title` and
    `unit` are for readers, who see the name if there is no title; without a `format` the column is
    for data only. `direction` says which values of a measure are better. The `head` names the row.
    A column `with_marks` leaves room for the marks of BETTER and WORSE.

    On a page, `style` is the class of its cells, and `sorting` says that rows are sorted by it.
    Where a phone shows a row as a list, `narrow` is the name of the value, by default the heading.
    """

    name: str
    title: str = ""
    unit: str = ""
    direction: Literal["", "higher", "lower"] = ""
    format: Callable[[Any], str] | None = str
    head: bool = False
    with_marks: bool = False
    style: str = "number"
    sorting: Sorting = ""
    narrow: str | None = None

    @cached_property
    def heading(self) -> str:
        title = self.title or self.name
        return f"{title} ({self.unit})" if self.unit else title


@dataclass(frozen=True)
class Row:
    """A value or a Cell for each column.

    A `marked` row can be the best. A row that `begins_part` has a rule above it. On a page, `style`
    is its class.
    """

    values: Sequence[Any]
    baseline: bool = False
    marked: bool = False
    begins_part: bool = False
    style: str = ""


# A column, the text of a value, and its cell, which is None for most values: a page has thousands.
PageCell = tuple[Column, str, Cell | None]


@dataclass(frozen=True)
class Table:
    """Columns, rows, and notes, each a sentence.

    `name` tells the table from others in a document, and `title` is its heading on a page. The rows
    of a table of data may be an iterator, which is read once.
    """

    name: str
    columns: Sequence[Column]
    rows: Iterable[Row]
    notes: Sequence[str] = ()
    title: str = ""

    @classmethod
    def of_records(
        cls, name: str, records: Iterable[Mapping[str, Any]], names: Sequence[str] = ()
    ) -> Self:
        """Build a table of data from records that all have the columns of the first one.

        `names` are the columns of a table without records.
        """
        remaining = iter(records)
        first = next(remaining, None)
        if first is None:
            return cls.of_values(name, names, [])

        rows = (list(record.values()) for record in chain([first], remaining))
        return cls.of_values(name, first, rows)

    @classmethod
    def of_values(
        cls,
        name: str,
        names: Iterable[str],
        rows: Iterable[Sequence[Any]],
        notes: Sequence[str] = (),
    ) -> Self:
        """Build a table of data from the names of its columns and the values of each row."""
        return cls(name, [Column(column) for column in names], map(Row, rows), notes)

    @cached_property
    def headings(self) -> list[Column]:
        """Return the columns that readers see."""
        return [column for column in self.columns if column.format]

    def cells(self, row: Row) -> list[Cell]:
        """Return the cells of a row that readers see, the first one with the mark of the best."""
        cells = [
            value if isinstance(value, Cell) else Cell(column.format(value))
            for column, value in zip(self.columns, row.values, strict=True)
            if column.format
        ]

        if row.marked:
            cells[0] = Cell(f"{BEST_MARK} {cells[0].text}")

        return cells

    def parts(self) -> Iterator[list[tuple[Row, list[PageCell]]]]:
        """Yield the rows of each part as a page writes them."""
        part: list[tuple[Row, list[PageCell]]] = []
        for row in self.rows:
            if row.begins_part and part:
                yield part
                part = []

            cells: list[PageCell] = []
            for column, value in zip(self.columns, row.values, strict=True):
                if column.format is None:
                    continue
                if isinstance(value, Cell):
                    cells.append((column, value.text, value))
                else:
                    cells.append((column, column.format(value), None))

            if row.marked:
                column, text, _ = cells[0]
                cells[0] = (column, f"{BEST_MARK} {text}", None)

            part.append((row, cells))

        yield part
