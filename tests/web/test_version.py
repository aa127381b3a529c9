"""Which EvalHub this is: on the command line, over the API, at the foot of every page, and always the same."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from typing import Any

import pytest
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from evalhub import version, version_view
from metrics.engine import ENGINE_VERSION
from metrics.services.comparisons.content import STATISTICS_VERSION
from tests.conftest import GOOD
from tests.reliability.servers import ROOT
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]


def test_the_version_is_that_of_the_installed_package() -> None:
    assert metadata.version("evalhub") == version.VERSION
    done = subprocess.run(
        [sys.executable, "-m", "evalhub", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == (f"evalhub {version.VERSION}\n", "")


def test_files_that_nobody_installed_have_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", none)
    assert version._installed() == "0+unknown"


def test_a_program_reads_the_versions_and_their_types(anonymous: APIClient, submit: Any) -> None:
    body = anonymous.get("/api/v1/version/").json()
    assert body == {
        "version": version.VERSION, "engine_version": ENGINE_VERSION, "statistics_version": STATISTICS_VERSION,
        "api_version": "1", "least_client": "0.1", "features": ["me", "run_states", "sha256_filter", "labels", "gate"],
    }  # fmt: skip
    values = anonymous.get(f"/api/v1/runs/{submit(GOOD).pk}/values/").json()
    assert values["engine_version"] == body["engine_version"]
    document = SchemaGenerator().get_schema(public=True)
    described = document["components"]["schemas"]["Version"]
    kinds = {str: "string", int: "integer", list: "array"}
    assert {name: kinds[type(value)] for name, value in body.items()} == {
        name: field["type"] for name, field in described["properties"].items()
    }


def test_every_answer_of_the_api_names_the_oldest_client(anonymous: APIClient) -> None:
    for path in ("/api/v1/version/", "/api/v1/nothing/", "/api/v1/runs/?id=x", "/api/v1/me/"):
        assert anonymous.get(path)["X-Evalhub-Least-Client"] == version.LEAST_CLIENT, path
    assert not Client().get("/").has_header("X-Evalhub-Least-Client")


def test_another_version_is_told_to_who_has_this_one(
    anonymous: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = anonymous.get("/api/v1/version/")
    headers = {"If-None-Match": first["ETag"]}
    assert anonymous.get("/api/v1/version/", headers=headers).status_code == 304
    monkeypatch.setattr(version_view, "VERSION", "9.9.9")
    later = anonymous.get("/api/v1/version/", headers=headers)
    assert (later.status_code, later.json()["version"]) == (200, "9.9.9")


@pytest.mark.parametrize("address", ["/", "/login/", "/measures/", "/nowhere/"])
def test_every_page_has_the_version_at_its_foot(db: None, address: str) -> None:
    foot = Client().get(address).content.decode().partition("<footer")[2]
    assert f">EvalHub {version.VERSION}: " in foot
