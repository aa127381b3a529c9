"""`evalhub eval` beyond trec_eval: EvalHub's measures, other formats, several runs, pipes, and files that are wrong."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import zstandard

from evalhub.local.options import parser
from metrics.engine.compiled import machine_code
from metrics.engine.measures.grammar import parse_measure
from metrics.engine.trec_eval.table import ENTRIES
from runs.formats.scanning import scan
from runs.formats.scanning.warm_up import warm_up
from tests.engine.build import judged_run
from tests.engine.test_sampled import NIST, NIST_LINES, NIST_RANKINGS
from tests.local.conftest import RUN, Call

ROOT = Path(__file__).resolve().parent.parent.parent
Files = tuple[Path, Path]


@pytest.fixture
def tiny(tmp_path: Path) -> Files:
    qrels, run = tmp_path / "q", tmp_path / "r"
    qrels.write_text("1 0 a 2\n1 0 b 0\n1 0 c 1\n2 0 x 1\n")
    run.write_text("1 Q0 b 1 3 bm25\n1 Q0 a 2 2 bm25\n2 Q0 x 1 1 bm25\n")
    return qrels, run


# Measures


def test_estimates_from_samples_are_those_of_sample_eval(call: Call, tmp_path: Path) -> None:
    qrels, run = tmp_path / "prels", tmp_path / "run"
    qrels.write_text(NIST_LINES)
    run.write_text(
        "".join(
            f"{topic} Q0 {doc} 0 {-rank} t\n"
            for topic, docs in NIST_RANKINGS.items()
            for rank, doc in enumerate(docs.split())
        )
    )
    wanted = ["--format", "json", "-c", *(part for name in NIST for part in ("-m", name))]
    status, out, error = call(*wanted, "-q", "--sampling", "strata", qrels, run)
    assert (status, error) == (0, "")
    values: dict[str, list[float]] = {}
    for row in json.loads(out):
        values.setdefault(row["measure"], []).append(row["value"])
    assert values == {name: pytest.approx(expected) for name, expected in NIST.items()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["strata", "-m", "nDCG@10"], "nDCG@10 takes documents outside the sample"),
        (["strata", "-m", "map"], "trec_eval's map takes documents outside the sample"),
        (["strata"], "name estimates, such as -m statAP"),
        (["probabilities", "-m", "xinfAP"], "xinfAP needs strata"),
        (["strata", "--iteration", "ignore", "-m", "statAP"], "leave out --iteration"),
    ],
)
def test_what_a_sample_cannot_say_is_refused(
    call: Call, tiny: Files, options: list[str], message: str
) -> None:
    status, out, error = call("--sampling", *options, *tiny)
    assert (status, out) == (2, "")
    assert message in error


def test_measures_of_the_grammar_follow_under_their_canonical_names(
    call: Call, tiny: Files
) -> None:
    options = [
        "-m",
        'nDCG(gains="exp")@10',
        "-m",
        "MAP",
        "-m",
        "P_5",
        "-m",
        "recip_rank",
        "-m",
        "P@5",
    ]
    status, out, _ = call("--format", "tsv", "-q", *options, *tiny)
    view = judged_run(
        {"1": {"a": 2, "b": 0, "c": 1}, "2": {"x": 1}}, {"1": {"b": 3, "a": 2}, "2": {"x": 1}}
    )
    rows = [line.split("\t") for line in out.splitlines()[1:]]
    expected = []
    values = {
        name: parse_measure(name).compute(view)
        for name in ("RR", "nDCG(gains='exp')@10", "AP", "P@5")
    }
    for row, topic in enumerate(("1", "2")):
        expected += [(name, topic, float(values[row])) for name, values in values.items()]
    expected += [(name, "all", float(values.sum()) / 2) for name, values in values.items()]
    rest = [
        ("RR" if name == "recip_rank" else name, topic, float(value))
        for _, name, topic, value in rows
    ]
    assert (status, rest) == (0, expected)


def test_the_level_is_the_default_of_every_measure_and_shown_in_its_name(
    call: Call, tiny: Files
) -> None:
    options = ["-m", "AP", "-m", "AP(rel=1)", "-m", "nDCG@10", "-m", "RBP(p=0.5)", "-m", "map"]
    _, out, _ = call("-l", 2, *options, *tiny)
    names = [line.split()[0] for line in out.splitlines()]
    assert names == ["map", "AP(rel=2)", "AP", "nDCG@10", "RBP(p=0.5)"]
    assert [line.split()[2] for line in out.splitlines()][:3] == ["0.2500", "0.2500", "0.6250"]


def test_a_topic_without_a_value_has_no_line_and_no_number(call: Call, tiny: Files) -> None:
    """Topic 1 has a relevant document that was not retrieved, so its average search length is undefined."""
    status, out, _ = call("-q", "-m", "ASL", *tiny)
    assert (status, [line.split("\t")[1:] for line in out.splitlines()]) == (
        0,
        [["2", "1.0000"], ["all", "1.0000"]],
    )
    assert (
        call("--format", "tsv", "-q", "-n", "-m", "ASL", *tiny)[1]
        .splitlines()[1]
        .endswith("ASL\t1\t")
    )
    assert json.loads(call("--format", "json", "-q", "-m", "ASL", *tiny)[1])[0]["value"] is None


def test_figures_of_other_measures_are_over_the_topics_that_trec_eval_takes(
    call: Call, tiny: Files
) -> None:
    qrels, run = tiny
    run.write_text("2 Q0 x 1 1 bm25\n")
    options = ["--format", "tsv", "-m", "AP", "-m", "map", "-m", "NumQ", "-m", "num_q"]
    figures = [line.rpartition("\t")[2] for line in call(*options, qrels, run)[1].splitlines()[1:]]
    complete = [
        line.rpartition("\t")[2] for line in call("-c", *options, qrels, run)[1].splitlines()[1:]
    ]
    assert (figures, complete) == (["1", "1.0", "1.0", "1.0"], ["2", "0.5", "0.5", "2.0"])


def test_the_first_parameters_of_a_measure_hold_and_no_measure_comes_twice(
    call: Call, tiny: Files
) -> None:
    _, out, _ = call("-m", "P.5", "-m", "official", "-m", "P.10", "-m", "AP", "-m", "MAP", *tiny)
    names = [line.split()[0] for line in out.splitlines()]
    assert [name for name in names if name.startswith("P_")] == ["P_5"]
    assert names.count("AP") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "nosuch"], "unknown measure 'nosuch'"),
        (["-m", "all_prefs"], "preferences and judgement groups are not read here"),
        (["-m", "map_avgjg"], "preferences and judgement groups are not read here"),
        (["-m", "P.0"], "'0' is not a whole number from 1 to"),
        (["-m", "P."], "'' is not a whole number from 1 to"),
        (["-m", "P.5,5"], "names a cutoff twice"),
        (["-m", "map.100"], "map takes no parameters"),
        (["-m", "iprec_at_recall.x"], "'x' is not a number"),
        (["-m", "Rprec_mult.-1"], "a share is 0 or more"),
        (["-m", "utility.1,2"], "takes 4 numbers, not 2"),
        (["-m", "ndcg.1"], "write level=gain"),
        (["-m", "ndcg.1=2,1=3"], "each once"),
        (["-m", "ndcg.1=-2"], "a gain is a number from 0"),
        (["-m", "rbp.p=1"], "p is a number above 0 and below 1"),
        (["-m", "rbp", "--compat", "9.0.8"], "trec_eval 9.0.8 has no rbp"),
        (["-m", "P@0"], "the cutoff of P is a whole number"),
        (["-l", "-1"], "'-1' is not a whole number from 0 to 1000"),
        (["-M", "0"], "'0' is not a whole number from 1"),
        (["-R", "prefs"], "invalid choice: 'prefs'"),
        (["-D", "1"], "unrecognized arguments: -D"),
        (["--format", "xml"], "invalid choice: 'xml'"),
        (["-Z", "means", "-m", "AP"], "AP is not one of them"),
    ],
)
def test_wrong_options_are_told_with_status_2(
    call: Call, tiny: Files, arguments: list[str], message: str
) -> None:
    status, out, err = call(*arguments, *tiny)
    assert (status, out) == (2, "")
    assert err.startswith("usage: evalhub eval ")
    assert message in err


def test_options_may_stand_anywhere_in_long_form_too(call: Call, tiny: Files) -> None:
    qrels, run = tiny
    first = call("-qc", "-l2", "-mP.1", "-M5", qrels, run, run)
    spelled = [
        "--query_eval_wanted",
        "--level_for_rel=2",
        "--complete_rel_info_wanted",
        "--measure",
        "P.1",
    ]
    assert call(qrels, *spelled, run, "--Max_retrieved_per_topic", 5, run) == first
    assert first[1].count("P_1") == 6


# Formats and several runs


def test_several_runs_follow_each_other_and_a_wrong_one_is_left_out(
    call: Call, tiny: Files, tmp_path: Path
) -> None:
    qrels, run = tiny
    (tmp_path / "wrong").write_text("1 Q0 a 1 high t\n")
    alone = call("-q", qrels, run)[1]
    status, out, err = call("-q", qrels, run, tmp_path / "wrong", run)
    assert (status, out) == (1, alone + alone)
    assert err == f"{tmp_path / 'wrong'}:1: bad_score: 'high' is not a finite decimal number\n"


def test_records_name_the_run_by_its_file_at_full_precision(call: Call, files: Files) -> None:
    qrels, run = files
    options = [
        "-c",
        "-q",
        "-m",
        "runid",
        "-m",
        "num_ret",
        "-m",
        "recip_rank",
        "-m",
        "relstring",
        "-m",
        "ndcg_cut.10",
    ]
    _, tsv, _ = call("--format", "tsv", *options, qrels, run, run)
    _, text, _ = call("--format", "json", *options, qrels, run, run)
    header, *rows = (line.split("\t") for line in tsv.splitlines())
    records = json.loads(text)
    assert header == ["run", "measure", "topic", "value"] == list(records[0])
    assert rows == [[str(value) for value in record.values()] for record in records]
    assert {row[0] for row in rows} == {str(run)}
    half = rows[: len(rows) // 2]
    assert half == rows[len(rows) // 2 :]
    assert half[:3] == [[str(run), "num_ret", "10", "4"], [str(run), "recip_rank", "10", "1.0"],
                        [str(run), "relstring", "10", "2-.0"]]  # fmt: skip
    by_topic = [float(row[3]) for row in half if row[1] == "ndcg_cut_10" and row[2] != "all"]
    assert (
        float(next(row[3] for row in half if row[1:3] == ["ndcg_cut_10", "all"]))
        == sum(by_topic) / 4
    )


def test_formats_without_a_run_are_empty_ones(call: Call, tiny: Files) -> None:
    qrels, missing = tiny[0], tiny[0].with_name("missing")
    assert call("--format", "json", qrels, missing)[:2] == (1, "[]\n")
    assert call("--format", "tsv", qrels, missing)[:2] == (1, "run\tmeasure\ttopic\tvalue\n")
    assert call(qrels, missing)[:2] == (1, "")


# Files


def test_every_problem_has_its_line_as_the_service_says_it(
    call: Call, tiny: Files, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("1 Q0 a 1 high t\n1 Q0 b\n1 Q0 c 1 1 t\n1 Q0 c 1 1 t\n")
    status, out, err = call(tiny[0], wrong)
    assert (status, out) == (1, "")
    assert err.splitlines() == [
        f"{wrong}:1: bad_score: 'high' is not a finite decimal number",
        f"{wrong}:2: too_few_columns: a line needs 6 columns separated by spaces or tabs; three "
        "columns, as of MS MARCO, are converted by evh convert run FILE",
        f"{wrong}:4: duplicate_document: document 'c' is listed twice for topic '1', first in line 3",
    ]


def test_problems_beyond_the_first_fifty_are_counted(
    call: Call, tiny: Files, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("1 Q0 a 1 high t\n" * 3 + "1 Q0\n" * 60 + "1 Q0 a 1 1 t more\n")
    lines = call("--verbose", tiny[0], wrong)[2].splitlines()
    assert [
        line.startswith(f"{wrong}:{number}: too_few") for number, line in enumerate(lines[:50], 4)
    ] == [True] * 50
    assert lines[50:] == [f"{wrong}: too_few_columns: 10 more", f"{wrong}: bad_score: 3 more"]


def test_wrong_judgements_stop_the_command(call: Call, tiny: Files) -> None:
    qrels, run = tiny
    qrels.write_text("1 0 a 1\n1 0 a 2\n")
    message = f"{qrels}:2: conflicting_judgement: document 'a' has level 2 here and 1 in line 1\n"
    assert call("--format", "json", qrels, run) == (1, "", message)


def test_files_that_cannot_be_read_are_named(call: Call, tiny: Files, tmp_path: Path) -> None:
    qrels, run = tiny
    (tmp_path / "empty").write_text("")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"1 Q0 a 1 1 t\n")[:-4])
    (tmp_path / "other").write_text("9 Q0 a 1 1 t\n")
    (tmp_path / "archive").write_bytes(b"PK\x03\x04")
    for name, message in (
        ("missing", "No such file or directory"),
        (".", "Is a directory"),
        ("empty", "empty_run: the file contains no run"),
        ("cut.gz", "bad_gzip: the gzip data is truncated, damaged or not readable"),
        ("archive", "unsupported_media_type: zip files are not read"),
        ("other", "error: none of the run's topics has judgements"),
    ):
        status, out, err = call(qrels, tmp_path / name)
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert err.startswith(f"{tmp_path / name}: {message}")
    assert (
        call(tmp_path / "empty", run)[2]
        == f"{tmp_path / 'empty'}: empty_qrels: the file contains no judgements\n"
    )


def test_warnings_are_shown_on_demand(call: Call, tiny: Files) -> None:
    qrels, run = tiny
    run.write_text("1 Q0 a 1 1 x\n1 Q0 b 2 1 y more\n2 Q0 x 1 1 y\n")
    assert call("-m", "runid", qrels, run) == (0, "runid                 \tall\ty\n", "")
    status, _, err = call("--verbose", "-m", "runid", qrels, run)
    assert status == 0
    assert err.splitlines() == [
        f"{run}:2: warning: extra_columns: columns after the first 6 are ignored",
        f"{run}:2: warning: mixed_tags: tag 'y' differs from 'x' above; the last one is used",
        f"{run}: warning: ties: 2 documents have tied scores; ties are broken by document id",
    ]


def test_the_iteration_column_is_for_measures_of_subtopics(call: Call, tiny: Files) -> None:
    qrels, run = tiny
    qrels.write_text("1 0.5 a 1\n1 1 b 1\n")
    run.write_text("1 Q0 a 1 1 x\n")
    message = f"{qrels}: warning: no subtopics for StRecall@1: each topic is its only one; see --iteration\n"
    for options in ((), ("--iteration", "round"), ("--iteration", "ignore")):
        assert call(*options, "-m", "StRecall@1", qrels, run) == (
            0,
            "StRecall@1            \tall\t1.0000\n",
            message,
        )
    subtopics = call("--iteration", "subtopic", "-m", "StRecall@1", qrels, run)
    assert subtopics == (0, "StRecall@1            \tall\t0.5000\n", "")
    assert call("-m", "map", qrels, run)[2] == ""
    qrels.write_text("1 one a 1\n1 two a 0\n1 two b 1\n")
    assert call("-m", "StRecall@1", qrels, run) == subtopics
    assert call("--iteration", "x", qrels, run)[0] == 2


def test_means_and_deviations_are_checked_line_by_line(
    call: Call, tiny: Files, tmp_path: Path
) -> None:
    means = tmp_path / "means"
    means.write_text("1 map 0.5\n\n1 map nan 1\n1 map 0.5 -1\n")
    status, out, err = call("-Z", means, *tiny)
    assert (status, out) == (1, "")
    assert [line.split(": ")[:2] for line in err.splitlines()] == [
        [f"{means}:1", "too_few_columns"], [f"{means}:3", "bad_score"], [f"{means}:4", "bad_score"],
    ]  # fmt: skip
    means.write_text("1 map 0.5 0.25\n2 map 1 0\n2 recip_rank 0 0\n")
    out = call("-q", "-Z", means, "-m", "map", "-m", "recip_rank", "-m", "num_q", *tiny)[1]
    assert [line.split("\t")[2] for line in out.splitlines()] == [
        "-1.0000", "-1000000.0000", "0.0000", "-1000000.0000", "2.0000", "-0.5000", "-1000000.0000",
    ]  # fmt: skip


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_standard_input_and_pipes_are_read(
    call: Call, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: object
) -> None:
    """Twice, as the lines of topics are scattered."""
    assert callable(pack)
    packed, expected = pack(RUN.encode()), call("-c", *files)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    assert call("-c", files[0], "-") == expected
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(packed,))
    writer.start()
    assert call("-c", files[0], pipe) == expected
    writer.join()


# The process


def start(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "evalhub", "eval", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_reader_that_has_enough_ends_it_quietly(tiny: Files) -> None:
    process = start("-q", "-m", "all_trec", tiny[0], *[tiny[1]] * 30)
    assert process.stdout
    assert process.stderr
    process.stdout.read(100)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), err) == (141, b"")


def test_the_process_ends_with_its_status_and_all_that_it_has_said(
    tiny: Files, tmp_path: Path
) -> None:
    """It ends without Python's own end, which would write what is still in its buffers."""
    for arguments, status, message in (
        (["-q", *tiny], 0, b""),
        ([tiny[0], tmp_path / "absent"], 1, b"No such file"),
        (["--nothing", *tiny], 2, b"--nothing"),
    ):
        process = start(*arguments)
        out, err = process.communicate()
        assert process.returncode == status
        assert message in err
        assert out.endswith(b"\n") is (status == 0)
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "evalhub", "eval", *map(str, tiny)]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        b"evalhub eval: cannot write the output: No space left on device\n",
    )


