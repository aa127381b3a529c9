"""`evalhub eval` prints what trec_eval prints, byte for byte: on its own test files, real runs, and small odd ones."""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import pytest

from tests.local.conftest import Call

# trec_eval's own tests, as its Makefile calls them (version 10).
OFFICIAL = [
    ("out.test", "qrels.test results.test"),
    ("out.test", "qrels.test.with-comments results.test"),
    ("out.comment.test", "qrels.comment.test results.comment.test"),
    ("out.test.a", "-m all_trec qrels.test results.test"),
    ("out.test.aq", "-m all_trec -q qrels.test results.test"),
    ("out.test.aqc", "-m all_trec -q -c qrels.test results.trunc"),
    ("out.test.aqcM", "-m all_trec -q -c -M100 qrels.test results.trunc"),
    ("out.test.aql", "-m all_trec -mrelstring.20 -q -l2 qrels.rel_level results.test"),
    (
        "out.test.meas_params",
        "-q -miprec_at_recall..10,.20,.25,.75,.50 -m P.5,7,3 -m recall.20,2000 -m Rprec_mult.5.0,0.2,0.35 "
        "-mutility.2,-1,0,0 -m 11pt_avg..25,.5,.75 -mndcg.1=3,2=9,4=4.5 -mndcg_cut.10,20,23.4 -msuccess.2,5,20 "
        "qrels.test results.test",
    ),
    ("out.test.aqZ", "-q -m all_trec -Z zscores_file qrels.test results.test"),
]
VERSIONS = {"10": "trec_eval-10.0-rc3", "9.0.8": "trec_eval-9.0.8"}
ROBUST = [
    "SABIR03BASE",
    "THUIRr0301",
    "VTcdhgp1",
    "aplrob03a",
    "fub03IeOLKe3",
    "humR03dc",
    "pircRBa1",
    "uwmtCR0",
]


def columns(text: str) -> str:
    """Lines written with single blanks in the place of trec_eval's columns."""
    return "".join("{:<22}\t{}\t{}\n".format(*line.split()) for line in text.strip().splitlines())


@pytest.mark.real_data
@pytest.mark.parametrize(("expected", "arguments"), OFFICIAL)
def test_its_own_tests_pass(
    call: Call, real_data: Path, monkeypatch: pytest.MonkeyPatch, expected: str, arguments: str
) -> None:
    monkeypatch.chdir(real_data / "trec_eval_test")
    assert call(*shlex.split(arguments)) == (0, Path(expected).read_text(), "")


@pytest.mark.real_data
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ROBUST)
def test_real_runs_have_every_line(call: Call, real_data: Path, name: str, version: str) -> None:
    """All but the rbp of 10.0-rc3, whose code reads memory that it never wrote."""
    folder = real_data / "robust03"
    run, qrels = folder / f"runs/input.{name}.gz", folder / "qrels/robust03_qrels.txt"
    status, out, err = call("--compat", version, "-q", "-c", "-m", "all_trec", qrels, run)
    theirs = gzip.decompress(
        (folder / f"expected/{VERSIONS[version]}/input.{name}.txt.gz").read_bytes()
    ).decode()
    lines, expected = out.splitlines(), theirs.splitlines()
    differing = {
        ours.split()[0] for ours, other in zip(lines, expected, strict=True) if ours != other
    }
    assert (status, err) == (0, "")
    assert differing == ({"rbp"} if version == "10" else set())


@pytest.mark.real_data
def test_compression_changes_nothing(call: Call, real_data: Path, tmp_path: Path) -> None:
    folder = real_data / "trec_eval_test"
    packed = tmp_path / "results.gz"
    packed.write_bytes(gzip.compress((folder / "results.test").read_bytes()))
    assert call(folder / "qrels.test", packed) == (0, (folder / "out.test").read_text(), "")


# Printed by trec_eval 10.0 (with the bounds of its rbp set to 0) and 9.0.8.
BY_TOPIC = """
num_ret 10 4
num_rel 10 2
map 10 {map_10}
relstring 10 '{relstring_10}'
utility 10 -2.0000
num_ret 7 1
num_rel 7 0
map 7 0.0000
relstring 7 '0'
utility 7 -1.0000
{unanswered}num_ret 9 2
num_rel 9 1
map 9 0.5000
relstring 9 '01'
utility 9 0.0000
runid all last
num_q all 4
num_ret all 7
num_rel all 4
map all {map}
gm_map all {gm_map}
utility all -0.7500
"""
UNANSWERED = "num_ret 8 0\nnum_rel 8 1\nmap 8 0.0000\nrelstring 8 ''\nutility 8 0.0000\n"


