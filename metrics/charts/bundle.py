"""Vega, Vega-Lite and vega-embed in one script, made once from what vl-convert carries, so that no page needs another
host."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from django.conf import settings

_SNIPPET = "window.vegaEmbed = vegaEmbed;"
# What the script is made of decides its name, so that a browser may keep it for good.
BUNDLE_NAME = hashlib.sha256(f"{version('vl-convert-python')} {_SNIPPET}".encode()).hexdigest()[:16]


def read_bundle() -> bytes:
    """Return the script compressed with gzip; made at the first call on a data folder, which takes some seconds."""
    path: Path = settings.EVALHUB_DATA / "scripts" / f"vega-{BUNDLE_NAME}.js.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        # One process makes it while others wait for the file. The kernel frees the lock if it dies.
        with (path.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                content = gzip.compress(_made(), 9, mtime=0)
                with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                    file.write(content)
                os.replace(file.name, path)
    return path.read_bytes()


def _made() -> bytes:
    """Make it in a separate process: vl-convert holds the interpreter's lock for seconds."""
    program = "import sys, vl_convert; sys.stdout.write(vl_convert.javascript_bundle(sys.argv[1]))"
    made = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program, _SNIPPET], check=True, capture_output=True
    )
    return made.stdout
