"""Comparisons as files: CSV with every figure, Markdown and LaTeX tables for a paper."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rest_framework.test import APIClient
from scipy import stats

from metrics.engine.judgement.steps import Matrix
from metrics.exports.comparisons import tables
from metrics.exports.formats import FORMATS
from runs.models import Run, Team, User
from tests.metrics.scored import make_scored, simulated
from tests.web.worlds import body_of

pytestmark = pytest.mark.words
SCORED = "/api/v1/collections/scored/comparison/"


@pytest.fixture
def ids(alice: User) -> list[str]:
    values = np.stack([simulated(4, 30), simulated(4, 30, seed=9)])
    return make_scored("scored", Team.objects.get(personal_of=alice), values, ["AP", "P(rel=2)@5"])


def export(api: APIClient, kind: str, **query: Any) -> str:
    answer = api.get(f"{SCORED}export/{kind}/", {name: str(value) for name, value in query.items()})
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"] == FORMATS[kind].content_type
    assert answer["Content-Disposition"] == f'attachment; filename="scored-comparison.{kind}"'
    return body_of(answer).decode()


def test_csv_has_every_figure_of_the_answer(api: APIClient, ids: list[str]) -> None:
    query = {
        "measures": "AP,P(rel=2)@5",
        "tests": "paired_t,randomisation",
        "resamples": 500,
        "seed": 4,
    }
    rows = list(csv.DictReader(io.StringIO(export(api, "csv", **query))))
    answer = api.get(SCORED, query).json()
    expected = [
        (measure, pair, test)
        for measure in answer["measures"]
        for pair in measure["pairs"]
        for test in answer["tests"]
    ]
    assert len(rows) == len(expected) == 24
    for row, (measure, pair, test) in zip(rows, expected, strict=True):
        verdict = pair["tests"][test]
        assert (row["measure"], row["test"], row["run_a"], row["run_b"]) == (
            measure["measure"], test, pair["a"], pair["b"],
        )  # fmt: skip
        for name in ("low", "high", "statistic", "p_value", "p_adjusted"):
            assert float(row[name]) == verdict[name]
        assert (row["exact"], row["significant"]) == ("false", str(verdict["significant"]).lower())
        assert float(row["difference"]) == pair["difference"]
        assert float(row["cohen_d_low"]) == pair["cohen_d"]["low"]
        assert [int(row[name]) for name in ("wins", "topics_tied", "losses")] == [
            pair["wins"], pair["ties"], pair["losses"],
        ]  # fmt: skip
        inputs = (
            "seed",
            "resamples",
            "qrels",
            "scores",
            "collection",
            "engine_version",
            "alpha",
            "confidence",
        )
        assert [row[name] for name in inputs] == [
            "4",
            "500",
            "1",
            "float64",
            "scored",
            "1",
            "0.05",
            "0.95",
        ]
        assert (row["correction"], row["family"], row["topics"]) == ("holm", "6", "30")


def test_csv_of_one_run_and_its_limit(
    api: APIClient, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = list(csv.DictReader(io.StringIO(export(api, "csv", run=ids[1]))))
    assert len(rows) == 3
    assert all(ids[1] in (row["run_a"], row["run_b"]) for row in rows)
    monkeypatch.setattr(tables, "MOST_ROWS", 5)
    refused = api.get(f"{SCORED}export/csv/")
    assert (refused.status_code, refused.json()["code"]) == (400, "too_many_rows")


def structure_of(latex: str) -> tuple[str, list[list[str]]]:
    """The caption and the cells; every brace is closed and no character is special by mistake."""
    bare = re.sub(r"\\[\\{}$&#%_]", "", re.sub(r"^%.*\n", "", latex))
    depth = 0
    for character in bare:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    assert bare.count("$") % 2 == 0
    assert not set("#%~") & set(bare)
    begun, ended = re.findall(r"\\begin{(\w+)}", latex), re.findall(r"\\end{(\w+)}", latex)
    assert begun == ended[::-1] == ["table", "tabular"]
    body = latex.partition("\\midrule\n")[2].partition("    \\bottomrule")[0]
    lines = [line.removesuffix(" \\\\").strip() for line in body.splitlines()]
    caption = re.search(r"\\caption{(.*)}\n", latex)
    assert caption
    return caption[1], [[cell.strip() for cell in re.split(r"(?<!\\)&", line)] for line in lines]


def test_a_latex_table_with_letters(api: APIClient, ids: list[str]) -> None:
    latex = export(api, "tex", measures="AP,P(rel=2)@5")
    caption, cells = structure_of(latex)
    assert r"\begin{tabular}{lll}" in latex
    assert "Run & AP & P(rel=2)@5" in latex
    answer = api.get(SCORED, {"measures": "AP,P(rel=2)@5"}).json()
    tags = {run["id"]: run["tag"] for run in answer["runs"]}
    assert [row[0] for row in cells] == [
        tags[entry["run"]] for entry in answer["measures"][0]["means"]
    ]
    for place, measure in enumerate(answer["measures"], 1):
        means = {tags[entry["run"]]: entry["mean"] for entry in measure["means"]}
        letters = {
            tags[entry["run"]]: entry["letters"]
            for entry in measure["tests"]["t_and_tukey"]["groups"]
        }
        best = max(means.values())
        for row in cells:
            text = f"{means[row[0]]:.4f}"
            text = rf"\textbf{{{text}}}" if means[row[0]] == best else text
            assert row[place] == rf"{text}$^{{\mathrm{{{letters[row[0]]}}}}}$"
    for part in (
        "Means of 4 runs of Collection scored (qrels version 1) on 30 topics.",
        "paired t (Holm) and Tukey's HSD",
        "accounting for all 6 pairs at once", r"$\alpha$ = 0.05", "share a letter",
    ):  # fmt: skip
        assert part in caption


def test_a_latex_table_against_a_baseline(api: APIClient, ids: list[str]) -> None:
    query = {
        "baseline": ids[0],
        "tests": "randomisation",
        "resamples": 20_000,
        "seed": 2,
        "alpha": 0.1,
    }
    caption, cells = structure_of(export(api, "tex", **query))
    (measure,) = api.get(SCORED, query).json()["measures"]
    marks = {"r0": ""}
    for pair in measure["pairs"]:
        arrow = "uparrow" if pair["difference"] > 0 else "downarrow"
        tag = Run.objects.get(pk=pair["a"]).tag
        marks[tag] = arrow if pair["tests"]["randomisation"]["significant"] else ""
    assert {mark for mark in marks.values() if mark}
    for name, cell in cells:
        tag = name.removeprefix(r"\textit{").removesuffix("}")
        assert (r"\textit" in name) == (tag == "r0")
        assert marks[tag] in cell
        assert ("phantom" in cell) == (not marks[tag])
    for part in (
        "B = 20,000, seed 2",
        "over 3 pairs",
        r"than r0",
        r"($\uparrow$)",
        r"$\alpha$ = 0.1",
    ):
        assert part in caption


def test_marks_of_several_baselines_have_their_letters(api: APIClient, ids: list[str]) -> None:
    query = {"baseline": f"{ids[2]},{ids[0]}", "tests": "paired_t", "alpha": 0.5}
    caption, cells = structure_of(export(api, "tex", **query))
    (measure,) = api.get(SCORED, query).json()["measures"]
    tags = {str(run.pk): run.tag for run in Run.objects.all()}
    marks = dict.fromkeys(tags.values(), "")
    for pair in measure["pairs"]:
        if pair["tests"]["paired_t"]["significant"]:
            arrow = r"\uparrow" if pair["difference"] > 0 else r"\downarrow"
            marks[tags[pair["a"]]] += f"{arrow} {'a' if pair['b'] == ids[2] else 'b'}"

    assert any(mark.count("arrow") == 2 for mark in marks.values())
    for name, cell in cells:
        tag = name.removeprefix(r"\textit{").removesuffix("}")
        assert (r"\textit" in name) == (tag in ("r0", "r2"))
        assert cell.endswith(f"$^{{{marks[tag]}}}$") if marks[tag] else "$" not in cell

    assert r"(up) or worse (down)" not in caption
    assert r"worse ($\downarrow$) than a: r2 or b: r0." in caption
    assert "over 5 pairs" in caption
    assert "\N{UPWARDS ARROW}" in export(api, "md", **query)


def test_a_markdown_table(api: APIClient, ids: list[str]) -> None:
    text = export(api, "md", baseline=ids[0], tests="tukey_hsd", measures="AP,P(rel=2)@5")
    lines = text.splitlines()
    assert lines[:2] == ["| Run | AP | P(rel=2)@5 |", "| --- | ---: | ---: |"]
    assert len(lines) == 2 + 4 + 2
    assert any(line.startswith("| r0 (baseline) |") for line in lines)
    assert sum("**" in line for line in lines) in (1, 2)
    assert "accounting for all 6 pairs at once" in lines[-1]


def test_a_table_is_of_one_test(api: APIClient, ids: list[str]) -> None:
    for kind in ("md", "tex"):
        for tests in ("paired_t,tukey_hsd", "wilcoxon,sign", "paired_t,sign,conover"):
            refused = api.get(f"{SCORED}export/{kind}/", {"tests": tests})
            assert (refused.status_code, refused.json()["code"]) == (400, "one_test_only")
            assert refused["Content-Type"] == "application/problem+json"
    assert api.get(f"{SCORED}export/xls/").status_code == 404


BOTH = {"measures": "AP,P(rel=2)@5", "tests": "conover,tukey_hsd", "correction": "none"}


def post_hoc(values: Matrix) -> dict[tuple[int, int], tuple[float, float]]:
    """p of each pair by Conover's and by Tukey's test, with SciPy's ranks and distributions.

    Conover (1980): |R_i - R_j| over sqrt(2 (n A - sum of R^2) / ((n - 1)(k - 1))) is t of (n - 1)(k
    - 1) degrees of freedom. Tukey: |mean_i - mean_j| over sqrt(MS(residual) / n) is a studentized
      range of k means.
    """
    runs, topics = values.shape
    freedom = (topics - 1) * (runs - 1)
    ranks = stats.rankdata(values, axis=0)
    sums = ranks.sum(axis=1)
    spread = np.sqrt(2 * (topics * (ranks**2).sum() - (sums**2).sum()) / freedom)
    means = values.mean(axis=1)
    rest = values - means[:, None] - values.mean(axis=0) + values.mean()
    error = np.sqrt((rest**2).sum() / freedom / topics)
    return {
        (a, b): (
            float(2 * stats.t.sf(abs(sums[a] - sums[b]) / spread, freedom)),
            float(stats.studentized_range.sf(abs(means[a] - means[b]) / error, runs, freedom)),
        )
        for a in range(runs)
        for b in range(runs)
        if a != b
    }


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_differences_marked_by_ranks_and_by_means(
    api: APIClient, alice: User, alpha: float
) -> None:
    values = np.stack([simulated(4, 30), simulated(4, 30, seed=9)])
    make_scored("scored", Team.objects.get(personal_of=alice), values, ["AP", "P(rel=2)@5"])
    text = export(api, "md", **BOTH, alpha=alpha)
    rows = [
        [cell.strip().replace("\\", "") for cell in line.split("|")[1:-1]]
        for line in text.splitlines()[2:-2]
    ]
    means, differences, tests = rows[:4], rows[4:10], rows[10:]
    assert [name for name, *_ in means] == [
        f"r{row}" for row in np.argsort(-values[0].mean(axis=1))
    ]
    expected = [post_hoc(table) for table in values]
    seen = set()
    for name, *cells in differences:
        a, b = (int(tag.strip()[1:]) for tag in name.split("\N{MINUS SIGN}"))
        for table, p_values, cell in zip(values, expected, cells, strict=True):
            marks = [sum(p < level for level in {alpha, 0.01}) for p in p_values[a, b]]
            marks = [
                2 if count and p < 0.01 else count
                for count, p in zip(marks, p_values[a, b], strict=True)
            ]
            means_mark = f" ({'#' * marks[1]})" if marks[1] else ""
            figure = f"{table[a].mean() - table[b].mean():.4f}"
            assert cell == " ".join(f"{figure} {'*' * marks[0]}{means_mark}".split())
            seen.add(tuple(marks))
    assert len(seen) > 2
    assert [name for name, *_ in tests] == [
        "Analysis of variance (Greenhouse-Geisser), p",
        "Friedman's test, p",
    ]
    ours = [float(cell.removeprefix("< ")) for cell in tests[1][1:]]
    assert ours == pytest.approx(
        [stats.friedmanchisquare(*table).pvalue for table in values], abs=1e-4
    )
    legend = text.splitlines()[-1].replace("\\", "")
    assert ("* p < 0.05, ** p < 0.01; Conover's test, no correction over 6 pairs" in legend) == (
        alpha == 0.05
    )
    assert (
        "By means: (##) p < 0.01; Tukey's HSD test, accounting for all 6 pairs at once" in legend
    ) == (alpha == 0.01)


def test_a_latex_table_of_differences(api: APIClient, ids: list[str]) -> None:
    caption, cells = structure_of(export(api, "tex", **BOTH))
    assert r"\textless{} 0.01" in caption
    assert r"$\alpha$ = 0.05" in caption
    marked = [cell for row in cells for cell in row[1:] if "^{**}" in cell]
    assert marked
    assert all(
        re.fullmatch(r"(\$-\$)?0\.\d{4}\$\^{\*\*}\$( \((\\#){1,2}\))?", cell) for cell in marked
    )
    assert sum(row[0].startswith(r"\midrule") for row in cells) == 2


def test_differences_against_a_baseline_and_their_limit(
    api: APIClient, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    against = export(api, "md", **BOTH, baseline=ids[0])
    assert re.findall(r"^\| (r\d) \N{MINUS SIGN} (r\d) \|", against, re.MULTILINE) == [
        (name, "r0") for name in re.findall(r"^\| (r[1-3]) \|", against, re.MULTILINE)
    ]
    monkeypatch.setattr(tables, "MOST_PAIRS", 5)
    refused = api.get(f"{SCORED}export/tex/", BOTH)
    assert (refused.status_code, refused.json()["code"]) == (400, "too_many_rows")


@pytest.mark.parametrize(
    ("topics", "tests", "message"),
    [
        (3, "conover,tukey_hsd", "No verdicts: 3 topics are too few"),
        (40, "paired_t,conover", "AP: friedman finds no difference of the runs"),
    ],
)
def test_the_caption_says_what_marks_are_worth(
    api: APIClient, alice: User, topics: int, tests: str, message: str
) -> None:
    values = np.random.default_rng(3).random((3, topics)) * 0.3
    make_scored("scored", Team.objects.get(personal_of=alice), values)
    assert message in export(api, "md", tests=tests).replace("\\", "")


def test_runs_of_one_tag_have_their_teams_beside_it(
    api: APIClient, bob: User, ids: list[str]
) -> None:
    other = Team.objects.get(personal_of=bob)
    Run.objects.filter(pk=ids[1]).update(team=other, tag="r0")
    names = [row[0] for row in structure_of(export(api, "tex"))[1]]
    assert {"alice/r0", "bob/r0", "r2", "r3"} == set(names)


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no LaTeX")
def test_latex_compiles_it(api: APIClient, ids: list[str], tmp_path: Path) -> None:
    table = export(api, "tex", measures="AP,P(rel=2)@5")
    head = "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{booktabs,textcomp}\\begin{document}\n"
    (tmp_path / "paper.tex").write_text(f"{head}{table}\\end{{document}}\n")
    subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper"],
        cwd=tmp_path,
        check=True,
        timeout=60,
    )
