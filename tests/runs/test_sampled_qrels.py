"""Qrels of sampled judgements: their forms, problems and warnings."""

from __future__ import annotations

import pytest

from metrics.engine.judgement.sampling import Design
from runs.formats.compression import in_memory
from runs.formats.limits import DEFAULT_LIMITS
from runs.formats.sampled_qrels import MAX_STRATA, read_sampled_qrels
from runs.formats.trec_qrels import QrelsSummary

STRATA = "2 low d3 -1\n1 top d1 2\n1 low d2 0\n2 low d4 1\n1 low d3 -1\n"
NIST = "2 0 d3 low -1\n1 0 d1 top 2\n1 0 d2 low 0\n2 0 d4 low 1\n1 0 d3 low -1\n"
DRAWN = "1 0 d1 2 1\n2 0 d3 0 .25\n1 0 d2 0 2.5e-1\n"


def read(content: str, design: Design) -> QrelsSummary:
    return read_sampled_qrels(lambda: in_memory(content.encode(), DEFAULT_LIMITS), design)


def problems(content: str, design: Design) -> list[tuple[int | None, str]]:
    return [(problem.line, problem.code) for problem in read(content, design).report.problems]


@pytest.mark.parametrize("content", [STRATA, NIST, NIST.replace("low", "2").replace("top", "1.0")])
def test_strata(content: str) -> None:
    summary = read(content, "strata")
    summary.report.check()
    judgements, sampling = summary.judgements, summary.judgements.sampling
    assert sampling
    assert judgements.topic_ids == [b"2", b"1"]
    assert judgements.levels.tolist() == [-1, 1, 2, 0, -1]
    assert sampling.rows[0] == sampling.rows[1]
    assert sampling.rows[3] == sampling.rows[4] != sampling.rows[2]
    assert sampling.probability[sampling.rows].tolist() == [0.5, 0.5, 1.0, 0.5, 0.5]
    assert summary.levels == {-1: 2, 0: 1, 1: 1, 2: 1}
    assert summary.report.counts == {"strata": 2}


def test_probabilities() -> None:
    summary = read(DRAWN + "3 0 d1 -2 1\n", "probabilities")
    summary.report.check()
    sampling = summary.judgements.sampling
    assert sampling
    assert sampling.probability[sampling.rows].tolist() == [1.0, 0.25, 0.25, 1.0]
    assert sampling.topic[sampling.rows].tolist() == [0, 0, 1, 2]
    assert summary.report.counts == {"probabilities": 2, "drawn_not_judged": 1}


@pytest.mark.parametrize(
    ("content", "design", "found"),
    [
        (STRATA + "1 low d1 2\n", "strata", [(6, "repeated_document")]),
        (STRATA + "1 low d9 yes\n1 d8 0\n", "strata", [(7, "too_few_columns"), (6, "bad_level")]),
        (STRATA + "1 low d9 1 0\n", "strata", [(n, "too_few_columns") for n in (1, 2, 3, 4, 5)]),
        (NIST + "1 0 d9 low\n", "strata", [(6, "too_few_columns")]),
        (NIST + "1 0 d9 low 1.5\n1 0 d8 low x\n", "strata", [(6, "bad_level"), (7, "bad_level")]),
        (NIST + "1 0 d9 low 1001\n", "strata", [(6, "bad_level")]),
        (DRAWN + "1 0 d9 1\n", "probabilities", [(4, "too_few_columns")]),
        (DRAWN + "1 0 d9 high 0.5\n", "probabilities", [(4, "bad_level")]),
        (DRAWN + "2 0 d3 0 .25\n", "probabilities", [(4, "repeated_document")]),
        (
            DRAWN
            + "".join(f"3 0 d{i} 1 {p}\n" for i, p in enumerate(("9e-7", "1.01", "-1", "nan"))),
            "probabilities",
            [(n, "bad_probability") for n in (4, 5, 6, 7)],
        ),
        ("# nothing\n", "strata", [(0, "empty_qrels")]),
        ("# nothing\n", "probabilities", [(0, "empty_qrels")]),
        (
            "".join(f"1 s{i} d{i} 1\n" for i in range(MAX_STRATA + 1)),
            "strata",
            [(0, "too_many_strata")],
        ),
    ],
)
def test_each_problem_has_its_line(
    content: str, design: Design, found: list[tuple[int, str]]
) -> None:
    assert problems(content, design) == found


def test_what_is_unusual_is_a_warning() -> None:
    counts = read("1 a d1 -1\n1 b d2 0\n", "strata").report.counts
    assert counts == {
        "strata": 2,
        "stratum_not_judged": 1,
    }
    longer = read("1 0 d1 1 0.5 more\n", "probabilities").report
    longer.check()
    assert longer.counts == {"probabilities": 1, "extra_columns": 1}
