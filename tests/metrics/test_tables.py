"""One table in every format of a file: what each escapes, marks and leaves out."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.template.loader import render_to_string

from metrics.exports.formats import FORMATS
from metrics.exports.table import BETTER, WORSE, Cell, Column, Row, Table

TABLE = Table(
    "tiny",
    [
        Column("rank", "Rank"),
        Column("", "Run", head=True),
        Column("id", format=None),
        Column("AP", direction="higher", with_marks=True),
        Column("cost", "latency", "ms", format="{:.1f}".format),
    ],
    [
        Row([1, "a_1", "x", Cell("0.5000", best=True, mark=BETTER, value=0.5), 3.25], marked=True),
        Row([2, "=b-2", None, Cell("-0.1000", value=-0.1), 4.0], baseline=True),
        Row([3, "Test, p", "z", Cell("< 0.01", mark=WORSE, aside="(#)"), 1e-9], begins_part=True),
    ],
    ["Better (up) at alpha = 0.05.", "A & B."],
)


def text(kind: str, table: Table = TABLE) -> str:
    return FORMATS[kind].content(table).decode()


def test_markdown() -> None:
    assert text("md") == (
        "| Rank | Run | AP | latency (ms) |\n"
        "| ---: | --- | ---: | ---: |\n"
        "| \N{BLACK CIRCLE} 1 | a\\_1 | **0.5000** \N{UPWARDS ARROW} | 3.2 |\n"
        "| 2 | =b-2 (baseline) | -0.1000 | 4.0 |\n"
        "| 3 | Test, p | \\< 0.01 \N{DOWNWARDS ARROW} (\\#) | 0.0 |\n"
        "\n"
        "Better (up) at alpha = 0.05. A \\& B.\n"
    )


def test_latex() -> None:
    latex = text("tex")
    assert r"\begin{tabular}{rllr}" in latex
    assert r"\caption{Better ($\uparrow$) at $\alpha$ = 0.05. A \& B.}" in latex
    assert r"\label{tab:tiny}" in latex
    body = latex.partition("\\midrule\n")[2].partition("    \\bottomrule")[0]
    assert [line.strip() for line in body.splitlines()] == [
        r"$\bullet$ 1 & a\_1 & \textbf{0.5000}$^{\uparrow}$ & 3.2 \\",
        r"2 & \textit{=b-2} & $-$0.1000\phantom{$^{\uparrow}$} & 4.0 \\",
        r"\midrule",
        r"3 & Test, $p$ & \textless{} 0.01$^{\downarrow}$ (\#) & 0.0 \\",
    ]


def test_a_long_latex_table_breaks_over_pages() -> None:
    rows = [Row([f"r{number}"]) for number in range(41)]
    columns = [Column("run", "Run", head=True)]
    assert r"\begin{longtable}{l}" in text("tex", Table("long", columns, rows))
    assert "longtable" not in text("tex", Table("short", columns, rows[:40]))


@pytest.mark.parametrize("rows", [2, 41])
def test_any_text_compiles_with_pdflatex(tmp_path: Path, rows: int) -> None:
    pdflatex, find = shutil.which("pdflatex"), shutil.which("kpsewhich")
    if pdflatex is None or find is None:
        pytest.skip("needs pdflatex")
    if subprocess.run([find, "booktabs.sty"], stdout=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("needs the LaTeX package booktabs")

    every = "".join(map(chr, range(32, 127)))
    columns = [Column("run", f"Run {every}", head=True), Column("AP", direction="higher")]
    cells = [Cell("-0.5", True, mark=BETTER), Cell("0.1", mark="**", aside=every)]
    begin = ("[1cm] team_1", '* "quoted" O\'Neil \N{LATIN SMALL LETTER E WITH ACUTE}')
    body = [Row([f"{begin[place % 2]} {every}", cells[place % 2]]) for place in range(rows)]
    latex = text("tex", Table("team_a-b", columns, body, [every]))
    document = "\n".join(
        [
            r"\documentclass{article}",
            r"\usepackage{booktabs,textcomp,longtable}",
            rf"\begin{{document}}{latex}\end{{document}}",
        ]
    )

    (tmp_path / "table.tex").write_text(document)
    command = [pdflatex, "-draftmode", "-interaction=nonstopmode", "-halt-on-error", "table"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=300, check=False)
    errors = [line for line in ended.stdout.decode("latin-1").splitlines() if line[:1] == "!"]
    assert (ended.returncode, errors) == (0, [])


def test_data_has_the_values_of_named_columns() -> None:
    def table() -> Table:
        rows = [[0.1, True], [float("nan"), "=1"], [None, 3]]
        return Table.of_values("data", ["a", "-b"], rows, ["A note"])

    assert text("csv", table()) == "a,'-b\r\n0.1,true\r\n,'=1\r\n,3\r\n"
    assert text("tsv", table()) == "# A note\na\t-b\n0.1\tyes\n\t'=1\n\t3\n"
    assert text(
        "csv", Table("", [Column("", "Run"), Column("id", format=None)], [Row(["r", 7])])
    ) == ("id\r\n7\r\n")


def test_a_table_without_records_has_its_names() -> None:
    assert text("csv", Table.of_records("none", iter([]), ["a", "b"])) == "a,b\r\n"
    assert text("csv", Table.of_records("some", iter([{"a": 1}, {"a": 2}]))) == "a\r\n1\r\n2\r\n"


def test_trec_eval_has_the_values_of_measures() -> None:
    assert text("trec_eval").splitlines()[:3] == [
        "runid                 \tall\ta_1",
        "AP                    \tall\t0.5000",
        "runid                 \tall\t=b-2",
    ]


def test_a_page_has_a_body_for_each_part() -> None:
    assert [len(rows) for rows in TABLE.parts()] == [2, 1]
    (row, cells), _ = next(TABLE.parts())
    assert row.marked
    assert [text for _, text, _ in cells] == ["\N{BLACK CIRCLE} 1", "a_1", "0.5000", "3.2"]


def test_a_page_escapes_marks_and_leads_on() -> None:
    table = Table(
        "page",
        [Column("run", "Run", head=True), Column("AP", direction="higher")],
        [
            Row([Cell("<b>", address="/runs/1/"), Cell("0.5", True, "why", BETTER)]),
            Row(["c", Cell("0.1", mark="**", aside="(#)")], begins_part=True),
        ],
    )

    def html(**context: Any) -> str:
        text = render_to_string("metrics/_table.html", {"table": table, **context})
        return re.sub(r"\s+", " ", text)

    assert '<a href="/runs/1/">&lt;b&gt;</a>' in html()
    assert "<a" not in html(link=True)
    assert '<td class="number better" title="why">' in html()
    assert 'aria-label="better">\N{BLACK UP-POINTING TRIANGLE}</span><strong>0.5</strong>' in html()
    assert '0.1 <span class="marks">** (#)</span>' in html()
    assert html().count("<tbody>") == 2
    assert (
        html(kind="small", describedby="why")
        .lstrip()
        .startswith('<table class="small" aria-describedby="why">')
    )
