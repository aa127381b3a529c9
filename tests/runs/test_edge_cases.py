"""Sixty odd pairs of qrels and run, and what EvalHub answers to each; docs/edge-cases.md says why."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.conftest import evaluate_all, upload
from tests.shared_data import alice, api, module_data

__all__ = ["alice", "api", "module_data"]

# What a file holds is read before a database is asked.
pytestmark = [pytest.mark.real_data, pytest.mark.django_db, pytest.mark.sqlite]

# AP/nDCG/RR of the topics and of their mean, as trec_eval 10 prints them.
BASE = "1:0.5833/0.6199/0.5000 2:1.0000/1.0000/1.0000 all:0.7917/0.8100/0.7500"
FIRST_ONLY = "1:0.5833/0.6199/0.5000 2:0.0000/0.0000/0.0000 all:0.2917/0.3100/0.2500"
SECOND = "1:0.5000/0.6309/0.5000 all:0.5000/0.6309/0.5000"

# What is accepted, with its values and the codes of its warnings.
ACCEPTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "00-base": (BASE, ()),
    "03-run-7-columns": (BASE, ("extra_columns",)),
    "04-run-tag-with-spaces": (BASE, ("extra_columns",)),
    "05-run-tabs": (BASE, ()),
    "06-run-mixed-double-leading-ws": (BASE, ()),
    "07-run-crlf": (BASE, ()),
    "08-qrels-crlf": (BASE, ()),
    "10-no-final-newline": (BASE, ()),
    "11-run-blank-lines": (BASE, ()),
    "12-qrels-blank-line": (BASE, ()),
    "13-run-comment": (BASE, ()),
    "15-docno-with-hash": (BASE, ()),
    "16-run-bom": (BASE, ()),
    "18-docno-utf8": (BASE, ()),
    "20-docno-utf8-nfc-vs-nfd": (
        "1:0.1667/0.3801/0.3333 2:1.0000/1.0000/1.0000 all:0.5833/0.6900/0.6667",
        (),
    ),
    "25-score-scientific": (
        "1:0.8333/0.9502/1.0000 2:1.0000/1.0000/1.0000 all:0.9167/0.9751/1.0000",
        ("rank_contradicts_score",),
    ),
    "32-rank-not-integer": (BASE, ()),
    "33-rank-contradicts-score": (
        "1:1.0000/1.0000/1.0000 2:1.0000/1.0000/1.0000 all:1.0000/1.0000/1.0000",
        ("rank_contradicts_score",),
    ),
    "34-ties-all-equal": (
        "1:0.8333/0.9502/1.0000 2:0.5000/0.6309/0.5000 all:0.6667/0.7906/0.7500",
        ("ties",),
    ),
    "35-ties-numeric-docno": ("1:1.0000/1.0000/1.0000 all:1.0000/1.0000/1.0000", ("ties",)),
    "36-float32-tie": (SECOND, ()),
    "38-large-scores-float32": (SECOND, ()),
    "40-duplicate-doc-in-qrels-same": (BASE, ("duplicate_judgement",)),
    "42-negative-relevance": (BASE, ()),
    "48-topic-missing-from-run": (FIRST_ONLY, ()),
    "48c-topic-missing-from-run": (FIRST_ONLY, ()),
    "49-topic-not-in-qrels": (BASE, ()),
    "51-topic-without-relevant": (FIRST_ONLY, ("nothing_relevant",)),
    "52-topic-leading-zero": (
        "1:0.0000/0.0000/0.0000 2:1.0000/1.0000/1.0000 all:0.5000/0.5000/0.5000",
        (),
    ),
    "57-gzip-run": (BASE, ()),
    "66-iteration-column": (BASE, ("iteration_ignored",)),
    "70-unjudged-docs": (
        "1:0.5000/0.5672/0.5000 2:0.5000/0.6309/0.5000 all:0.5000/0.5991/0.5000",
        (),
    ),
    "72-qrels-comment-trailing": (BASE, ("extra_columns",)),
    "73-no-topic-overlap": (
        "1:0.0000/0.0000/0.0000 2:0.0000/0.0000/0.0000 all:0.0000/0.0000/0.0000",
        ("no_topic_matches",),
    ),
    "74-run-trailing-spaces": (BASE, ()),
    "77-qrels-only-nonrelevant": (
        "1:0.0000/0.0000/0.0000 2:0.0000/0.0000/0.0000 all:0.0000/0.0000/0.0000",
        ("nothing_relevant",),
    ),
}

# What is refused: which file, with which code, in which lines.
REFUSED: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "01-run-5-columns-no-tag": ("run", "too_few_columns", (1, 2, 3, 4, 5)),
    "02-run-5-columns-one-line": ("run", "too_few_columns", (2,)),
    "21-score-nan": ("run", "bad_score", (2,)),
    "22-score-inf": ("run", "bad_score", (1, 2)),
    "23-score-1e400": ("run", "bad_score", (2, 3)),
    "27-score-text": ("run", "bad_score", (2,)),
    "29-score-python-underscore": ("run", "bad_score", (2,)),
    "30-score-unicode-digits": ("run", "bad_score", (2,)),
    "39-duplicate-doc-in-run": ("run", "duplicate_document", (6,)),
    "43-float-relevance": ("qrels", "bad_level", (1, 3)),
    "44-text-relevance": ("qrels", "bad_level", (1,)),
    "46-relevance-huge": ("qrels", "bad_level", (1,)),
    "47-relevance-1e6": ("qrels", "bad_level", (1,)),
    "55-qrels-5-columns": ("qrels", "ambiguous_level", (1, 2, 3, 4, 5)),
    "56-qrels-3-columns": ("qrels", "too_few_columns", (1, 2, 3)),
    "60-nul-byte": ("run", "control_character", (3,)),
    "62-form-feed-vt": ("run", "too_few_columns", (2,)),
    "65-many-tags": ("run", "mixed_tags", (3,)),
    "68-header-line": ("run", "bad_score", (1,)),
    "71-topic-id-starts-with-hash": ("both", "ambiguous_comment", (1,)),
    "75-rank-column-missing": ("run", "too_few_columns", (1, 2, 3)),
    "76-two-runs-concatenated": ("run", "duplicate_document", (6, 7, 8, 9, 10)),
    "78-crlf-tag-only-cr": ("run", "too_few_columns", (1, 2, 3, 4, 5)),
}

# Qrels of no byte at all.
EMPTY = "59-empty-qrels"

# Where trec_eval 10 gives values, or none, and EvalHub does otherwise.
DIFFERENT = {
    "12-qrels-blank-line", "16-run-bom", "21-score-nan", "22-score-inf", "23-score-1e400", "27-score-text",
    "29-score-python-underscore", "30-score-unicode-digits", "40-duplicate-doc-in-qrels-same", "43-float-relevance",
    "44-text-relevance", "48-topic-missing-from-run", "52-topic-leading-zero", "57-gzip-run", "62-form-feed-vt",
    "65-many-tags", "68-header-line", "71-topic-id-starts-with-hash", "72-qrels-comment-trailing",
}  # fmt: skip


def submit(api: APIClient, folder: Path) -> dict[str, Any]:
    """The answers to both files of a case, in a collection of its own."""
    slug = f"case-{folder.name}"
    api.post(
        "/api/v1/collections/",
        {"slug": slug, "name": folder.name, "measures": ["AP", "nDCG", "RR"]},
    )
    return {
        "qrels": upload(api, f"collections/{slug}/qrels/", (folder / "qrels").read_bytes()),
        "run": upload(api, f"collections/{slug}/runs/", (folder / "run").read_bytes()),
    }


def values_of(api: APIClient, run: str) -> str:
    body = api.get(f"/api/v1/runs/{run}/values/").json()
    rows = [(topic["topic_id"], topic["values"]) for topic in body["topics"]]
    rows.append(("all", {name: mean["mean"] for name, mean in body["means"].items()}))
    return " ".join(
        f"{topic}:" + "/".join(f"{values[name]:.4f}" for name in ("AP", "nDCG", "RR"))
        for topic, values in rows
    )


def trec_eval(folder: Path) -> dict[str, str]:
    with (folder / "results.tsv").open() as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {
            row["case"].partition(" ")[0]: row["trec_eval_10.0"].rpartition(" n=")[0]
            for row in rows
        }


def test_every_case_has_an_answer(real_data: Path) -> None:
    folders = {path.name for path in (real_data / "edge-cases").iterdir() if path.is_dir()}
    assert folders == {*ACCEPTED, *REFUSED, EMPTY}
    assert len(folders) == 60
    documented = (Path(__file__).parents[2] / "docs" / "edge-cases.md").read_text()
    assert [name for name in sorted(folders) if f"| {name} |" not in documented] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected", "codes"), [(name, *rest) for name, rest in ACCEPTED.items()], ids=ACCEPTED
)
def test_what_is_accepted_has_these_values(
    api: APIClient, real_data: Path, name: str, expected: str, codes: tuple[str, ...]
) -> None:
    answers = submit(api, real_data / "edge-cases" / name)
    assert (answers["qrels"].status_code, answers["run"].status_code) == (201, 202)
    assert evaluate_all() == 1
    warnings = [
        entry["code"]
        for answer in answers.values()
        for entry in answer.json()["warnings"]["warnings"]
    ]
    assert tuple(dict.fromkeys(warnings)) == codes
    assert values_of(api, answers["run"].json()["id"]) == expected


@pytest.mark.parametrize(
    ("name", "which", "code", "lines"),
    [(name, *rest) for name, rest in REFUSED.items()],
    ids=REFUSED,
)
def test_what_is_refused_has_this_code_and_these_lines(
    api: APIClient, real_data: Path, name: str, which: str, code: str, lines: tuple[int, ...]
) -> None:
    for kind, answer in submit(api, real_data / "edge-cases" / name).items():
        if which not in (kind, "both"):
            assert answer.status_code in (201, 202)
            continue
        assert (answer.status_code, answer.json()["code"]) == (422, code)
        assert tuple(sorted({error["line"] for error in answer.json()["errors"]})) == lines


def test_empty_qrels_are_refused(api: APIClient, real_data: Path) -> None:
    answers = submit(api, real_data / "edge-cases" / EMPTY)
    assert answers["run"].status_code == 202
    path = "/api/v1/collections/case-59-empty-qrels/qrels/"
    answer = api.post(path, b"", content_type="text/plain", CONTENT_LENGTH="0")
    assert (answer.status_code, answer.json()["code"]) == (422, "empty_qrels")


def test_every_difference_from_trec_eval_is_known(real_data: Path) -> None:
    theirs = trec_eval(real_data / "edge-cases")
    ours = {name: values for name, (values, _) in ACCEPTED.items()}
    assert {name for name in theirs if theirs[name] != ours.get(name, "")} == DIFFERENT
