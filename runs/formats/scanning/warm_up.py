"""Load the compiled code, or compile it, which takes seconds once and must not delay a request."""

from __future__ import annotations

from metrics.engine.agreement import standings
from metrics.engine.judgement import search
from metrics.engine.significance import moments, pair_pass
from runs.formats.scanning import judgement_lines, kernel, line_judge


def warm_up() -> None:
    """Load every kernel."""
    for module in (kernel, line_judge, judgement_lines, search, pair_pass, moments, standings):
        for kernel_function in module.KERNELS:
            kernel_function.load()
