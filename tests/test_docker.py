"""The files of docker/: what they promise, checked without an engine."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.reliability.compose import dockerfile, example_environment, load, path_of, variables
from tests.reliability.servers import ROOT

COMPOSE = load(example_environment())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = ("migrate", "web", "worker")


def test_no_secret_has_a_default() -> None:
    for name in ("EVALHUB_SECRET_KEY", "POSTGRES_PASSWORD"):
        with pytest.raises(KeyError, match=name):
            load({**example_environment(), name: ""})


def test_the_example_names_every_variable_that_the_file_asks_for() -> None:
    assert variables() - example_environment().keys() == {"EVALHUB_VERSION"}
    assert example_environment().keys() - variables() == set()


def test_every_setting_in_the_file_is_one_that_is_read() -> None:
    read = set(
        re.findall(r'env\.\w+\(\s*"(EVALHUB_\w+)"', (ROOT / "evalhub/settings.py").read_text())
    )
    for name in OURS:
        assert SERVICES[name]["environment"].keys() <= read


def test_redis_keeps_its_messages_and_refuses_instead_of_dropping() -> None:
    command = SERVICES["redis"]["command"]
    options = dict(zip(command[1::2], command[2::2], strict=True))
    assert options["--appendonly"] == "yes"
    assert options["--appendfsync"] == "everysec"
    assert options["--maxmemory-policy"] == "noeviction"


def test_nothing_starts_before_what_it_needs() -> None:
    migrated, healthy = (
        {"condition": "service_completed_successfully"},
        {"condition": "service_healthy"},
    )
    assert SERVICES["migrate"]["depends_on"] == {"postgres": healthy}
    assert SERVICES["web"]["depends_on"] == {"migrate": migrated, "postgres": healthy}
    assert SERVICES["worker"]["depends_on"] == {
        "migrate": migrated,
        "postgres": healthy,
        "redis": healthy,
    }


@pytest.mark.parametrize("name", list(SERVICES))
def test_every_service_is_bounded_restarted_and_watched(name: str) -> None:
    service = SERVICES[name]
    assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory"}
    assert service["restart"] == ("on-failure:5" if name == "migrate" else "unless-stopped")
    assert service["read_only"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert name == "web" or "healthcheck" in service  # the web server's is the image's
    assert not service.get("privileged")


@pytest.mark.parametrize("name", OURS)
def test_our_processes_have_no_rights_and_share_the_data(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["volumes"] == ["data:/var/lib/evalhub"]
    assert service["environment"]["EVALHUB_DATA"] == "/var/lib/evalhub"
    assert service["init"]


def test_every_volume_is_named_and_only_the_web_server_listens() -> None:
    mounted = {
        volume.split(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", ())
    }
    assert mounted == set(COMPOSE["volumes"])
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["web"]
    assert SERVICES["web"]["ports"] == ["127.0.0.1:8000:8000"]


@pytest.mark.parametrize("image", [SERVICES["postgres"]["image"], SERVICES["redis"]["image"]])
def test_images_are_pinned_to_a_version(image: str) -> None:
    assert re.fullmatch(r"\w+:\d+\.\d+(\.\d+)?-\w+", image)


def test_the_image_is_built_in_two_stages_from_a_pinned_base_and_runs_as_nobody() -> None:
    steps = dockerfile()
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.\d+\.\d+-slim-\w+", steps[0][1])
    assert [rest for word, rest in steps if word == "FROM"] == [
        "${PYTHON_IMAGE} AS build",
        "${PYTHON_IMAGE}",
    ]
    last = steps[[i for i, (word, _) in enumerate(steps) if word == "FROM"][-1] :]
    words = dict(last)
    assert words["USER"] == "10001:10001"
    assert "/healthz" in words["HEALTHCHECK"]
    assert words["COPY"] == "--from=build /opt/evalhub /opt/evalhub"
    assert not any("pip" in rest or "apt" in rest for word, rest in last if word == "RUN")


def test_the_build_is_given_no_more_than_it_copies() -> None:
    """Neither version control nor an environment file may reach a layer."""
    lines = path_of("Dockerfile.dockerignore").read_text().splitlines()
    assert lines[0] == "**"
    names = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        rest.split()[-2] for word, rest in dockerfile() if word == "COPY" and "--from" not in rest
    }
    assert names == copied
    assert "docker/.env" in (ROOT / ".gitignore").read_text().splitlines()


def test_nothing_stands_between_the_container_and_what_it_runs() -> None:
    """A shell in between would swallow the signal to stop."""
    words = [word for word, _ in dockerfile()]
    assert "ENTRYPOINT" not in words
    (command,) = [rest for word, rest in dockerfile() if word == "CMD" and "evalhub" in rest]
    assert command.startswith("[")
