"""Build the wheel and use EvalHub as it installs itself, far from any checkout: `make wheel-test`.

The virtual environment is new and holds the wheel and what it declares, nothing else: the
distributions that it asks for, and those that they ask for, are linked from the environment of the
tests instead of being unpacked once more. So a dependency that is not declared is missing, though
the tests' environment has it.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

import httpx
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.reliability.readme import check_answers, run_readme
from tests.reliability.servers import NO_CERTIFICATES, ROOT, free_port

_PACKAGES = ("evalhub", "runs", "metrics")
# The first start of all, which compiles: a minute of a processor that others want as well.
_READY_SECONDS = 600.0
_LIBRARY = """
import sys
from metrics.engine import evaluate
found = evaluate({"1": {"a": 1, "b": 1}}, {"1": {"a": 2.0, "x": 1.0}}, "AP")
assert found.means == {"AP": 0.5}, found
assert not {"django", "celery", "runs", "evalhub"} & set(sys.modules), "the library loads the service"
"""


def build(folder: Path) -> Path:
    """Build the wheel of the checkout into a folder; it has every file of the packages that git knows."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(command, check=True, cwd=folder)
    (wheel,) = folder.glob("evalhub-*.whl")
    listed = subprocess.run(
        ["git", "ls-files", *_PACKAGES], cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = {
        name
        for name in ZipFile(wheel).namelist()
        if name.startswith(tuple(f"{package}/" for package in _PACKAGES))
    }
    assert names == set(listed.stdout.splitlines()), names ^ set(listed.stdout.splitlines())
    return wheel


def install_client(url: str, folder: Path) -> Path:
    """Make an environment with the client that a server offers, by the line of its page."""
    line = re.search(r"pip install (http\S+)", httpx.get(f"{url}/client/").text)
    assert line, "the page of the client has no line for pip"

    return install(line[1], folder, "evalhub-client")


def install(wheel: Path | str, folder: Path, distribution: str = "evalhub") -> Path:
    """Make an environment with the wheel and what it declares; returns its folder of commands."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    commands = folder / "bin"
    command = [sys.executable, "-m", "pip", "--python", str(commands / "python")]
    subprocess.run(
        [*command, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True
    )
    (packages,) = folder.glob("lib/python*/site-packages")
    (own,) = metadata.distributions(name=distribution, path=[str(packages)])
    for name in needed(own.requires or []):
        link(metadata.distribution(name), packages)
    subprocess.run([*command, "check"], check=True, stdout=subprocess.DEVNULL)
    return commands


def needed(requirements: list[str]) -> set[str]:
    """Return the names of the distributions that these requirements lead to, over all that they need themselves."""
    packages: set[tuple[str, str]] = set()
    waiting = [(text, "") for text in requirements]
    while waiting:
        text, extra = waiting.pop()
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        for wanted in {"", *requirement.extras}:
            if (name, wanted) not in packages:
                packages.add((name, wanted))
                waiting += [(inner, wanted) for inner in metadata.requires(name) or []]
    return {name for name, _ in packages}


def link(distribution: metadata.Distribution, packages: Path) -> None:
    """Link what a distribution has put into its folder of packages, its metadata among it, into another one."""
    tops = {Path(file).parts[0] for file in distribution.files or []} - {"..", "__pycache__"}
    for top in tops:
        target, source = packages / top, Path(str(distribution.locate_file(top)))
        if not target.exists() and source.exists():
            target.symlink_to(source)


@contextlib.contextmanager
def served(commands: Path, environment: dict[str, str], folder: Path) -> Iterator[str]:
    """`evalhub serve` from a folder; yields its address when it answers."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    serve = [str(commands / "evalhub"), "serve", "--bind", f"127.0.0.1:{port}"]
    process = subprocess.Popen(serve, env=environment, cwd=folder)
    try:
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{url}/readyz", verify=NO_CERTIFICATES).status_code == httpx.codes.OK:
                    break
            time.sleep(0.1)
        else:
            raise TimeoutError("the installed server is not ready")
        yield url
    finally:
        process.terminate()
        process.wait(30)


def use(commands: Path, home: Path, version: str) -> None:
    """Everything that the README does, with nothing but a home folder."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("EVALHUB_", "PYTHON", "XDG_"))
    }
    environment = {**clean, "HOME": str(home)}

    def run(*command: str) -> str:
        done = subprocess.run(
            command, env=environment, cwd=home, check=True, capture_output=True, text=True
        )
        return done.stdout

    evalhub, python = str(commands / "evalhub"), str(commands / "python")
    assert run(evalhub, "--version") == f"evalhub {version}\n"
    run(python, "-c", _LIBRARY)
    place = Path(run(python, "-c", "import evalhub; print(evalhub.__path__[0])").strip())
    assert commands.parent in place.parents, place
    with served(commands, environment, home) as url:
        token = run(evalhub, "create_admin", "alice").rsplit("token:", 1)[1].strip()
        check_answers(run_readme(url, token, home, python))
        page = httpx.get(f"{url}/collections/tiny/")
        assert "dense" in page.text
        style = page.text.partition('rel="stylesheet" href="')[2].partition('"')[0]
        assert httpx.get(f"{url}{style}").headers["content-type"].startswith("text/css")
        assert httpx.get(f"{url}/api/v1/version/").json()["version"] == version
        evh = str(install_client(url, home / "client") / "evh")
        assert (
            f"{url}/client/evalhub_client-{run(evh, '--version').split()[1]}-"
            in httpx.get(f"{url}/client/").text
        )
    data = (
        home / ".local/share/evalhub"
        if sys.platform == "linux"
        else home / "Library/Application Support/evalhub"
    )
    assert {"evalhub.sqlite3", "secret.key", "files"} <= {path.name for path in data.iterdir()}
    beside = {path.name for path in place.parent.iterdir() if "evalhub" in path.name}
    assert beside == {"evalhub", f"evalhub-{version}.dist-info"}, beside


def main() -> None:
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="evalhub-wheel-") as name:
        folder = Path(name)
        wheel = build(folder)
        sys.stdout.write(f"built {wheel.name} in {time.monotonic() - start:.0f} s\n")
        commands = install(wheel, folder / "venv")
        home = folder / "home"
        home.mkdir()
        use(commands, home, wheel.name.split("-")[1])
    sys.stdout.write(
        f"the wheel serves, from a folder of its own: {time.monotonic() - start:.0f} s in all\n"
    )


if __name__ == "__main__":
    main()
