"""evalhub document_statistics: print docs/statistics.md's reference, generated from docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from evalhub.management import command
from metrics.engine.agreement import COEFFICIENTS
from metrics.engine.agreement.intervals import rank_intervals
from metrics.engine.analysis.frontier import frontier
from metrics.engine.design import topic_set_size
from metrics.engine.design.discriminative_power import discriminative_power
from metrics.engine.design.swap_rates import swap_rates
from metrics.engine.explanation.association import associate
from metrics.engine.explanation.matched import changes_of
from metrics.engine.explanation.settings import cramers_v
from metrics.engine.significance import CORRECTIONS, OMNIBUS, TESTS, crossed, latin_square
from metrics.engine.significance.effect_sizes import (
    cliff_delta,
    cohen_d,
    detectable_difference,
    hedges_g,
    paired_cliff_delta,
    probability_better,
    relative_difference,
    standardised_difference,
)
from metrics.engine.significance.equivalence import power_of_tost, tost
from metrics.engine.significance.fragility import fragility
from metrics.engine.significance.posterior import bayes_bootstrap, bayes_t
from metrics.engine.significance.rank_sets import rank_sets
from metrics.engine.significance.shrinkage import expected_means
from metrics.engine.significance.tiers import tiers

_SECTION = re.compile(
    r"^(Formula|Assumes|Controls|Range|Groups|Tiers|Source|Elsewhere|Note|Shapes|Raises)(?::| "
    r"(?=StatisticsError))",
    re.MULTILINE,
)
_OMITTED = ("Shapes", "Raises")
_EFFECT_SIZES = (
    relative_difference,
    cohen_d,
    hedges_g,
    standardised_difference,
    probability_better,
    paired_cliff_delta,
    cliff_delta,
    detectable_difference,
)
_DESIGN = (
    fragility,
    tiers,
    rank_sets,
    rank_intervals,
    expected_means,
    discriminative_power,
    swap_rates,
    topic_set_size.power_of_t,
    topic_set_size.power_of_anova,
    topic_set_size.power_of_non_inferiority,
    topic_set_size.power_of_equivalence,
    topic_set_size.half_width,
)

_PRACTICAL = (tost, power_of_tost, bayes_t, bayes_bootstrap)
_EXPLANATION = (changes_of, associate, cramers_v, frontier)


class Command(command.Command):
    help = "Print the reference of docs/statistics.md."

    def handle(self, **options: Any) -> None:
        self.stdout.write(reference(), ending="")


def reference() -> str:
    """Return the reference as Markdown."""
    parts: dict[str, dict[str, Callable[..., Any]]] = {
        "Tests of pairs": {name: test.compare for name, test in TESTS.items()},
        "Practical difference": {function.__name__: function for function in _PRACTICAL},
        "Tests of all runs at once": {**OMNIBUS},
        "Sessions by searchers and topics": {
            "crossed": crossed.analyse,
            "crossed_contrast": crossed.contrast,
        },
        "Latin squares": {
            "latin_square": latin_square.analyse,
            "contrast": latin_square.contrast,
        },
        "Corrections": {**CORRECTIONS},
        "Effect sizes": {function.__name__: function for function in _EFFECT_SIZES},
        "Orders of systems": {**COEFFICIENTS},
        "Groups, ranks and design": {function.__name__: function for function in _DESIGN},
        "What explains values, and what they cost": {
            function.__name__: function for function in _EXPLANATION
        },
    }

    lines: list[str] = []
    for title, functions in parts.items():
        lines += [f"### {title}", ""]
        for name, function in functions.items():
            summary, *sections = _SECTION.split(inspect.cleandoc(function.__doc__ or ""))
            lines += [f"**`{name}`** {' '.join(summary.split())}", ""]
            for section, body in zip(sections[::2], sections[1::2], strict=True):
                if section not in _OMITTED:
                    lines.append(f"- {section}: {' '.join(body.split())}")

            lines.append("")

    return "\n".join(lines)
