"""Build docker/Dockerfile and evaluate a run with what it makes: `make image-test`.

Needs buildah, and a PostgreSQL and a Redis to start; it asks for no engine and no privileges beyond
those of chroot. The base image is the one that the Dockerfile names, or what --base says: another
image, or a folder that debootstrap filled with Python 3.11, also as `python`, and pip.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from evalhub.operating.simulation import TEXTBOOK_QRELS, TEXTBOOK_RUN
from tests.reliability.rigs import own_postgres, own_redis
from tests.reliability.servers import ROOT, SECRET_KEY, free_port, wait_until_evaluated

IMAGE = "localhost/evalhub-test"
# Certificates and pip's settings of this machine, for one that reaches a package index through a
# proxy of its own.
_OF_THIS_MACHINE = (Path("/etc/ssl/certs/ca-certificates.crt"), Path("/etc/pip.conf"))
_START_SECONDS = 120.0
_PROCESSES_AND_FILES = 4096


def buildah(*arguments: str) -> str:
    """Run buildah; its last line of output is what it made."""
    done = subprocess.run(
        ["buildah", *arguments], check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip().rpartition("\n")[2]


def import_folder(folder: Path) -> str:
    """Make an image of a folder that holds a file system."""
    image = "localhost/evalhub-test-base"
    container = buildah("from", "scratch")
    try:
        buildah("copy", "--quiet", container, str(folder), "/")
        buildah("commit", "--quiet", "--format", "docker", container, image)
    finally:
        buildah("rm", container)
    return image


def build(base: str | None) -> str:
    # chroot cannot raise a limit, and buildah asks for more than it has itself.
    limits = []
    for name, number in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        least = min(_PROCESSES_AND_FILES, resource.getrlimit(number)[0])
        limits += ["--ulimit", f"{name}={least}:{least}"]
    seen = [
        option
        for path in _OF_THIS_MACHINE
        if path.exists()
        for option in ("--volume", f"{path}:{path}:ro")
    ]
    chosen = ["--build-arg", f"PYTHON_IMAGE={base}"] if base else []
    # HEALTHCHECK is of Docker's format alone.
    return buildah("bud", "--isolation", "chroot", "--format", "docker", "--layers", *limits, *seen, *chosen,
                   "--file", "docker/Dockerfile", "--tag", IMAGE, ".")  # fmt: skip


@contextlib.contextmanager
def container(environment: dict[str, str]) -> Iterator[list[str]]:
    """Yield the beginning of a command that runs in the image, as its user, on this machine's network."""
    name = buildah("from", IMAGE)
    try:
        settings = [option for item in environment.items() for option in ("--env", "=".join(item))]
        yield [
            "buildah",
            "run",
            "--isolation",
            "chroot",
            "--network",
            "host",
            *settings,
            name,
            "--",
        ]
    finally:
        buildah("rm", name)


def evaluate_a_run() -> None:
    """Migrate, start web server and worker in one container each, submit the textbook's run and read its values."""
    port = free_port()
    with own_postgres() as postgres, own_redis() as redis, contextlib.ExitStack() as stack:
        environment = {
            "EVALHUB_DATABASE_URL": postgres.url,
            "EVALHUB_REDIS_URL": redis.url,
            "EVALHUB_SECRET_KEY": SECRET_KEY,
            "EVALHUB_WORKER_PROCESSES": "1",
        }
        inside = stack.enter_context(container(environment))
        user = subprocess.run(
            [*inside, "id", "-u"], check=True, capture_output=True, text=True
        ).stdout.strip()
        assert user == "10001", f"the image runs as user {user}"
        subprocess.run(
            [*inside, "evalhub", "migrate", "--no-input", "--verbosity", "0"], check=True
        )
        creation = subprocess.run(
            [*inside, "evalhub", "create_admin", "admin"],
            check=True,
            capture_output=True,
            text=True,
        )
        # One container: web server and worker share its data folder, as they share a volume
        # elsewhere.
        for command in (["web", "--bind", f"127.0.0.1:{port}"], ["worker"]):
            process = subprocess.Popen([*inside, "evalhub", *command], start_new_session=True)
            stack.callback(_stop, process)
        headers = {"Authorization": f"Bearer {creation.stdout.rsplit('token:', 1)[1].strip()}"}
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30
        ) as client:
            _wait_until_ready(client)
            api = "/api/v1/collections/"
            client.post(api, json={"slug": "textbook", "name": "Textbook"}).raise_for_status()
            client.post(
                f"{api}textbook/qrels/", files={"file": ("qrels", TEXTBOOK_QRELS)}
            ).raise_for_status()
            sent = (
                client.post(f"{api}textbook/runs/", files={"file": ("run", TEXTBOOK_RUN)})
                .raise_for_status()
                .json()
            )
            wait_until_evaluated(client, sent["url"])
            means = (
                client.get(f"{sent['url']}values/", params={"measures": "AP"})
                .raise_for_status()
                .json()["means"]
            )
    # The book's two average precisions.
    assert abs(means["AP"]["mean"] - (0.29 + 0.2611111) / 2) < 1e-6, means
    sys.stdout.write(f"the image evaluates: AP {means['AP']['mean']:.4f}\n")


def _wait_until_ready(client: httpx.Client) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError):
            if client.get("/readyz").status_code == httpx.codes.OK:
                return
        time.sleep(0.2)
    raise TimeoutError("the image's server is not ready")


def _stop(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, 15)
    process.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--base", help="an image, or a folder with a file system, to build on")
    base = parser.parse_args().base
    if not shutil.which("buildah"):
        sys.exit("make image-test needs buildah; on Debian: apt-get install buildah")
    start = time.monotonic()
    build(import_folder(Path(base)) if base and Path(base).is_dir() else base)
    sys.stdout.write(f"built {IMAGE} in {time.monotonic() - start:.0f} s\n")
    evaluate_a_run()


if __name__ == "__main__":
    main()
