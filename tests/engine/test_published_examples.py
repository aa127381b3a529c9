"""Values printed in the literature. Where a source rounds or cuts, the formula's value is used; errata say so."""

from __future__ import annotations

import numpy as np
import pytest

from evalhub.operating.simulation import TEXTBOOK_QRELS, TEXTBOOK_RUN
from metrics.engine.analysis.what_if import PRESETS
from metrics.engine.curve.curves import curve
from metrics.engine.curve.readings import against_best, readings
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.measures.grammar import parse_measure
from tests.engine.build import judged_run, ranked

TOIS = (3, 2, 3, 0, 0, 1, 2, 2, 3, 0)


def values(run: JudgedRun, measure: str, depth: int) -> list[float]:
    return curve(run, parse_measure(measure), depth).mean.tolist()


def rounded(numbers: list[float], digits: int = 2) -> list[float]:
    return [round(number, digits) for number in numbers]


@pytest.fixture
def textbook() -> JudgedRun:
    qrels: dict[str, dict[str, int]] = {}
    for line in TEXTBOOK_QRELS.splitlines():
        topic, _, document, level = line.split()
        qrels.setdefault(topic, {})[document] = int(level)
    run: dict[str, dict[str, float]] = {}
    for line in TEXTBOOK_RUN.splitlines():
        topic, _, document, _, score, _ = line.split()
        run.setdefault(topic, {})[document] = float(score)
    return judged_run(qrels, run)


def test_cumulated_gain_of_jarvelin_and_kekalainen_2002() -> None:
    assert values(ranked(*TOIS), "CG", 10) == [3, 5, 8, 8, 8, 9, 11, 13, 16, 16]


def test_discounted_cumulated_gain_of_jarvelin_and_kekalainen_2002() -> None:
    printed = [3, 5, 6.89, 6.89, 6.89, 7.28, 7.99, 8.66, 9.61, 9.61]
    assert rounded(values(ranked(*TOIS), "DCG(dis='jk')", 10)) == printed


def test_ideal_vectors_of_the_recall_base() -> None:
    """The source cuts ranks 6 and 8 of the discounted ideal to 10.52 and 11.21."""
    base = {f"r{i}": level for i, level in enumerate((3, 3, 3, 2, 2, 2, 1, 1, 1, 1))}
    run = judged_run({"1": base}, {"1": {"r0": 1.0}})
    ideal = curve(run, parse_measure("CG"), 12).ideal
    assert ideal[0].tolist() == [3, 6, 9, 11, 13, 15, 16, 17, 18, 19, 19, 19]
    discounted = curve(run, parse_measure("DCG(dis='jk')"), 12).ideal
    printed = [3, 6, 7.89, 8.89, 9.75, 10.53, 10.88, 11.22, 11.53, 11.83, 11.83, 11.83]
    assert rounded(discounted[0].tolist()) == printed


def test_normalised_cumulated_gain_against_the_recall_base() -> None:
    """The recall base of the source: 3 x 3, 3 x 2, 4 x 1, of which the run finds its six gains."""
    base = {f"r{i}": 1 for i in range(3)}
    run = ranked(*TOIS, recall_base=base)
    assert rounded(values(run, "nCG", 10)) == [
        1,
        0.83,
        0.89,
        0.73,
        0.62,
        0.6,
        0.69,
        0.76,
        0.89,
        0.84,
    ]


def test_session_discount_with_base_4_corrects_the_ecir_2008_appendix() -> None:
    """The appendix prints 3, 4, 5.67, 5.67, 5.67, 6.11, 6.94, 8.14, 9.30, 9.30; its formula (2) gives these."""
    formula = [3, 4.33, 6.01, 6.01, 6.01, 6.44, 7.28, 8.08, 9.24, 9.24]
    assert rounded(values(ranked(*TOIS), "DCG(dis='session',b=4)", 10)) == formula


