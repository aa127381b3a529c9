"""Simulated parameter studies: runs of known settings, with and without an effect of one of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from metrics.engine.explanation.association import PERMUTATIONS
from metrics.engine.explanation.explaining import ALPHA, Explanation, explain
from metrics.engine.explanation.matched import changes_of
from metrics.engine.explanation.settings import Setting, encode
from metrics.engine.significance.pairs import Matrix
from tests.engine.calibration import rate_of

RUNS, TOPICS, PARAMETERS, NOISE = 40, 50, 8, 0.1
# Of a study of real runs, to which the values of parameters are dealt at random.
DEALT_RUNS = 24
# A grid of the values of two parameters, as a study of BM25 has it.
K1, B = (0.6, 0.9, 1.2, 1.5), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


def null_study(rng: np.random.Generator, skill: float = 0.05) -> tuple[Matrix, list[Setting]]:
    """Runs that differ in skill, and parameters of two to five values, some of them texts, that mean nothing."""
    values = rng.normal(0.4, skill, (RUNS, 1)) + rng.normal(0, NOISE, (RUNS, TOPICS))
    settings = []
    for place in range(PARAMETERS):
        codes = rng.integers(2 + place % 4, size=RUNS).tolist()
        settings.append(encode(f"p{place}", [f"v{code}" if place % 2 else code for code in codes]))
    return values, settings


def grid_study(rng: np.random.Generator, gain: float) -> tuple[Matrix, list[Setting]]:
    """A run for each pair of values; k1 = 1.2 is better by `gain` than the others."""
    pairs = list(product(K1, B))
    values = rng.normal(0.4, NOISE, (len(pairs), TOPICS))
    values += np.array([gain * (k1 == 1.2) for k1, _ in pairs])[:, None]
    return values, [encode("k1", [k1 for k1, _ in pairs]), encode("b", [b for _, b in pairs])]


def dealt_study(
    scores: Matrix, rng: np.random.Generator, parameters: int, gain: float = 0.0
) -> tuple[Matrix, list[Setting]]:
    """Real runs drawn at random, and parameters of two values, each dealt to half of them.

    Values mean nothing, but for the second one of the first parameter, to which `gain` is added.
    """
    values = scores[rng.choice(len(scores), DEALT_RUNS, replace=False)]
    codes = [rng.permutation(np.arange(DEALT_RUNS) % 2) for _ in range(parameters)]
    values = values + gain * codes[0][:, None]
    return values, [encode(f"p{place}", dealt.tolist()) for place, dealt in enumerate(codes)]


def has_change(values: Matrix, settings: list[Setting]) -> bool:
    return any(change.p_adjusted < ALPHA for change in changes_of(values, settings, []))


def null_findings(sets: int, permutations: int = PERMUTATIONS) -> tuple[int, int]:
    """Return in how many studies without an effect any parameter goes with the measure, and any change is found."""
    associated = changed = 0
    for number in range(sets):
        values, settings = null_study(np.random.default_rng((7, number)))
        explanation = explain(values, settings, permutations=permutations, resamples=1, seed=number)
        associated += explanation.associations is not None
        changed += has_change(values, settings[:3])
    return associated, changed


def print_dealt(say: Callable[[str], None], tracks: dict[str, Matrix], sets: int) -> None:
    """Say in how many studies of real runs a change is significant that is none, and one that is there."""
    say(f"\n{sets} studies of {DEALT_RUNS} real runs, to which parameters are dealt at random\n")
    say("| runs | 1 parameter | 3 parameters | 1 parameter, better by .05 | by .1 |")
    say("| --- | --- | --- | --- | --- |")
    for name, scores in tracks.items():
        rates = [
            rate_of(
                np.array(
                    [
                        [
                            has_change(
                                *dealt_study(scores, np.random.default_rng((12, number)), *design)
                            )
                        ]
                        for number in range(sets)
                    ]
                )
            )
            for design in ((1,), (3,), (1, 0.05), (1, 0.1))
        ]
        figures = (f"{100 * rate.value:.1f} ± {100 * rate.error:.1f} %" for rate in rates)
        say(f"| {name} | {' | '.join(figures)} |")


def found_changes(explanation: Explanation) -> list[tuple[str, float]]:
    """Return the settings with a significant change, and the difference of each."""
    changes = [change for change in explanation.changes if change.p_adjusted < ALPHA]
    return [(explanation.settings[change.setting].name, change.difference) for change in changes]


def print_explanations(say: Callable[[str], None], sets: int) -> None:
    """Say in how many studies something is found, where nothing is and where something is."""
    associated, changed = null_findings(sets)
    planted = sum(
        "k1"
        in dict(
            found_changes(
                explain(*grid_study(np.random.default_rng((8, number)), 0.05), resamples=1)
            )
        )
        for number in range(sets)
    )
    say(f"\n{sets:,} studies of {RUNS} runs and {PARAMETERS} parameters that mean nothing:")
    say(f"- any parameter goes with the measure: {100 * associated / sets:.1f} %")
    say(f"- any change of a value is significant: {100 * changed / sets:.1f} %")
    say(
        f"{sets:,} studies of {len(K1) * len(B)} runs in which one value is better by .05, noise {NOISE:g}:"
    )
    say(f"- a change of it is significant: {100 * planted / sets:.1f} %")
