"""The numeric core: rankings and judgements in, exact values out.

It needs NumPy and SciPy, and nothing of the service.

`evaluate` is its front door, for programs that want values and no service.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metrics.engine.errors import EvalHubError, InputError, MeasureError
    from metrics.engine.evaluation import Evaluated, evaluate
    from metrics.engine.measures.undefined import REASONS

ENGINE_VERSION = "1"

__all__ = [
    "ENGINE_VERSION",
    "REASONS",
    "EvalHubError",
    "Evaluated",
    "InputError",
    "MeasureError",
    "evaluate",
]

# Loaded at first use: a part of the engine, such as a kernel, is imported without the rest.
_MODULES = {
    "REASONS": "measures.undefined",
    "EvalHubError": "errors",
    "Evaluated": "evaluation",
    "InputError": "errors",
    "MeasureError": "errors",
    "evaluate": "evaluation",
}

if not TYPE_CHECKING:  # else every name would be one of the module's to a type checker

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