def test_averaged_vectors_of_modern_information_retrieval(textbook: JudgedRun) -> None:
    assert values(textbook, "CG", 15) == [0.5, 0.5, 2, 2, 2, 3.5, 3.5, 4, 4, 5, 5, 5, 5, 5, 8]
    cut = np.floor(np.array(values(textbook, "DCG(dis='jk')", 15)) * 10 + 1e-9) / 10
    assert cut.tolist() == [
        0.5,
        0.5,
        1.4,
        1.4,
        1.4,
        2.0,
        2.0,
        2.1,
        2.1,
        2.4,
        2.4,
        2.4,
        2.4,
        2.4,
        3.2,
    ]


NORMALISED = [
    (
        "nCG(ideal='retrieved',norm='average')",
        ".17 .09 .29 .27 .25 .44 .44 .50 .50 .63 .63 .63 .63 .63 1.00",
    ),
    (
        "nDCG(dis='jk',ideal='retrieved',norm='average')",
        ".17 .09 .22 .22 .21 .29 .29 .32 .32 .36 .36 .36 .36 .36 .47",
    ),
    # What the source's own definition of the ideal, over all judgements, gives for its example.
    ("nCG(norm='average')", ".17 .09 .27 .24 .21 .33 .32 .35 .33 .40 .40 .40 .40 .40 .64"),
    (
        "nDCG(dis='jk',norm='average')",
        ".17 .09 .21 .20 .19 .25 .25 .26 .26 .29 .29 .29 .29 .29 .37",
    ),
]


def test_ideal_vectors_of_modern_information_retrieval(textbook: JudgedRun) -> None:
    """Printed are IG1 = 3 3 2 1 1 and IG2 = 3 2 1: the best order of what the run retrieved."""
    gains = np.array([[3, 3, 2, 1, 1, *[0] * 10], [3, 2, 1, *[0] * 12]], float)
    cumulated = curve(textbook, parse_measure("IdealCG(ideal='retrieved')"), 15)
    np.testing.assert_array_equal(cumulated.topics, gains.cumsum(axis=1))
    discounted = curve(textbook, parse_measure("IdealDCG(dis='jk',ideal='retrieved')"), 15)
    logarithms = np.maximum(np.log2(np.arange(1, 16)), 1)
    np.testing.assert_allclose(discounted.topics, (gains / logarithms).cumsum(axis=1), rtol=1e-14)

    # q1 has five more relevant documents, 3 2 2 1 1.
    whole = parse_measure("IdealCG").compute(textbook)
    assert whole.tolist() == [19, 6]
    np.testing.assert_array_equal(cumulated.ideal[:, -1], whole)


@pytest.mark.parametrize(("measure", "printed"), NORMALISED)
def test_ratio_of_averaged_vectors_of_modern_information_retrieval(
    textbook: JudgedRun, measure: str, printed: str
) -> None:
    """The source normalises by the best order of what was retrieved, and averages before it divides."""
    expected = [float(number) for number in printed.split()]
    # The source rounds .625 to .63; half of the last printed digit is allowed.
    np.testing.assert_allclose(values(textbook, measure, 15), expected, rtol=0, atol=0.005 + 1e-9)
    for rank, figure in enumerate(expected, 1):
        at_rank = parse_measure(f"{measure}@{rank}")
        mean, topics = at_rank.aggregate(at_rank.compute(textbook), textbook)
        assert (mean, topics) == (pytest.approx(figure, rel=0, abs=0.005 + 1e-9), 2)


@pytest.mark.parametrize(("measure", "printed"), NORMALISED)
def test_the_average_over_positions_of_those_vectors(
    textbook: JudgedRun, measure: str, printed: str
) -> None:
    name, _, arguments = measure.partition("(")
    average = parse_measure(f"AvgPos(of='{name}',{arguments}@15")
    mean, _ = average.aggregate(average.compute(textbook), textbook)
    assert mean == pytest.approx(np.mean([float(number) for number in printed.split()]), abs=0.005)