def test_a_topic_without_an_answer_has_lines_in_version_10_alone(
    call: Call, files: tuple[Path, Path]
) -> None:
    options = shlex.split(
        "-c -q -m num_ret -m num_rel -m map -m relstring -m utility -m gm_map -m num_q -m runid"
    )
    ten = BY_TOPIC.format(
        map_10="0.5000", relstring_10="2-.0", unanswered=UNANSWERED, map="0.2500", gm_map="0.0022"
    )
    nine = BY_TOPIC.format(
        map_10="0.2500", relstring_10="-2.0", unanswered="", map="0.1875", gm_map="0.0019"
    )
    assert call(*options, *files) == (0, columns(ten), "")
    assert call("--compat", "9.0.8", *options, *files) == (0, columns(nine), "")


def test_the_level_leaves_the_number_of_relevant_documents_of_complete_qrels_alone(
    call: Call, files: tuple[Path, Path]
) -> None:
    expected = "num_rel all 4\nnum_rel_ret all 1\nmap all 0.2500\nbpref all 0.2500"
    options = shlex.split("-c -l2 -m num_rel -m num_rel_ret -m bpref -m map")
    assert call(*options, *files) == (0, columns(expected), "")


def test_version_10_leaves_its_placeholder_in_measures_with_parameters(
    call: Call, files: tuple[Path, Path]
) -> None:
    expected = """
        relstring_2 10 '2-'
        utility_2,-1,0,0 10 -1.0000
        relstring_2 7 '0'
        utility_2,-1,0,0 7 -1.0000
        relstring_2 8 '-'
        utility_2,-1,0,0 8 -1.0000
        relstring_2 9 '01'
        utility_2,-1,0,0 9 1.0000
        utility_2,-1,0,0 all -0.5000
    """
    assert call(*shlex.split("-c -q -m relstring.2 -m utility.2,-1,0,0"), *files) == (
        0,
        columns(expected),
        "",
    )


def test_only_judged_documents_and_no_figures(call: Call, files: tuple[Path, Path]) -> None:
    expected = """
        P_1 10 1.0000
        P_2 10 0.5000
        relstring_2 10 '20'
        P_1 7 0.0000
        P_2 7 0.0000
        relstring_2 7 '0'
        P_1 8 0.0000
        P_2 8 0.0000
        relstring_2 8 ''
        P_1 9 0.0000
        P_2 9 0.5000
        relstring_2 9 '01'
    """
    assert call(*shlex.split("-c -J -n -q -m P.2,1 -m relstring.2"), *files) == (
        0,
        columns(expected),
        "",
    )


@pytest.mark.parametrize(("version", "value"), [("10", "0.2500"), ("9.0.8", "0.0000")])
def test_the_first_documents_are_chosen_by_the_scores_of_the_version(
    call: Call, files: tuple[Path, Path], version: str, value: str
) -> None:
    expected = columns(f"num_ret all 3\nrecip_rank all {value}\nsuccess_1 all {value}")
    options = shlex.split("-c -M1 -m recip_rank -m success.1 -m num_ret")
    assert call("--compat", version, *options, *files) == (0, expected, "")


@pytest.mark.parametrize("version", VERSIONS)
def test_topics_without_an_answer_are_left_out_of_means_as_version_9_does(
    call: Call, files: tuple[Path, Path], version: str
) -> None:
    """Version 10 stops at the first of them; the command goes on, and says so."""
    status, out, err = call("--compat", version, "-m", "num_q", "-m", "map", *files)
    value = {"10": "0.3333", "9.0.8": "0.2500"}[version]
    assert (status, out) == (0, columns(f"num_q all 3\nmap all {value}"))
    assert (
        err
        == f"{files[1]}: warning: 1 of 4 judged topics have no results and are left out; see -c\n"
    )


def test_where_trec_eval_divides_by_zero_the_value_is_zero(call: Call, tmp_path: Path) -> None:
    """-J leaves nothing of this answer; trec_eval prints -nan."""
    (tmp_path / "q").write_text("1 0 a 1\n")
    (tmp_path / "r").write_text("1 Q0 u 1 1 t\n")
    status, out, _ = call(
        *shlex.split("-J -m iprec_at_recall.0.5 -m Rndcg -m ndcg"), tmp_path / "q", tmp_path / "r"
    )
    assert (status, out) == (
        0,
        columns("iprec_at_recall_0.50 all 0.0000\nndcg all 0.0000\nRndcg all 0.0000"),
    )


def test_rank_biased_precision_is_its_definition(call: Call, files: tuple[Path, Path]) -> None:
    """Of topic 10: levels 2, -, ., 0 with gains level/2, so (1 - p) 1; two unknown documents and what lies beyond."""
    _, out, _ = call(*shlex.split("-q -n -c -m rbp -m rbp_resid.p=0.5"), *files)
    lines = [line for line in out.splitlines() if line.split()[1] == "10"]
    residual = 0.5**4 + 0.5 * (0.5 + 0.25)
    assert "\n".join(lines) + "\n" == columns(f"rbp 10 0.1000\nrbp_resid_p=0.5 10 {residual:.4f}")
