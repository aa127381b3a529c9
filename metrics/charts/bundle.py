"""Vega, Vega-Lite and vega-embed in one script, built once from vl-convert, so that pages need no
other host."""

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
# The name depends on the content, so that browsers can keep the script for good.
BUNDLE_NAME = hashlib.sha256(f"{version('vl-convert-python')} {_SNIPPET}".encode()).hexdigest()[:16]


def read_bundle() -> bytes:
    """Return the script compressed with gzip.

    The first call on a data folder builds it, which takes some seconds.
    """
    path: Path = settings.EVALHUB_DATA / "scripts" / f"vega-{BUNDLE_NAME}.js.gz"
    path.parent.mkdir(parents=True, exist_ok=True)

    if not path.exists():
        # One process builds it while others wait for the lock, which the kernel frees if it dies.
        with (path.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                content = gzip.compress(_build_bundle(), 9, mtime=0)
                # Readers see the whole file or none.
                with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                    file.write(content)
                os.replace(file.name, path)

    return path.read_bytes()


def _build_bundle() -> bytes:
    """Build the script in a process of its own: vl-convert holds the GIL for seconds."""
    program = "import sys, vl_convert; sys.stdout.write(vl_convert.javascript_bundle(sys.argv[1]))"
    process = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program, _SNIPPET], check=True, capture_output=True
    )
    return process.stdout
