"""The environment of the tests, set before Django reads it: nothing of the user's own is touched or used.

EVALHUB_TEST_ON=services runs the tests that depend on the kind of database on the PostgreSQL that
EVALHUB_TEST_DATABASE_URL names instead of SQLite.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

_KEPT = ("EVALHUB_TEST_", "EVALHUB_REAL_DATA")

for name in [
    name for name in os.environ if name.startswith("EVALHUB_") and not name.startswith(_KEPT)
]:
    del os.environ[name]

_data = tempfile.mkdtemp(prefix="evalhub-tests-")
atexit.register(shutil.rmtree, _data, ignore_errors=True)
os.environ["EVALHUB_DATA"] = _data
os.environ["EVALHUB_SECRET_KEY"] = "only-for-tests-only-for-tests-only-for-tests"
# The matrices of tests are small: threads for them only wait, busily.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What a test has done is on the next board that it reads.
os.environ["EVALHUB_BOARD_SECONDS"] = "0"
# What a test forgets is computed again.
os.environ["EVALHUB_KEPT_ANSWERS_MB"] = "0"
if os.environ.get("EVALHUB_TEST_ON") == "services":
    os.environ["EVALHUB_DATABASE_URL"] = os.environ["EVALHUB_TEST_DATABASE_URL"]
