"""The layers: imports go down only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = ("evalhub", "runs", "metrics")

# From the top down. A module belongs to the first prefix that fits; it may import from its own layer and those below.
LAYERS = (
    ("evalhub",),
    ("runs.api", "runs.pages", "runs.views", "runs.urls", "runs.admin", "metrics.api", "metrics.pages", "metrics.urls",
     "metrics.admin", "metrics.questions", "metrics.charts", "metrics.tables", "metrics.exports"),
    ("metrics.tasks",),
    ("metrics.services",),
    ("metrics.models", "metrics.apps"),
    ("runs.services",),
    ("runs.models", "runs.apps"),
    ("runs.formats",),
    ("metrics.engine",),
)  # fmt: skip
INTERFACES = ("runs.api", "runs.pages", "runs.views", "runs.urls", "runs.admin")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for package in OURS:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
                yield name, ast.parse(path.read_text())


MODULES = dict(modules())


def layer(module: str) -> int:
    for depth, prefixes in enumerate(LAYERS):
        if any(module == prefix or module.startswith(prefix + ".") for prefix in prefixes):
            return depth
    return len(LAYERS)


def imports(tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from package import module` names the module, not only the package.
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            known = [name for name in inner if name in MODULES]
            yield from ((node, name) for name in known or [node.module or ""])


@pytest.mark.parametrize("module", [name for name in MODULES if name not in OURS])
def test_imports_go_down_only(module: str) -> None:
    for _, name in imports(MODULES[module]):
        if name.split(".")[0] in OURS and name not in OURS:
            assert layer(name) >= layer(module), f"{module} imports {name} from a layer above it"


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("runs.")])
def test_runs_names_the_computed_side_only_in_its_interfaces(module: str) -> None:
    allowed = ("metrics.engine",) if not module.startswith(INTERFACES) else ("metrics.engine", "metrics.services")
    for _, name in imports(MODULES[module]):
        if name.startswith("metrics."):
            assert name.startswith(allowed), f"{module} imports {name}"


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("metrics.engine")])
def test_the_engine_needs_numpy_and_scipy_only(module: str) -> None:
    for _, name in imports(MODULES[module]):
        assert name.split(".")[0] not in ("django", "rest_framework", "celery", "runs", "evalhub"), name


@pytest.mark.parametrize("module", list(MODULES))
def test_no_import_hides_inside_a_function(module: str) -> None:
    for node in ast.walk(MODULES[module]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            hidden = [inner for inner in ast.walk(node) if isinstance(inner, ast.Import | ast.ImportFrom)]
            assert not hidden, f"{module}.{node.name} imports inside its body"


@pytest.mark.parametrize("module", list(MODULES))
def test_functions_and_files_stay_small(module: str) -> None:
    tree = MODULES[module]
    assert max((node.end_lineno or 0 for node in tree.body), default=0) <= 400, f"{module} is longer than 400 lines"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = [inner for inner in node.body if not isinstance(inner, ast.Expr) or ast.get_docstring(node) is None]
            size = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert size <= 50, f"{module}.{node.name} has {size} lines"
