"""The wheel in environments of its own, with pip and the package index: what the suite does not do.

    python -m tests.client.environments [--python PYTHON]...

For each Python: the size that the environment grows by, the time of the import and what it loads,
the command, and an errand against a server. Then both orders of installing and uninstalling beside
eval-hub-sdk, whose import name and command are those of the server here.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.reliability.servers import ROOT, Server, embedded_server

MOST_MEGABYTES = 6.0
MOST_SECONDS = 0.3
OTHER = "eval-hub-sdk[cli]==1.0.6"
# The processor time of the import alone, the best of five, which others on the machine do not
# change; every module that is neither of the standard library nor of httpx.
IMPORT = """
import json, subprocess, sys, time
code = "import time; start = time.process_time(); import evalhub_client; print(time.process_time() - start)"
best = min(float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
           for _ in range(5))
import evalhub_client
known = set(sys.stdlib_module_names) | {"httpx", "evalhub_client"}
# What httpx itself needs.
known |= {"anyio", "certifi", "h11", "httpcore", "idna", "sniffio", "typing_extensions", "exceptiongroup"}
top = {name.partition(".")[0] for name in sys.modules} - {"__main__", "__mp_main__"}
print(json.dumps([best, sorted(name for name in top - known if not name.startswith("_"))]))
"""
ERRAND = """
import sys
import evalhub_client as evh
with evh.connect() as hub:
    made = hub.create_collection(sys.argv[1], team=hub.me().teams[0]["slug"], measures=["AP", "nDCG@10"])
    made.upload_qrels(b"1 0 a 1\\n2 0 c 2\\n3 0 q 1\\n")
    made.upload_topics(b'{"_id": "1", "text": "cats"}\\n')
    run = made.submit({"1": {"a": 3.0, "b": 2.0}, "2": {"x": 3.0, "c": 2.0}}, tag="bm25", metadata="auto").wait(60)
    made.submit([("1", "z", 2.0), ("1", "a", 1.0), ("2", "c", 1.0), ("3", "q", 1.0)], tag="dense").wait(60)
    assert abs(run.means("AP")["AP"] - 0.5) < 1e-12, run.means("AP")
    assert [row["tag"] for row in made.leaderboard("AP").rows()] == ["dense", "bm25"]
    assert made.compare("bm25", "dense", measures=["AP"], tests=["sign"]).rows()[0]["wins"] == 2
    assert "<table>" in made.leaderboard()._repr_html_()
    try:
        made.submit(b"1 Q0 a 1 high x\\n")
        raise SystemExit("a bad file was accepted")
    except evh.BadFile as error:
        assert str(error).startswith("run:1: bad_score"), error
"""


class Environment:
    """A virtual environment with a pip of its own."""

    def __init__(self, folder: Path, python: str) -> None:
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        self.folder, self.python = folder, folder / "bin/python"

    def pip(self, *arguments: str) -> None:
        command = [
            str(self.python),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--quiet",
            *arguments,
        ]
        subprocess.run(command, check=True, cwd=self.folder)

    def run(self, *command: str, server: Server | None = None) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "HOME": str(self.folder)}
        if server:
            environment |= {"EVH_URL": server.url, "EVH_TOKEN": server.token}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )

    def megabytes(self) -> float:
        (packages,) = self.folder.glob("lib/python*/site-packages")
        return sum(path.stat().st_size for path in packages.rglob("*") if path.is_file()) / 1e6


def build(folder: Path) -> Path:
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
    subprocess.run([*command, str(ROOT / "evalhub/client")], check=True, cwd=folder)
    (wheel,) = folder.glob("evalhub_client-*.whl")
    return wheel


def alone(folder: Path, python: str, wheel: Path, server: Server) -> list[str]:
    """Install the wheel by itself, measure it, run an errand; return what is wrong."""
    environment = Environment(folder, python)
    before = environment.megabytes()
    environment.pip("install", str(wheel))
    grown = environment.megabytes() - before
    measured = environment.run(str(environment.python), "-c", IMPORT)
    if measured.returncode:
        return [f"{python}: the import fails: {measured.stderr}"]
    seconds, strange = json.loads(measured.stdout)
    errand = environment.run(str(environment.python), "-c", ERRAND, folder.name, server=server)
    output = environment.run(
        "evh", "leaderboard", folder.name, "--format", "json(tag)", server=server
    )
    version = environment.run(str(environment.python), "--version").stdout.split()[1]
    sys.stdout.write(
        f"Python {version}: {grown:.1f} MB, import {seconds:.3f} s, errand {'fails' if errand.returncode else 'runs'}\n"
    )
    wrong = [f"{version}: grown by {grown:.1f} MB"] if grown >= MOST_MEGABYTES else []
    wrong += [f"{version}: the import takes {seconds:.3f} s"] if seconds >= MOST_SECONDS else []
    wrong += [f"{version}: the import loads {', '.join(strange)}"] if strange else []
    wrong += [f"{version}: the errand fails: {errand.stderr}"] if errand.returncode else []
    if output.returncode or json.loads(output.stdout) != [{"tag": "dense"}, {"tag": "bm25"}]:
        wrong.append(f"{version}: evh leaderboard says {output.stdout}{output.stderr}")
    if not environment.run(str(environment.python), "-c", "import django").returncode:
        wrong.append(f"{version}: the environment has Django")
    return wrong


def beside(folder: Path, python: str, wheel: Path) -> list[str]:
    """Install and uninstall it before and after the other distribution; after each step both do what they did."""
    environment, wrong = Environment(folder, python), []
    ours = (
        ["evh", "--version"],
        [
            str(environment.python),
            "-c",
            "import evalhub_client; evalhub_client.connect('http://localhost')",
        ],
    )
    theirs = (
        ["evalhub", "--help"],
        [str(environment.python), "-c", "import evalhub, evalhub.client"],
    )
    steps = (
        ("install", OTHER, theirs), ("install", str(wheel), (*ours, *theirs)), ("uninstall", "eval-hub-sdk", ours),
        ("install", OTHER, (*ours, *theirs)), ("uninstall", "evalhub-client", theirs),
        ("uninstall", "eval-hub-sdk", ()), ("install", str(wheel), ours), ("install", OTHER, (*ours, *theirs)),
        ("uninstall", "evalhub-client", theirs),
    )  # fmt: skip
    for action, what, expected in steps:
        environment.pip(action, *(["--yes"] if action == "uninstall" else []), what)
        for command in expected:
            done = environment.run(*command)
            if done.returncode:
                wrong.append(f"after {action} {what}: {' '.join(command)} fails: {done.stderr}")
    sys.stdout.write(f"beside {OTHER}: {len(steps)} steps of install and uninstall\n")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--python", action="append", default=[], help="of an environment; may be repeated"
    )
    pythons = parser.parse_args().python or [sys.executable]
    with tempfile.TemporaryDirectory(prefix="evalhub-client-") as name:
        folder = Path(name)
        wheel = build(folder)
        wrong = []
        with embedded_server(folder / "data") as server:
            for number, python in enumerate(pythons):
                wrong += alone(folder / f"errand-{number}", python, wheel, server)
        # The other distribution needs Python 3.11.
        wrong += beside(folder / "beside", sys.executable, wheel)
    sys.stdout.write("".join(f"WRONG: {problem}\n" for problem in wrong) or "all of it holds\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
