"""docker/compose.yaml as plain processes: what docker compose would make of it, read from the file itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from tests.reliability.servers import ROOT

FILE = ROOT / "docker/compose.yaml"
EXAMPLE = ROOT / "docker/env.example"
_VARIABLE = re.compile(r"\$\{(\w+)(?:(:[-?])([^}]*))?\}")


def example_environment() -> dict[str, str]:
    """docker/env.example, with its blanks filled in."""
    lines = [line for line in EXAMPLE.read_text().splitlines() if line and not line.startswith("#")]
    environment = dict(line.split("=", 1) for line in lines)
    secrets = ("EVALHUB_SECRET_KEY", "EVALHUB_METRICS_TOKEN", "POSTGRES_PASSWORD")
    assert all(environment[name] == "" for name in secrets), "an example holds no secret"
    return {**environment, **dict.fromkeys(secrets, "made-up-for-the-tests-made-up-for-the-tests")}


def load(environment: dict[str, str]) -> dict[str, Any]:
    """The file with the variables of its values replaced, as docker compose does; KeyError where one is needed."""

    def value(match: re.Match[str]) -> str:
        name, how, other = match.groups()
        if environment.get(name):
            return environment[name]
        if how == ":-":
            return str(other)
        raise KeyError(name)

    def replaced(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: replaced(inner) for key, inner in node.items()}
        if isinstance(node, list):
            return [replaced(inner) for inner in node]
        return _VARIABLE.sub(value, node) if isinstance(node, str) else node

    loaded: dict[str, Any] = replaced(yaml.safe_load(FILE.read_text()))
    return loaded


def variables() -> set[str]:
    """The names that the file asks for."""
    return {match[1] for match in _VARIABLE.finditer(FILE.read_text())}


def dockerfile() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile: word and the rest, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "docker/Dockerfile").read_text(), flags=re.MULTILINE)
    joined = text.replace("\\\n", " ")
    return [
        (line.split(None, 1)[0], line.split(None, 1)[1])
        for line in joined.splitlines()
        if line.strip()
    ]


def path_of(name: str) -> Path:
    return ROOT / "docker" / name
