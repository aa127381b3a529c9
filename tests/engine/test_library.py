"""`metrics.engine.evaluate` gives what the service gives, to the last bit, and reads and refuses the same files."""

from __future__ import annotations

import doctest
import gzip
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from metrics import engine
from metrics.engine import InputError, MeasureError, evaluate, evaluation
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.judging import ScoreType, judge
from metrics.engine.measures import MEASURES
from metrics.engine.measures.definition import Cutoff
from metrics.engine.measures.grammar import parse_measure
from metrics.engine.trec_eval.files import read_qrels, read_run
from runs.errors import FileReport, InvalidFile
from runs.formats import trec_qrels, trec_run
from runs.formats.compression import in_memory
from runs.formats.limits import DEFAULT_LIMITS
from tests.conftest import evaluate_all, upload
from tests.engine.test_sampled import judged
from tests.local.conftest import QRELS, RUN
from tests.readers import of_a_reader
from tests.reliability.servers import ROOT
from tests.runs.test_trec_run_properties import file

SUBTOPICS = "1 b d1 1\n1 a d1 1\n1 a d2 2\n1 c d3 0\n2 a d4 1\n2 a d5 1\n1 c d2 1\n3 z d6 0\n"
COVERING = "1 Q0 d3 1 3 t\n1 Q0 d2 2 2 t\n2 Q0 d5 1 1 t\n1 Q0 d1 1 2 t\n1 Q0 d9 1 1 t\n"
STRATA = "1 top d1 2\n1 top d2 0\n1 rest d3 1\n1 rest d4 -1\n2 all d1 1\n2 all d9 -1\n"
DRAWN = "1 0 d1 2 1\n1 0 d2 0 .5\n1 0 d3 1 .25\n2 0 d1 1 .5\n"
_CUTOFFS = {Cutoff.NONE: "", Cutoff.OPTIONAL: "@3", Cutoff.REQUIRED: "@3", Cutoff.SHARE: "@0.5"}


def every_measure() -> list[str]:
    """A name of every measure of the table, with the cutoff and the parameters that it needs."""
    names = []
    for name, definition in MEASURES.items():
        examples = [
            f"{parameter.name}={parameter.example}"
            for parameter in definition.parameters
            if parameter.example
        ]
        names.append(f"{name}({','.join(examples)}){_CUTOFFS[definition.cutoff]}")
    return names


def by_the_readers(
    qrels: bytes, run: bytes, scores: ScoreType = "float64"
) -> tuple[list[str], JudgedRun]:
    """The topics and the judged run as the service's readers and its judging make them."""
    judged = trec_qrels.read_qrels(lambda: in_memory(qrels, DEFAULT_LIMITS), seed=5)
    judged.report.check()
    summary, view = trec_run.use_run(
        lambda: in_memory(run, DEFAULT_LIMITS),
        lambda blocks: judge(blocks, judged.judgements, scores),
        seed=5,
    )
    summary.report.check()
    return [topic.decode() for topic in judged.judgements.topic_ids], view


def assert_as_the_readers(
    qrels: bytes, run: bytes, measures: list[str], folder: Path, scores: ScoreType = "float64"
) -> None:
    (folder / "qrels").write_bytes(qrels)
    (folder / "run").write_bytes(gzip.compress(run))
    result = evaluate(
        folder / "qrels", str(folder / "run"), measures, scores=scores, documents=1000
    )
    topics, view = by_the_readers(qrels, run, scores)
    assert list(result.topics) == topics
    for name in measures:
        measure = parse_measure(name, 1000)
        values = measure.compute(view)
        assert np.array_equal(list(result.values[name].values()), values, equal_nan=True), name
        mean, _ = measure.aggregate(values, view)
        assert result.means[name] == mean or (mean is None and math.isnan(result.means[name])), name
        reasons = measure.why_undefined(view, values)
        assert result.undefined[name] == {
            t: why for t, why in zip(topics, reasons, strict=True) if why
        }, name
        assert (result.measures[name], result.aggregates[name]) == (
            measure.name,
            measure.aggregate_name,
        )