LOADED = """
import sys
from evalhub.local.eval import main
try:
    main(sys.argv)
finally:
    print(sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def all_kernels_but(name: str, folder: Path) -> Path:
    """A folder with all compiled kernels but one: to compile that one takes a fifth of the time of all."""
    for known in machine_code._folders():
        for path in Path(known).glob("*.o"):
            if f".{name}." not in path.name:
                shutil.copy(path, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("large", [True, False])
@pytest.mark.parametrize("compiled", [True, False])
def test_neither_the_compiler_nor_the_service_is_loaded(
    files: Files, tmp_path: Path, large: bool, compiled: bool
) -> None:
    """Django, Numba, SciPy and the YAML reader each take longer than evaluating a small run; the file is plain text."""
    qrels, run = files
    if large:
        run.write_text(RUN + f"# {'-' * 8000}\n" * (scan.PLAIN_BYTES // 8000))
    warm_up()
    folder = {} if compiled else {"EVALHUB_KERNELS": str(all_kernels_but("judging.fill", tmp_path))}
    done = subprocess.run(
        [sys.executable, "-c", LOADED, "eval", "-c", "-q", "-m", "all_trec", qrels, run],
        cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ, **folder},
    )  # fmt: skip
    assert ("'numba'" in done.stderr) is (large and not compiled)
    for name in (
        "django",
        "rest_framework",
        "celery",
        *([] if large else ["scipy", "yaml", "isal", "zstandard"]),
    ):
        assert f"'{name}'" not in done.stderr
    assert done.stdout.count("relstring") == 4


def test_help_names_every_option_of_trec_eval_that_is_taken() -> None:
    text = parser().format_help()
    for option in (
        "-h",
        "-v",
        "-q",
        "-m",
        "-c",
        "-l",
        "-n",
        "-J",
        "-M",
        "-N",
        "-Z",
        "--compat",
        "--format",
    ):
        assert f"\n  {option}" in text
    for example in ("P", "ndcg_cut", "set_F", "utility", "iprec_at_recall"):
        assert example in ENTRIES
        assert f"{example}." in text
