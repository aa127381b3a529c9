"""Leaderboards as files: CSV with every figure, Markdown and LaTeX tables for a paper, trec_eval's lines."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rest_framework.test import APIClient

from metrics.exports.boards import EXPORTS
from metrics.exports.formats import FORMATS
from metrics.models import Evaluation
from runs.models import Collection, Qrels, Run, Team, User
from tests.metrics.boards import make_run
from tests.metrics.scored import make_scored, simulated
from tests.metrics.test_comparison_exports import structure_of

pytestmark = pytest.mark.words
BOARD = "/api/v1/collections/scored/leaderboard/"
# Means of AP: 0.5, 0.75, 0.25; of the count: 3, 1, 2.
AP = [[0.4, 0.5, 0.6, 0.45, 0.55], [0.7, 0.75, 0.8, 0.77, 0.73], [0.2, 0.25, 0.3, 0.22, 0.28]]
AP = [2 * values for values in AP]
COUNTS = [[1.0, 1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0, 0.0]]
COUNTS = [[*values, *(5 * [0.0])] for values in COUNTS]


@pytest.fixture
def board(alice: User) -> Collection:
    """Three ranked runs r0, r1, r2 and one that failed."""
    team = Team.objects.get(personal_of=alice)
    make_scored("scored", team, np.array([AP, COUNTS]), ["AP", "NumRelRet"])
    collection = Collection.objects.get()
    failed = {"state": "failed", "error_code": "stored_file_corrupt", "scores": "float64"}
    Evaluation.objects.create(run=make_run(collection, "gone"), qrels=Qrels.objects.get(), **failed)
    # Of NumRelRet the sum is the figure of a run, not the mean.
    for vector in Evaluation.objects.filter(state="evaluated", vectors__measure="NumRelRet"):
        vector.vectors.filter(measure="NumRelRet").update(
            mean=float(vector.vectors.get(measure="NumRelRet").values.sum())
        )
    return collection


def export(client: APIClient, kind: str, **query: Any) -> str:
    answer = client.get(
        f"{BOARD}export/{kind}/", {name: str(value) for name, value in query.items()}
    )
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"] == FORMATS[kind].content_type
    ending = {"trec_eval": "txt"}.get(kind, kind)
    assert answer["Content-Disposition"] == f'attachment; filename="scored-leaderboard.{ending}"'
    assert answer["Cache-Control"] == "private, no-cache"
    return answer.content.decode()


def id_of(tag: str) -> str:
    return str(Run.objects.get(tag=tag).pk)


MARKDOWN = """\
| Rank | Run | AP | NumRelRet |
| ---: | --- | ---: | ---: |
| 1 | r1 | **0.7500** | 1 |
| 2 | r0 | 0.5000 | **3** |
| 3 | r2 | 0.2500 | 2 |

