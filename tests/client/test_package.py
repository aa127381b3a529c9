"""The wheel of the client: what it holds, and that it works where nothing else is."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

import pytest

from evalhub.client import __version__
from tests.reliability.servers import ROOT
from tests.reliability.wheel import link, needed

SOURCE = ROOT / "evalhub/client"


@pytest.mark.slow
def test_the_wheel_works_alone(tmp_path: Path) -> None:
    """Built as pip builds it, then used in an environment that has httpx and nothing of the server."""
    built = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(tmp_path),
        str(SOURCE),
    ]
    done = subprocess.run(built, cwd=tmp_path, capture_output=True, text=True, check=False)
    if "Could not find a version" in done.stderr or "No matching distribution" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("evalhub_client-*.whl")
    names = {name for name in ZipFile(wheel).namelist() if not name.startswith("evalhub_client-")}
    sources = [*SOURCE.rglob("*.py"), *SOURCE.glob("*.pyi"), SOURCE / "py.typed"]
    assert names == {f"evalhub_client/{path.relative_to(SOURCE)}" for path in sources}
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin/python"
    installed = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*installed, str(wheel)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (own,) = metadata.distributions(name="evalhub-client", path=[str(packages)])
    for name in needed(own.requires or []):
        link(metadata.distribution(name), packages)
    process = subprocess.run(
        [environment / "bin/evh", "--version"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout == f"evalhub-client {__version__}\n"
    tried = "import sys, evalhub_client as evh; evh.connect('http://localhost', 'x'); print(*sys.modules)"
    loaded = subprocess.run(
        [python, "-c", tried], check=True, capture_output=True, text=True, cwd=tmp_path
    ).stdout
    assert {"django", "numpy", "evalhub", "runs", "metrics"}.isdisjoint(loaded.split())