def test_the_ideal_vectors_read_across_and_down() -> None:
    """G' of Järvelin and Kekäläinen against its ideal vector I': 3 6 9 11 13 15 16 17 18 19."""
    run = ranked(*TOIS, recall_base={f"r{i}": 1 for i in range(3)})
    read = readings(run, parse_measure("CG"), 12)
    assert read.needed is not None
    assert read.needed.tolist() == [1, 3, 6, 7, 8, 9, 9, 0, 0, 0, 0, 0]
    assert read.missed.tolist() == [0, 1, 1, 3, 5, 6, 5, 4, 2, 3, 3, 3]
    assert rounded(read.percent.tolist(), 1)[:4] == [0, 16.7, 11.1, 27.3]
    assert read.horizontal_from == 10


def test_two_published_vectors_read_against_each_other() -> None:
    """G' of Järvelin and Kekäläinen has 8 at rank 3, 9 at 6, 13 at 8 and 16 at 9; the first topic of Modern
    Information Retrieval, 1 0 1 0 0 3 0 0 0 2 0 0 0 0 3, has 2 at rank 3 and 10 at its end."""
    textbook = (1, 0, 1, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 0, 3)
    curves = against_best(
        [readings(ranked(*levels), parse_measure("CG"), 10) for levels in (textbook, TOIS)], 10
    )
    assert curves is not None
    assert curves.best.tolist() == [1] * 10
    assert curves.needed.tolist() == [
        [6, 6, 15, 15, 15, 15, 0, 0, 0, 0],
        [1, 2, 3, 3, 3, 6, 7, 8, 9, 9],
    ]
    # CG' of G' is 3 5 8 8 8 9 11 13 16 16.
    assert curves.missed.tolist() == [[2, 4, 6, 6, 6, 4, 6, 8, 11, 9], [0] * 10]


def test_the_two_users_of_jarvelin_and_kekalainen_2002() -> None:
    """Section 4: 30 ranks, gains 0-1-10-100 and base 2; 200 ranks, gains 0-1-2-3 and base 10."""
    impatient, patient = (parse_measure(PRESETS[name]) for name in ("impatient", "patient"))
    assert impatient.parameters["gains"].of(np.arange(4)).tolist() == [0, 1, 10, 100]
    assert (impatient.parameters["b"], impatient.cutoff) == (2, 30)
    assert patient.name == "nDCG(dis='jk',b=10)@200"
    assert patient.parameters["gains"].of(np.arange(4)).tolist() == [0, 1, 2, 3]


def test_the_patient_user_of_all_that_is_relevant() -> None:
    """Section 4: precision averaged over 11 points of recall, to which levels make no difference."""
    liberal = parse_measure(PRESETS["liberal"])
    assert liberal.name == "11pt_avg"
    base = {f"r{i}": 1 for i in range(3)}
    binary = tuple(min(level, 1) for level in TOIS)
    graded, flat = (liberal.compute(ranked(*levels, recall_base=base)) for levels in (TOIS, binary))
    expected = precision_at_eleven_points([1, 2, 3, 6, 7, 8, 9], relevant=10)
    assert graded[0] == flat[0] == pytest.approx(expected)


def precision_at_eleven_points(ranks: list[int], relevant: int) -> float:
    """The mean over recall 0, 0.1, ..., 1 of the highest precision at that recall or more."""
    precision_at = [(count / relevant, count / rank) for count, rank in enumerate(ranks, 1)]
    points = [
        max((p for recall, p in precision_at if recall >= point / 10 - 1e-9), default=0.0)
        for point in range(11)
    ]
    return sum(points) / 11


def test_average_precision_of_the_slides() -> None:
    """Relevant at ranks 1, 3 and 5 of three: (1 + 2/3 + 3/5) / 3."""
    (value,) = parse_measure("AP").compute(ranked(1, 0, 1, 0, 1))
    assert round(value, 2) == 0.76


def test_precision_at_recall_points_of_the_textbook(textbook: JudgedRun) -> None:
    assert parse_measure("P@10").compute(textbook).tolist() == [0.4, 0.2]
    assert parse_measure("R@15").compute(textbook).tolist() == [0.5, 1.0]