def test_the_examples_of_the_docstring_and_of_the_page_are_true() -> None:
    assert doctest.testmod(evaluation).attempted > 5
    assert doctest.testmod(evaluation).failed == 0
    page = doctest.testfile(str(ROOT / "docs/library.md"), module_relative=False)
    assert (page.attempted > 10, page.failed) == (True, 0)


@pytest.mark.parametrize("scores", ["float64", "float32"])
@pytest.mark.parametrize(("qrels", "run"), [(QRELS, RUN), (SUBTOPICS, COVERING)])
def test_every_measure_has_the_values_of_the_service(
    qrels: str, run: str, scores: ScoreType, tmp_path: Path
) -> None:
    """Ties, one of them in float32 only, scattered and missing topics, levels below 0, unjudged documents."""
    assert_as_the_readers(qrels.encode(), run.encode(), every_measure(), tmp_path, scores)


def test_a_dictionary_gives_what_its_file_gives(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text(QRELS)
    (tmp_path / "run").write_text(RUN)
    qrels: dict[str, dict[str, Any]] = {}
    run: dict[str, dict[str, Any]] = {}
    for topic, _, document, level in (line.split() for line in QRELS.splitlines()):
        qrels.setdefault(topic, {})[document] = np.int8(level)
    for topic, _, document, _, score, _ in (line.split() for line in RUN.splitlines()):
        run.setdefault(topic, {})[document] = np.float64(score)
    names = ["AP", "nDCG@10", "RR", "P@2", "NumRet"]
    from_files = evaluate(tmp_path / "qrels", tmp_path / "run", names, scores="float32")
    assert evaluate(qrels, run, names, scores="float32") == from_files
    assert (from_files.unanswered, from_files.unjudged) == (("8",), ("99",))
    assert from_files.values["RR"] == {"10": 0.5, "9": 0.5, "8": 0.0, "7": 0.0}
    assert from_files.aggregates["NumRet"] == "sum"
    assert evaluate(qrels, run, names).values["RR"]["10"] == 1.0
    turned = {
        topic: dict(reversed(documents.items())) for topic, documents in reversed(run.items())
    }
    assert evaluate(qrels, turned, names, scores="float32") == from_files


@pytest.mark.slow
def test_the_service_itself_answers_the_same(api: APIClient, tmp_path: Path) -> None:
    names = ["AP", "nDCG(gains='exp')@10", "P(rel=2)@1", "ESL", "alpha_nDCG@5", "gm_map", "NumRet"]
    assert (
        api.post(
            "/api/v1/collections/", {"slug": "one", "name": "One", "measures": names}
        ).status_code
        == 201
    )
    for place, (qrels, run) in enumerate(
        ((QRELS, RUN.replace("first", "x")), (SUBTOPICS, COVERING)), 1
    ):
        (tmp_path / "qrels").write_text(qrels)
        (tmp_path / "run").write_text(run)
        assert upload(api, "collections/one/qrels/", qrels).status_code == 201
        evaluate_all()
        sent = upload(api, "collections/one/runs/", run, tag=f"run{place}")
        assert sent.status_code == 202, sent.content
        evaluate_all()
        answer = api.get(f"/api/v1/runs/{sent.json()['id']}/values/").json()
        result = evaluate(tmp_path / "qrels", tmp_path / "run", names)
        assert list(result.measures.values()) == list(answer["means"])
        for name, canonical in result.measures.items():
            theirs = {row["topic_id"]: row["values"][canonical] for row in answer["topics"]}
            ours = {
                topic: None if math.isnan(value) else value
                for topic, value in result.values[name].items()
            }
            assert ours == theirs, name
            assert answer["means"][canonical]["mean"] == (
                None if math.isnan(result.means[name]) else result.means[name]
            )
            undefined = {
                row["topic_id"]: row["undefined"].get(canonical) for row in answer["topics"]
            }
            assert result.undefined[name] == {
                topic: reason for topic, reason in undefined.items() if reason
            }


@pytest.mark.slow
@pytest.mark.real_data
def test_a_real_run_has_the_values_of_the_readers_and_of_the_command(
    real_data: Path, tmp_path: Path
) -> None:
    qrels, run = (
        real_data / "robust03/qrels/robust03_qrels.txt",
        real_data / "robust03/runs/input.SABIR03BASE.gz",
    )
    measures = [
        "AP",
        "nDCG@10",
        "nDCG",
        "RR",
        "P@10",
        "R@100",
        "Rprec",
        "Bpref",
        "RBP",
        "ESL",
        "Judged@10",
    ]
    assert_as_the_readers(qrels.read_bytes(), gzip.decompress(run.read_bytes()), measures, tmp_path)
    result = evaluate(qrels, run, measures)
    command = [sys.executable, "-m", "evalhub", "eval", "-c", "-q", "--format", "tsv"]
    command += [part for measure in measures for part in ("-m", measure)]
    done = subprocess.run(
        [*command, str(qrels), str(run)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    rows = [line.split("\t")[1:] for line in done.stdout.splitlines()[1:]]
    canonical = {canonical: name for name, canonical in result.measures.items()}
    theirs = {
        (canonical[measure], topic): float(value)
        for measure, topic, value in rows
        if value and topic != "all"
    }
    assert theirs == {
        (measure, topic): value
        for measure, values in result.values.items()
        for topic, value in values.items()
        if not math.isnan(value)
    }


def problems(report: FileReport) -> list[int]:
    return sorted(problem.line for problem in report.problems)


def read_alike(content: bytes, path: Path, run: bool) -> None:
    """Both readers take the file, with the same rows, or both refuse it, in the same line first."""
    path.write_bytes(content)
    opener = lambda: in_memory(content, DEFAULT_LIMITS)  # noqa: E731
    report = (
        trec_run.use_run(opener, list)[0].report if run else trec_qrels.read_qrels(opener).report
    )
    try:
        rows: Any = read_run(path) if run else read_qrels(path)
    except InputError as error:
        line = int(str(error).removeprefix(f"{path}:").partition(":")[0])
        assert problems(report)[:1] == [line], (report.problems, error)
        return
    assert problems(report) == ([] if any(rows.values()) else [0])


@pytest.mark.slow
@of_a_reader
@given(content=file())
def test_the_library_reads_and_refuses_the_runs_that_the_service_does(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    read_alike(content, tmp_path_factory.getbasetemp() / "made-up", run=True)


LEVEL = st.sampled_from(
    ["0", "1", "2", "-1", "+1", "1.0", "1e0", "1001", "-1000", "x", "", "1 7", "1 x", "9" * 40]
)
JUDGED = st.builds("{} {} {} {}".format, st.sampled_from(["1", "2", "#1", "#"]), st.sampled_from("0ab"),
                   st.sampled_from(["d1", "d2", "d\x7f", "d3"]), LEVEL)  # fmt: skip


@pytest.mark.slow
@of_a_reader
@given(lines=st.lists(JUDGED, max_size=8))
def test_the_library_reads_and_refuses_the_judgements_that_the_service_does(
    lines: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    read_alike("\n".join(lines).encode(), tmp_path_factory.getbasetemp() / "made-up", run=False)


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from("12"),
            st.sampled_from("abc"),
            st.sampled_from("wxyz"),
            st.integers(-1, 2),
        ),
        min_size=1,
        unique_by=lambda row: row[:3],
    ),
    ranked=st.dictionaries(
        st.tuples(st.sampled_from("123"), st.sampled_from("wxyzuv")), st.integers(0, 2), min_size=1
    ),
)
def test_made_up_judgements_by_subtopic_have_the_values_of_the_service(
    rows: list[tuple[str, str, str, int]],
    ranked: dict[tuple[str, str], int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    qrels = "".join(f"{topic} {iteration} {doc} {level}\n" for topic, iteration, doc, level in rows)
    run = "".join(f"{topic} Q0 {doc} 0 {score} t\n" for (topic, doc), score in ranked.items())
    names = ["AP", "nDCG", "StRecall@2", "alpha_nDCG@3", "ERR_IA@3", "nNRBP", "AP_IA"]
    assert_as_the_readers(qrels.encode(), run.encode(), names, tmp_path_factory.getbasetemp())


@pytest.mark.real_data
def test_odd_files_are_taken_or_refused_as_the_service_does(
    real_data: Path, tmp_path: Path
) -> None:
    differing = []
    for path in sorted((real_data / "edge-cases").glob("*/[qr]*")):
        content = path.read_bytes()
        kind = trec_run.use_run if path.name.startswith("run") else trec_qrels.read_qrels
        try:
            if kind is trec_run.use_run:
                report = trec_run.use_run(lambda c=content: in_memory(c, DEFAULT_LIMITS), list)[
                    0
                ].report
            else:
                report = trec_qrels.read_qrels(
                    lambda c=content: in_memory(c, DEFAULT_LIMITS)
                ).report
            refused = bool(report.problems)
        except InvalidFile:
            refused = True
        try:
            ours = not any((read_run if kind is trec_run.use_run else read_qrels)(path).values())
        except InputError:
            ours = True
        if ours != refused:
            differing.append(str(path))
    assert differing == []


QRELS_OF = {"1": {"a": 1}}


@pytest.mark.parametrize(
    ("qrels", "run", "says"),
    [
        ({1: {"a": 1}}, {"1": {"a": 1}}, "a topic id is text of one character or more, not 1"),
        (
            {"1": {"a": 1.5}},
            {"1": {"a": 1}},
            "the level of document 'a' of topic '1' is 1.5, which is not a whole",
        ),
        (
            {"1": {"a": 1001}},
            {"1": {"a": 1}},
            "is 1001, which is not a whole number from -1000 to 1000",
        ),
        (
            {"1": ["a"]},
            {"1": {"a": 1}},
            "the judgements of topic '1' must be a dictionary, not list",
        ),
        ({}, {"1": {"a": 1}}, "the judgements are empty"),
        ({"1": {}}, {"1": {"a": 1}}, "the judgements are empty"),
        (
            QRELS_OF,
            {"1": {"a": "2"}},
            "the score of document 'a' of topic '1' is '2', which is not a finite number",
        ),
        (QRELS_OF, {"1": {"a": math.inf}}, "is inf, which is not a finite number"),
        (QRELS_OF, {"1": {"": 1}}, "a document id is text of one character or more, not ''"),
        (QRELS_OF, [("1", "a", 1)], "the run must be a dictionary, not list"),
        (QRELS_OF, {"1": {}}, "the run is empty"),
    ],
)
def test_a_dictionary_that_cannot_be_read_is_refused_by_its_place(
    qrels: Any, run: Any, says: str
) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        evaluate(qrels, run, "AP")
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"1 Q0 a 1 2 t\n1 Q0 b 1\n", "run:2: a line needs 6 columns"),
        (b"1 Q0 a 1 high t\n", "run:1: 'high' is not a finite decimal number"),
        (
            b"\n# x\n1 Q0 a 1 2 t\n1 Q0 a 2 1 t\n",
            "run:4: document 'a' is listed twice for topic '1'",
        ),
        (b"1 Q0 a 1 2 t\n1 Q0 \xff 1 2 t\n", "run:2: byte 0xff is not UTF-8"),
        (b"1 Q0 a\0 1 2 t\n", "run:1: a control character"),
        (gzip.compress(b"1 Q0 a 1 2 t\n", mtime=0)[:-3], "run: the gzip data is truncated"),
        (b"\x28\xb5\x2f\xfd....", "run: this is a Zstandard file; plain text and gzip are read"),
        (b"\x5a\x2a\x4d\x18....", "run: this is a Zstandard file; plain text and gzip are read"),
        ("1 Q0 a 1 2 t".encode("utf-16"), "run: the file is UTF-16"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_its_line(
    tmp_path: Path, content: bytes, says: str
) -> None:
    (tmp_path / "run").write_bytes(content)
    with pytest.raises(InputError) as refused:
        evaluate(QRELS_OF, tmp_path / "run", "AP")
    assert f"{tmp_path}/{says}" in str(refused.value)


def test_what_is_asked_for_is_checked() -> None:
    run = {"1": {"a": 1.0}}
    with pytest.raises(MeasureError, match="unknown measure 'nope'"):
        evaluate(QRELS_OF, run, ["AP", "nope"])
    for nothing in ("", " , ", []):
        with pytest.raises(MeasureError, match="name at least one"):
            evaluate(QRELS_OF, run, nothing)
    with pytest.raises(InputError, match="scores is float64 or float32"):
        evaluate(QRELS_OF, run, "AP", scores="double")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="iteration is subtopic or ignore"):
        evaluate(QRELS_OF, run, "AP", iteration="round")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        evaluate(QRELS_OF, "/nowhere/at/all", "AP")


def test_names_are_understood_as_elsewhere_and_kept_as_they_were_asked_for() -> None:
    result = evaluate(
        {"1": {"a": 1, "b": 0}}, {"1": {"b": 2, "a": 1}}, "map,P_5 ndcg_cut_10, P(rel=1)@5 AP"
    )
    assert list(result.means) == ["map", "P_5", "ndcg_cut_10", "P(rel=1)@5", "AP"]
    assert list(result.measures.values()) == ["AP", "P@5", "nDCG@10", "P@5", "AP"]
    assert result.means["map"] == result.means["AP"] == 0.5
    assert evaluate({"1": {"a": 1}}, {"1": {"a": 1}}, "NormRecall", documents=50).measures == {
        "NormRecall": "NormRecall(documents=50)"
    }


def test_the_iteration_says_whether_a_topic_has_subtopics(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("1 x a 1\n1 y b 1\n")
    values = {
        how: evaluate(tmp_path / "qrels", {"1": {"a": 1.0}}, "StRecall@1", iteration=how).means[
            "StRecall@1"
        ]
        for how in (None, "subtopic", "ignore")
    }
    assert values == {None: 1.0, "subtopic": 0.5, "ignore": 1.0}


LOADED = """
import sys
from metrics.engine import evaluate
evaluate({"1": {"a": 1}}, {"1": {"a": 1.0}}, "AP nDCG@10")
print(sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)))
"""


def test_nothing_but_numpy_is_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = {name for name in eval(done.stdout) if not name.startswith("_")}
    assert loaded - {"sitecustomize", "usercustomize", "distutils"} == {"metrics", "numpy"}


def test_every_public_name_is_there_and_no_other() -> None:
    assert {name for name in engine.__all__ if getattr(engine, name, None) is None} == set()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        engine.nothing  # noqa: B018


@pytest.mark.parametrize(("lines", "design"), [(STRATA, "strata"), (DRAWN, "probabilities")])
def test_samples_are_those_of_files(lines: str, design: Any) -> None:
    ranked = {"1": {"d4": 4.0, "d1": 3.0, "x": 2.0, "d3": 1.0}, "2": {"d9": 2.0, "d1": 1.0}}
    qrels: dict[str, dict[str, int]] = {}
    sample: dict[str, dict[str, Any]] = {}
    for topic, second, doc, level, *fifth in map(str.split, lines.splitlines()):
        qrels.setdefault(topic, {})[doc] = int(level)
        sample.setdefault(topic, {})[doc] = float(fifth[0]) if fifth else second

    orders = {
        topic: sorted(docs, key=docs.__getitem__, reverse=True) for topic, docs in ranked.items()
    }
    view = judged(lines, orders, design)
    names = [f"{name}{end}" for name in ("infNDCG", "statAP") for end in ("", "_se")]
    names += ["xinfAP", "xinfAP_se"] * (design == "strata")
    found = evaluate(qrels, ranked, names, **{design: sample})
    for name in names:
        assert list(found.values[name].values()) == parse_measure(name).compute(view).tolist()

    with pytest.raises(MeasureError, match="takes documents outside the sample"):
        evaluate(qrels, ranked, "AP", **{design: sample})


@pytest.mark.parametrize(
    ("sampling", "message"),
    [
        ({"strata": {"1": {"a": "top"}}}, "strata lacks document 'b' of topic '1'"),
        ({"strata": {"1": {"a": "top", "b": "top", "c": "top"}}}, "'c' of topic '1' has no level"),
        ({"strata": {"2": {"a": "top"}}}, "'a' of topic '2' has no level"),
        ({"probabilities": {"1": {"a": 1, "b": 0.0}}}, "from 0.000001 to 1, not 0.0"),
        ({"probabilities": {"1": {"a": 1, "b": "x"}}}, "from 0.000001 to 1, not 'x'"),
        ({"strata": {}, "probabilities": {}}, "not both"),
        ({"strata": []}, "strata must be a dictionary"),
    ],
)
def test_a_sampling_that_does_not_fit_is_refused(sampling: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate({"1": {"a": 1, "b": 0}}, {"1": {"a": 1.0}}, "statAP", **sampling)
