"""Run the client's tests with the real libraries: `make integrations`, or `make integrations ONLY="ranx beir"`.

Each library is installed with the client's wheel into an environment of its own,
.evalhub/integrations/NAME, where nothing of the server is; libraries that need the same large
packages share one. A server is started for the tests, which reach it as a user does, by EVH_URL and
EVH_TOKEN. Models and collections are made by the tests.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.reliability.servers import ROOT, Server, embedded_server

HERE = Path(__file__).resolve().parent
PLACE = ROOT / ".evalhub/integrations"
SOURCE = ROOT / "evalhub/client"
# What is installed into each environment, with the client and pytest.
ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    # This torch has a build without GPU; a newer one would be taken with gigabytes of it.
    "embeddings": (
        "torch==2.13.0",
        "sentence-transformers[train]==6.2.0",
        "mteb>=2.26,<2.27",
        "beir==2.2.0",
    ),
    "ir_datasets": ("ir-datasets==0.6.3", "ir-measures==0.4.3"),
    "pyserini": ("ir-measures==0.4.3", "pytrec-eval-terrier==0.5.11"),
    "mcp": ("mcp==2.3.0",),
    "mlflow": ("mlflow==3.17.2",),
    "notebooks": ("pandas==3.1.1", "ipython==9.18.1"),
    "pyterrier": ("pyterrier==1.1.2",),
    "ranx": ("ranx==0.3.21", "pyarrow"),
    "statistics": ("pingouin==0.7.0", "baycomp==1.0.3", "scikit-posthocs==0.17.1"),
    "wandb": ("wandb==0.31.0",),
}
# The tests of test_NAME.py run in this environment.
INTEGRATIONS: dict[str, str] = {
    "beir": "embeddings",
    "ir_datasets": "ir_datasets",
    "mteb": "embeddings",
    "pyserini": "pyserini",
    "sentence_transformers": "embeddings",
    "mcp": "mcp",
    "mlflow": "mlflow",
    "notebooks": "notebooks",
    "pyterrier": "pyterrier",
    "ranx": "ranx",
    "statistics": "statistics",
    "wandb": "wandb",
}
# Models and data sets are never looked for elsewhere.
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "WANDB_MODE": "disabled",
}


def build(folder: Path) -> Path:
    """Build the client's wheel into a folder, where it is not there yet."""
    if not list(folder.glob("evalhub_client-*.whl")):
        command = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            str(folder),
        ]
        subprocess.run([*command, str(SOURCE)], check=True, cwd=folder)
    (wheel,) = folder.glob("evalhub_client-*.whl")
    return wheel


def install(name: str, folder: Path) -> Path:
    """Make the environment, or bring into it what has changed: its libraries, the client. Returns its Python."""
    place, requirements = PLACE / name, "\n".join(ENVIRONMENTS[name])
    python = place / "bin/python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if _noted(place, "requirements") != requirements:
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run([*pip, "pytest>=9", str(build(folder)), *ENVIRONMENTS[name]], check=True)
        (place / "requirements").write_text(requirements)
    digest = hashlib.sha256(
        b"".join(path.read_bytes() for path in sorted(SOURCE.glob("*.*")))
    ).hexdigest()
    if _noted(place, "client") != digest:
        subprocess.run([*pip, "--no-deps", "--force-reinstall", str(build(folder))], check=True)
        (place / "client").write_text(digest)
    return python


def python_of(name: str) -> Path | None:
    """The Python of an environment, where it was made."""
    python = PLACE / name / "bin/python"
    return python if python.exists() else None


def _noted(place: Path, name: str) -> str:
    return (place / name).read_text() if (place / name).exists() else ""


def run(name: str, python: Path, server: Server, options: list[str]) -> bool:
    """Run the tests of an integration in a folder of their own; whether they passed."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("EVALHUB_", "EVH_", "PYTHON"))
    }
    real_data = {key: value for key, value in os.environ.items() if key == "EVALHUB_REAL_DATA"}
    with tempfile.TemporaryDirectory(prefix=f"evalhub-{name}-") as home:
        place = {
            "HOME": home,
            "EVH_CONFIG": f"{home}/none",
            "PATH": f"{python.parent}{os.pathsep}{environment['PATH']}",
        }
        hub = {"EVH_URL": server.url, "EVH_TOKEN": server.token}
        command = [
            str(python),
            "-m",
            "pytest",
            "-c",
            str(HERE / "pytest.ini"),
            "--confcutdir",
            str(HERE),
        ]
        command += ["-p", "no:cacheprovider", *options, str(HERE / f"test_{name}.py")]
        done = subprocess.run(
            command,
            env={**environment, **real_data, **OFFLINE, **place, **hub},
            cwd=home,
            check=False,
        )
    return done.returncode == 0


def main() -> None:
    """Run the integrations that are named, or all; ends with status 1 where one of them failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.integrations", description=__doc__.splitlines()[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(INTEGRATIONS))
    parser.add_argument(
        "-k", metavar="EXPRESSION", help="the tests with these words in their names"
    )
    parser.add_argument("-s", action="store_true", help="show what the tests print")
    args = parser.parse_args()
    if unknown := sorted(set(args.names) - set(INTEGRATIONS)):
        parser.error(
            f"there is no integration {', '.join(unknown)}; there are {', '.join(INTEGRATIONS)}"
        )
    options = [*(["-k", args.k] if args.k else []), *(["-s"] if args.s else [])]
    results = {}
    with tempfile.TemporaryDirectory(prefix="evalhub-integrations-") as folder:
        names = args.names or list(INTEGRATIONS)
        # Installing takes minutes and may fail: no server stands idle meanwhile.
        pythons = {
            name: install(name, Path(folder))
            for name in dict.fromkeys(INTEGRATIONS[name] for name in names)
        }
        with embedded_server(Path(folder) / "data") as server:
            server.token = server.token or server.make_admin()
            for name in names:
                start = time.monotonic()
                passed = run(name, pythons[INTEGRATIONS[name]], server, options)
                results[name] = (
                    f"{'passed' if passed else 'FAILED'} in {time.monotonic() - start:.0f} s"
                )
    for name, result in results.items():
        sys.stdout.write(f"{name}: {result}\n")
    sys.exit(any(result.startswith("FAILED") for result in results.values()))


if __name__ == "__main__":
    main()
