"""Simulated studies of two systems that are equally good: searchers and topics differ, and systems suit some of them
better than others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.significance import TESTS, crossed, latin_square
from metrics.engine.significance.pairs import DEFAULTS
from tests.engine.calibration import ALPHA, Rate, rate_of

SEARCHERS, TOPICS = 8, 6
LAYOUTS = ("paired", "latin_square", "two_way")
STEPS = (0.0, 0.3, 0.5, 0.7)
# A difference of so many standard deviations of what is left of a session, to be found.
GAP = 1.0

Study = tuple[Floats, Ints, Ints, Ints]


def study(
    rng: np.random.Generator, layout: str, suits: float, gap: float = 0.0, share: float = 1.0
) -> Study:
    """Values, system, topic and searcher of sessions.

    Each searcher uses both systems on every topic ('paired'), takes turns ('latin_square') or has
    one system ('two_way'). `suits` is the deviation of the effects of system with searcher and of
    system with topic, that of searchers, topics and sessions is 1; `kept` the share of the sessions
    that is there.
    """
    searcher, topic, system = (part.ravel() for part in np.indices((SEARCHERS, TOPICS, 2)))
    if layout != "paired":
        own = (searcher + topic) % 2 if layout == "latin_square" else searcher % 2
        searcher, topic, system = (part[system == own] for part in (searcher, topic, system))
    present = rng.random(len(system)) < share
    searcher, topic, system = (part[present] for part in (searcher, topic, system))
    values = (
        rng.normal(0, 1, SEARCHERS)[searcher]
        + rng.normal(0, 1, TOPICS)[topic]
        + gap * (system == 0)
    )
    values += (
        rng.normal(0, suits, (SEARCHERS, 2))[searcher, system]
        + rng.normal(0, suits, (TOPICS, 2))[topic, system]
    )
    return values + rng.normal(0, 1, len(values)), system, topic, searcher


def p_values(data: Study, layout: str) -> list[float]:
    """Of the test that takes the cells of the layout for independent, F1, F2 and min F'."""
    values, system, topic, searcher = data
    analysis = crossed.analyse(values, system, topic, searcher)
    whole, by_searchers, by_topics = (float(source.p_value or 0.0) for source in analysis.sources)
    if layout == "latin_square":
        plain = latin_square.analyse(values, system, topic, searcher).p_value
    else:
        cell = searcher * TOPICS + topic if layout == "paired" else topic
        means = [
            np.bincount(cell[system == k], values[system == k]) / np.bincount(cell[system == k])
            for k in (0, 1)
        ]
        pair = np.array([0]), np.array([1])
        plain = float(TESTS["paired_t"].compare(np.array(means), *pair, DEFAULTS).p_value[0])
    return [plain, by_searchers, by_topics, whole]


def found_differences(layout: str, suits: float, studies: int, gap: float = 0.0) -> Flags:
    """Shape (studies, 4): whether each of the four is below the level."""
    rows = [
        p_values(study(np.random.default_rng((11, number)), layout, suits, gap), layout)
        for number in range(studies)
    ]
    significant: Flags = np.array(rows) < ALPHA
    return significant


def print_crossed(say: Callable[[str], None], studies: int) -> None:
    """How often each analysis finds a difference of two systems that are equally good, and min F' one that is there."""
    say(
        f"\n{studies:,} studies of {SEARCHERS} searchers, {TOPICS} topics and two systems without a difference\n"
    )
    say(
        "| design | systems suit some by | cells as independent | F1 | F2 | min F' | min F', a difference of 1 |"
    )
    say("| --- | --- | --- | --- | --- | --- | --- |")
    for layout in LAYOUTS:
        for suits in STEPS:
            significant = found_differences(layout, suits, studies)
            rates = [rate_of(column[:, None]) for column in significant.T]
            power = rate_of(found_differences(layout, suits, studies, GAP)[:, 3:])
            say(
                f"| `{layout}` | {suits:g} | {' | '.join(_figure(rate) for rate in (*rates, power))} |"
            )


def mean_coverage(
    searchers: int, topics: int, spread: float, studies: int, student: bool = False
) -> float:
    """Return how often the interval of a mean has the true one, 0: every searcher has searched every topic once.

    `spread` is the deviation of searchers and of topics, that of sessions is 1.
    """
    searcher, topic = (part.ravel() for part in np.indices((searchers, topics)))
    each = np.arange(searchers * topics)
    hold = 0
    for number in range(studies):
        rng = np.random.default_rng((13, number))
        values = rng.normal(0, spread, searchers)[searcher] + rng.normal(0, spread, topics)[topic]
        values += rng.normal(0, 1, len(values))
        units = (each, each) if student else (topic, searcher)
        low, high = crossed.mean_interval(values, *units, 0.95)
        hold += low <= 0 <= high
    return hold / studies


def print_mean_coverage(say: Callable[[str], None], studies: int) -> None:
    """How often intervals of means have the true mean, where searchers and topics differ more and more."""
    say(
        f"\n{studies:,} systems: 95% intervals of the mean, and Student's, that hold the true one\n"
    )
    say(
        "| searchers x topics | searchers and topics differ by | V1 + V2 | sessions as independent |"
    )
    say("| --- | --- | --- | --- |")
    for searchers, topics in ((8, 6), (24, 4), (10, 10)):
        for spread in (0.0, 0.3, 0.5, 1.0):
            rates = [
                mean_coverage(searchers, topics, spread, studies, student)
                for student in (False, True)
            ]
            errors = [(rate * (1 - rate) / studies) ** 0.5 for rate in rates]
            texts = (_figure(Rate(*each)) for each in zip(rates, errors, strict=True))
            say(f"| {searchers} x {topics} | {spread:g} | {' | '.join(texts)} |")


def _figure(rate: Rate) -> str:
    return f"{100 * rate.value:.1f} ± {100 * rate.error:.1f} %"