Values of 3 runs of Collection scored (qrels version 1) on 10 topics. NumRelRet: sums. Ranked by AP, highest first. \
The best of each column is bold.
"""


@pytest.mark.slow
def test_a_markdown_table(anonymous: APIClient, board: Collection) -> None:
    assert export(anonymous, "md") == MARKDOWN


LATEX = r"""% needs \usepackage{booktabs,textcomp} and, below LuaLaTeX and XeLaTeX, which letters beyond Latin need, \usepackage[T1]{fontenc}
\begin{table}
  \centering
  \caption{Values of 3 runs of Collection scored (qrels version 1) on 10 topics. NumRelRet: sums. Ranked by AP, highest first. The best of each column is bold. Marked by AP are runs that are significantly better ($\uparrow$) or worse ($\downarrow$) than r0. With 95\% confidence r1 is the best of 3 runs, marked $\bullet$. Runs in a tier do not differ significantly from its best run. Of 3 pairs in different tiers 0 do not differ significantly. Test: paired t test on 10 topics, Holm's correction over 3 pairs for the tiers and 2 pairs for the marks, $\alpha$ = 0.05.}
  \label{tab:scored}
  \begin{tabular}{rlrrr}
    \toprule
    Rank & Run & AP & NumRelRet & Tier \\
    \midrule
    $\bullet$ 1 & r1 & \textbf{0.7500}$^{\uparrow}$ & 1 & 1 \\
    2 & \textit{r0} & 0.5000\phantom{$^{\uparrow}$} & \textbf{3} & 2 \\
    3 & r2 & 0.2500$^{\downarrow}$ & 2 & 3 \\
    \bottomrule
  \end{tabular}
\end{table}
"""  # noqa: E501


def test_a_latex_table_with_tiers_and_marks(anonymous: APIClient, board: Collection) -> None:
    latex = export(anonymous, "tex", statistics="tiers", baseline=id_of("r0"), test="paired_t")
    assert latex == LATEX
    assert structure_of(latex)[1][0] == [
        r"$\bullet$ 1", "r1", r"\textbf{0.7500}$^{\uparrow}$", "1", "1"
    ]  # fmt: skip


def test_several_baselines_have_letters_and_columns(
    anonymous: APIClient, board: Collection
) -> None:
    query = {"baseline": f"{id_of('r2')},{id_of('r0')}", "test": "paired_t"}
    caption, cells = structure_of(export(anonymous, "tex", **query))
    assert [row[1:3] for row in cells] == [
        ["r1", r"\textbf{0.7500}$^{\uparrow a\uparrow b}$"],
        [r"\textit{r0}", r"0.5000$^{\uparrow a}$"],
        [r"\textit{r2}", "0.2500"],
    ]
    assert r"worse ($\downarrow$) than a: r2 or b: r0." in caption
    assert "Holm's correction over 3 pairs for the marks" in caption

    rows = list(csv.DictReader(io.StringIO(export(anonymous, "csv", **query))))
    assert [row["baseline_1_mark"] for row in rows[:3]] == ["better", "better", ""]
    assert [row["baseline_2_mark"] for row in rows[:3]] == ["better", "", ""]
    assert {row["baseline"] for row in rows} == {query["baseline"]}
    assert "baseline_mark" not in rows[0]


def test_a_table_says_what_was_drawn(anonymous: APIClient, board: Collection) -> None:
    query = {
        "baseline": id_of("r0"),
        "test": "randomisation",
        "correction": "bonferroni",
        "alpha": 0.2,
        "seed": 7,
    }
    caption, cells = structure_of(export(anonymous, "tex", resamples=5000, **query))
    assert "Bonferroni's correction over 2 pairs for the marks" in caption
    assert r"$\alpha$ = 0.2, B = 5,000, seed 7." in caption
    assert "tier" not in caption
    assert len(cells[0]) == 4
    tukey = export(anonymous, "md", statistics="tiers", test="tukey_hsd", baseline=id_of("r0"))
    assert (
        "Tukey's HSD test on 10 topics, accounting for all 3 pairs at once, alpha = 0.05." in tukey
    )


TREC_EVAL = """\
runid                 \tall\tr1
AP                    \tall\t0.7500
NumRelRet             \tall\t1
runid                 \tall\tr0
AP                    \tall\t0.5000
NumRelRet             \tall\t3
runid                 \tall\tr2
AP                    \tall\t0.2500
NumRelRet             \tall\t2
"""


def test_the_lines_of_trec_eval(anonymous: APIClient, board: Collection) -> None:
    assert export(anonymous, "trec_eval") == TREC_EVAL
    assert export(anonymous, "trec_eval", filter="r2 OR failed") == "".join(
        TREC_EVAL.splitlines(True)[6:]
    )


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_every_row_and_figure_of_the_board(anonymous: APIClient, board: Collection) -> None:
    query = {"statistics": "all", "baseline": id_of("r0"), "seed": 3, "rank_resamples": 500}
    rows = rows_of(export(anonymous, "csv", **query))
    body = anonymous.get(BOARD, query).json()
    assert [(row["rank"], row["state"], row["tag"]) for row in rows] == [
        ("1", "ranked", "r1"), ("2", "ranked", "r0"), ("3", "ranked", "r2"), ("", "failed", "gone"),
    ]  # fmt: skip
    for row, row_of_api in zip(rows[:3], body["results"], strict=False):
        values, standing = row_of_api["values"], row_of_api["statistics"]
        assert (row["run"], row["team"]) == (row_of_api["run"]["id"], row_of_api["run"]["team"])
        assert (float(row["AP"]), int(row["AP topics"])) == (
            values["AP"]["mean"],
            values["AP"]["topics"],
        )
        assert (float(row["AP low"]), float(row["AP high"])) == (
            values["AP"]["low"],
            values["AP"]["high"],
        )
        assert row["in_best_set"] == str(standing["in_best_set"]).lower()
        assert (row["tier"], row["groups"]) == (str(standing["tier"]), " ".join(standing["groups"]))
        assert [int(row["rank_low"]), int(row["rank_high"])] == [
            standing["rank"]["low"],
            standing["rank"]["high"],
        ]
        for name in ("difference", "low", "p_value", "p_adjusted"):
            cell = row[f"baseline_{name}"]
            assert (float(cell) if cell else None) == (standing["baseline"] or {}).get(name)
        options = (
            "test",
            "correction",
            "alpha",
            "seed",
            "rank_resamples",
            "baseline",
            "qrels",
            "collection",
        )
        assert [row[name] for name in options] == [
            "t_and_tukey",
            "by the test",
            "0.05",
            "3",
            "500",
            id_of("r0"),
            "1",
            "scored",
        ]
    assert [row["baseline_mark"] for row in rows] == ["better", "", "worse", ""]
    empty = (
        "AP",
        "AP low",
        "tier",
        "rank_low",
        "baseline_p_value",
        "judged_at_10",
        "topics_answered",
        "resamples",
    )
    assert {rows[3][name] for name in empty} == {""}


def test_a_table_marks_the_runs_that_can_be_the_best(anonymous: APIClient, alice: User) -> None:
    make_scored("scored", Team.objects.get(personal_of=alice), simulated(12, 20))
    rows = anonymous.get(BOARD, {"statistics": "tiers"}).json()["results"]
    best = [row["statistics"]["in_best_set"] for row in rows]
    assert 1 < sum(best) < 12
    table = export(anonymous, "md", statistics="tiers")
    assert [line.startswith("| ● ") for line in table.splitlines()[2:14]] == best
    assert (
        f"With 95% confidence the best of 12 runs is one of these {sum(best)}, marked ●." in table
    )
    # Of these tests nothing follows for the best.
    for question in ({"test": "nemenyi"}, {"test": "paired_t", "correction": "none"}):
        assert "●" not in export(anonymous, "md", statistics="tiers", **question)


def test_a_plain_csv_has_no_columns_of_statistics(anonymous: APIClient, board: Collection) -> None:
    (row,) = rows_of(export(anonymous, "csv", filter="r1", measures="AP"))
    assert (row["rank"], float(row["AP"])) == ("1", 0.75)
    assert list(row) == [
        "rank", "state", "reason", "team", "tag", "run", "submitted", "topics_answered", "topics_judged",
        "judged_at_10", "tied_documents", "qrels", "engine_version", "AP", "AP topics", "collection", "scores",
    ]  # fmt: skip


def test_a_file_has_all_rows_whatever_page_is_shown(anonymous: APIClient, alice: User) -> None:
    make_scored("scored", alice.personal_team, simulated(60, 10))
    assert len(rows_of(export(anonymous, "csv"))) == 60
    refused = anonymous.get("/api/v1/collections/scored/leaderboard/export/csv/?offset=2")
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_parameter")
    text = export(anonymous, "md", filter="r1 -r10")
    assert len([line for line in text.splitlines() if line.startswith("| ")]) == 2 + 10
    assert "Means of 10 of 60 runs of Collection scored" in text
    assert "Ranked by AP, highest first, among all runs." in text


def test_ranks_tiers_and_marks_of_a_file_are_of_the_whole_board(
    anonymous: APIClient, board: Collection
) -> None:
    query = {"statistics": "tiers", "baseline": id_of("r0")}
    whole, some = (
        export(anonymous, "md", **query, **extra).splitlines() for extra in ({}, {"filter": "r2"})
    )
    (line,) = [line for line in some if line.startswith("| 3 ")]
    assert line.replace("**", "") in whole
    assert "better (up) or worse (down) than r0." not in some[-1]
    assert "than the baseline." in some[-1]


def test_text_of_others_is_text_in_every_file(
    anonymous: APIClient, bob: User, board: Collection
) -> None:
    """A17: tags may begin with a hyphen, and everything in a file stands as it is."""
    Run.objects.filter(tag="r1").update(tag="-1_%a")
    Run.objects.filter(tag="r2").update(tag="r0", team=Team.objects.get(personal_of=bob))
    Collection.objects.update(name="Costs & 50 % <b>|")
    latex, markdown = export(anonymous, "tex"), export(anonymous, "md")
    caption, cells = structure_of(latex)
    assert r"Costs \& 50 \% \textless{}b\textgreater{}\textbar{}" in caption
    assert [row[1] for row in cells] == [r"-1\_\%a", "alice/r0", "bob/r0"]
    assert r"| 1 | -1\_%a |" in markdown
    assert r"Costs \& 50 % \<b\>\|" in markdown
    assert rows_of(export(anonymous, "csv"))[0]["tag"] == "'-1_%a"
    assert "runid                 \tall\t-1_%a\n" in export(anonymous, "trec_eval")


def test_a_mean_that_is_not_there_and_the_best_where_less_is_better(
    anonymous: APIClient, alice: User
) -> None:
    values = np.array([AP, [[np.nan] * 10, 2 * [5.0, 6.0, 7.0, 6.0, 6.0], [2.0] * 10]])
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        make_scored("scored", alice.personal_team, values, ["AP", "SearchLength"])
    Run.objects.get(tag="r0").evaluations.get().vectors.filter(measure="SearchLength").update(
        mean=None
    )
    text = export(anonymous, "md", sort="SearchLength")
    assert [line.split(" | ")[1:] for line in text.splitlines()[2:5]] == [
        ["r2", "0.2500", "**2.0000** |"], ["r1", "**0.7500**", "6.0000 |"], ["r0", "0.5000", "– |"],
    ]  # fmt: skip
    assert "Ranked by SearchLength, lowest first." in text
    assert "SearchLength" not in export(anonymous, "trec_eval", filter="r0")


def test_a_board_without_ranked_runs_is_an_empty_table(
    anonymous: APIClient, board: Collection
) -> None:
    assert export(anonymous, "md", filter="status:failed").count("\n| ") == 1
    assert export(anonymous, "trec_eval", filter="status:failed") == ""
    assert len(rows_of(export(anonymous, "csv", filter="status:failed"))) == 1
    assert export(anonymous, "csv", filter="nothing-like-it") == ""


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({"filter": "foo:x"}, "bad_filter", "filter"),
        ({"measures": "foo"}, "unknown_measure", "measures"),
        ({"test": "foo", "statistics": "tiers"}, "unknown_test", "test"),
        ({"baseline": "00000000-0000-4000-8000-000000000000"}, "unknown_run", "baseline"),
    ],
)
def test_a_bad_parameter_of_a_file_is_named(
    anonymous: APIClient, board: Collection, query: dict[str, str], code: str, pointer: str
) -> None:
    for kind in EXPORTS:
        answer = anonymous.get(f"{BOARD}export/{kind}/", query)
        assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
        assert (answer.json()["code"], answer.json()["errors"][0]["pointer"]) == (code, pointer)
        assert "Content-Disposition" not in answer


def test_a_file_is_bounded(
    anonymous: APIClient, board: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metrics.services.boards.leaderboard.MAX_FIGURES", 6)
    refused = anonymous.get(f"{BOARD}export/csv/")
    assert (refused.status_code, refused.json()["code"]) == (400, "too_many_values")
    assert export(anonymous, "csv", filter="-gone")
    monkeypatch.setattr("metrics.services.boards.leaderboard.MAX_ROWS", 3)
    refused = anonymous.get(f"{BOARD}export/csv/")
    assert (refused.status_code, refused.json()["code"]) == (400, "too_many_rows")
    assert refused.json()["errors"][0]["pointer"] == "filter"


def test_a_format_that_there_is_not_is_no_address(anonymous: APIClient, board: Collection) -> None:
    assert anonymous.get(f"{BOARD}export/xls/").status_code == 404


def test_a_blind_board_is_no_file(anonymous: APIClient, api: APIClient, board: Collection) -> None:
    Collection.objects.update(blind=True)
    for kind in EXPORTS:
        for query in ({}, {"filter": "("}, {"measures": "foo"}):
            refused = anonymous.get(f"{BOARD}export/{kind}/", query)
            assert (refused.status_code, refused.json()["code"]) == (403, "blind")
        assert api.get(f"{BOARD}export/{kind}/").status_code == 200


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no LaTeX")
def test_latex_sets_it(anonymous: APIClient, board: Collection, tmp_path: Path) -> None:
    table = export(anonymous, "tex", statistics="tiers", baseline=id_of("r0"))
    head = "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{booktabs,textcomp}\\begin{document}\n"
    (tmp_path / "paper.tex").write_text(f"{head}{table}\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)


def test_a_latex_table_of_the_first_runs_with_chosen_columns_and_decimals(
    anonymous: APIClient, board: Collection
) -> None:
    latex = export(anonymous, "tex", limit=2, decimals=2, measures="NumRelRet,AP", sort="AP")
    caption, cells = structure_of(latex)
    assert r"\begin{tabular}{rlrr}" in latex
    assert "Values of 2 of 3 runs" in caption
    assert "Ranked by AP, highest first, among all runs." in caption
    assert cells == [
        ["1", "r1", "1", r"\textbf{0.75}"],
        ["2", "r0", r"\textbf{3}", "0.50"],
    ]

    assert "0.7500" in export(anonymous, "md", limit=1)
    assert len(rows_of(export(anonymous, "csv", limit=1))) == 1
    refused = anonymous.get("/api/v1/collections/scored/leaderboard/export/tex/", {"decimals": 9})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "decimals")
