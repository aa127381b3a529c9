"""The layers: imports go down only."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = ("evalhub", "runs", "metrics")

# From the top down, with what each holds. A module belongs to the longest prefix that fits; it may
# import from its own layer and those below.
LAYERS = (
    (("evalhub",), "settings, URLs, errors to HTTP, the commands, the supervisor"),
    (("evalhub.suites",), "suites of collections, an app on `runs` and `metrics`: its URLs"),
    (("evalhub.suites.api", "evalhub.suites.pages"), "requests and responses about suites"),
    (("evalhub.suites.charts",), "charts of suites"),
    (("evalhub.suites.exports",), "tables of suites"),
    (("evalhub.suites.questions",), "what requests name and ask of suites"),
    (("evalhub.suites.services",), "versions of suites, leaderboards and comparisons over collections"),
    (("evalhub.suites.models",), "suites, their versions and members"),
    (("evalhub.pools",), "pools and judgements, an app on `campaigns`, `runs` and `metrics`: its URLs and receivers"),
    (("evalhub.pools.api", "evalhub.pools.pages"), "requests and responses about pools"),
    (("evalhub.pools.exports", "evalhub.pools.charts"), "files and charts of pools"),
    (("evalhub.pools.questions",), "what requests name and ask of pools"),
    (("evalhub.pools.services",), "the documents of pools, assignments, judgements"),
    (("evalhub.pools.models",), "pools, assessors and judgements"),
    (("evalhub.campaigns",), "campaigns, an app on `runs` and `metrics`: its URLs, and its receivers of `runs.hooks`"),
    (("evalhub.campaigns.api", "evalhub.campaigns.pages"), "requests and responses about campaigns"),
    (("evalhub.campaigns.exports", "evalhub.campaigns.charts"), "packets, snapshots and charts of campaigns"),
    (("evalhub.campaigns.questions",), "what requests name and ask of campaigns"),
    (("evalhub.campaigns.services",), "phases, teams, entries, releases, results and notifications"),
    (("metrics.api", "metrics.pages", "metrics.urls", "metrics.admin", "metrics.charts", "metrics.tables",
      "metrics.exports"), "requests and responses about computed values"),
    (("metrics.questions",), "what requests name and ask, read in the same way for API and pages; imports neither"),
    (("runs.api", "runs.pages", "runs.urls", "runs.admin"), "requests and responses about stored data"),
    (("runs.web",), "what the API and the pages of all apps share: access, permissions, parameters, uploads, forms"),
    (("metrics.tasks",), "the Celery tasks: each takes keys and calls a service"),
    (("metrics.services",), "evaluation, dispatching, leaderboards and their uncertainty, comparisons, designs"),
    (("metrics.models", "metrics.apps"), "evaluations, judged views, metric vectors, stored comparisons"),
    (("runs.services",), "submission, judgements, topics, the file store"),
    (("runs.models", "runs.apps"), "teams, tokens, collections, qrels versions, runs, campaigns, the audit trail"),
    (("runs.formats", "runs.errors", "runs.digests", "runs.attention", "runs.parameters"), "readers of runs, sessions,"
     " qrels, known documents and topics, and the problems in these files; digests; single parameters; whether the"
     " client still waits; no Django"),
    (("metrics.engine",), "the numeric core: NumPy and SciPy only"),
)  # fmt: skip
# In every layer of `metrics` that has packages.
PACKAGES = {"values", "boards", "comparisons", "sessions", "tracking"}
UNDER_SERVICES = {"queue", "upkeep"}
DOCUMENTED = ROOT / "docs" / "architecture.md"
INTERFACES = ("runs.api", "runs.pages", "runs.web", "runs.urls", "runs.admin")


@cache
def modules() -> dict[str, ast.Module]:
    """Return the syntax tree of every module but migrations, by its name."""
    trees = {}
    for package in OURS:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if "migrations" not in parts:
                trees[".".join(parts).removesuffix(".__init__")] = ast.parse(path.read_text())
    return trees


def layer(module: str) -> int:
    fitting = [
        (len(prefix), depth)
        for depth, (prefixes, _) in enumerate(LAYERS)
        for prefix in prefixes
        if module == prefix or module.startswith(prefix + ".")
    ]
    return max(fitting)[1] if fitting else len(LAYERS)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def imports(tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from package import module` names the module, not only the package.
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            known = [name for name in inner if name in modules()]
            yield from ((node, name) for name in known or [node.module or ""])


def offences(check: Callable[[str, ast.Module], Iterator[str]], *, within: str = "") -> list[str]:
    """What `check` finds in the modules whose names begin with `within`: a line each, so that one
    run shows all."""
    return [
        offence
        for name, tree in modules().items()
        if name.startswith(within)
        for offence in check(name, tree)
    ]


def test_imports_go_down_only() -> None:
    def upward(module: str, tree: ast.Module) -> Iterator[str]:
        for _, name in imports(tree):
            if (
                module not in OURS
                and name.split(".")[0] in OURS
                and name not in OURS
                and layer(name) < layer(module)
            ):
                yield f"{module} imports {name} from a layer above it"

    assert offences(upward) == []


# In each of these the modules and packages that are directly inside are rooms.
HOUSES = tuple(
    f"{app}.{layer}"
    for app in ("runs", "metrics", "evalhub.campaigns", "evalhub.pools", "evalhub.suites")
    for layer in ("models", "services", "questions", "charts", "exports", "api", "pages")
)


def rooms(house: str) -> dict[str, set[str]]:
    """Return the rooms of a package, each with those that it imports."""
    within: dict[str, set[str]] = {}
    for module, tree in modules().items():
        if not module.startswith(house + "."):
            continue
        room = module.removeprefix(house + ".").split(".")[0]
        imported = within.setdefault(room, set())
        for _, name in imports(tree):
            if name.startswith(house + "."):
                imported.add(name.removeprefix(house + ".").split(".")[0])
        imported.discard(room)
    return within


@pytest.mark.parametrize("house", HOUSES)
def test_rooms_of_a_layer_import_each_other_in_one_direction(house: str) -> None:
    TopologicalSorter(rooms(house)).prepare()


def test_runs_names_the_computed_side_only_in_its_interfaces() -> None:
    def crossing(module: str, tree: ast.Module) -> Iterator[str]:
        allowed = (
            ("metrics.engine", "metrics.services")
            if module.startswith(INTERFACES)
            else ("metrics.engine",)
        )
        for _, name in imports(tree):
            if name.startswith("metrics.") and not name.startswith(allowed):
                yield f"{module} imports {name}"

    assert offences(crossing, within="runs.") == []


def test_api_and_pages_stand_side_by_side() -> None:
    """Neither knows the other, and what both stand on (questions, charts, exports, services) knows
    none of them."""

    def knowing(module: str, tree: ast.Module) -> Iterator[str]:
        beside = {"metrics.api": ("metrics.pages",), "metrics.pages": ("metrics.api",)}
        forbidden = beside.get(".".join(module.split(".")[:2]), ("metrics.api", "metrics.pages"))
        for _, name in imports(tree):
            if name.startswith(forbidden):
                yield f"{module} imports {name}"

    checked = ("api", "pages", "questions", "charts", "exports", "services")
    assert [
        offence for name in checked for offence in offences(knowing, within=f"metrics.{name}")
    ] == []


def documented(text: str) -> str:
    """Return `text` with the table of layers as it is above."""
    rows = "".join(
        f"| {', '.join(f'`{prefix}`' for prefix in prefixes)} | {holds} |\n"
        for prefixes, holds in LAYERS
    )
    table = f"| layer | holds |\n| --- | --- |\n{rows}"
    return re.sub(r"\| layer \|.*?\n(?=\n)", lambda _: table, text, count=1, flags=re.DOTALL)


def test_the_documented_layers_are_these() -> None:
    text = DOCUMENTED.read_text()
    assert text == documented(text), "python -m tests.test_architecture writes the table anew"


def test_every_layer_has_the_same_packages() -> None:
    for name in ("services", "api", "pages", "charts", "exports"):
        layer_of = ROOT / "metrics" / name
        packages = {path.parent.name for path in layer_of.glob("*/__init__.py")}
        assert packages <= PACKAGES | (UNDER_SERVICES if name == "services" else set()), name


def test_the_engine_needs_numpy_and_scipy_only() -> None:
    def foreign(module: str, tree: ast.Module) -> Iterator[str]:
        for _, name in imports(tree):
            if name.split(".")[0] in ("django", "rest_framework", "celery", "runs", "evalhub"):
                yield f"{module} imports {name}"

    assert offences(foreign, within="metrics.engine") == []


# What the integrations of the client import; they are imported by users of these libraries only.
WITH_LIBRARIES = {
    "evalhub.client.mcp": {"mcp"},
    "evalhub.client.mlflow": {"mlflow"},
    "evalhub.client.pyterrier": {"ir_measures", "pandas", "pyterrier"},
    "evalhub.client.pytest_plugin": {"pytest"},
    "evalhub.client.wandb": {"wandb"},
}


def loaded(tree: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported: not what is inside its functions, and not for type
    checkers."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from loaded(node)


def test_the_client_needs_the_standard_library_and_httpx_only() -> None:
    """It is installed where no server is, under another name: its own modules are imported
    relatively. A function may import another library when it is called."""

    def foreign(module: str, tree: ast.Module) -> Iterator[str]:
        integration = ".".join(module.split(".")[:3])
        own = WITH_LIBRARIES.get(integration, set())
        for node in loaded(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                named = {
                    (node.module or "").split(".")[0],
                    *(alias.name for alias in node.names if not node.module),
                }
                modules_named = {f"evalhub.client.{name}" for name in named} & set(WITH_LIBRARIES)
                if modules_named and integration not in WITH_LIBRARIES:
                    yield f"{module} imports {', '.join(modules_named)}"
                continue
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                if name.split(".")[0] not in {*sys.stdlib_module_names, "httpx", *own}:
                    yield f"{module} imports {name}"

    assert offences(foreign, within="evalhub.client") == []
    assert any(name.startswith("evalhub.client.") for name in modules())


if __name__ == "__main__":
    DOCUMENTED.write_text(documented(DOCUMENTED.read_text()))
