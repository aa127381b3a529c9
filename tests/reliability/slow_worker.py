"""A Celery application whose evaluations take SLOW_SECONDS longer, for faults in the middle of one."""

from __future__ import annotations

import os
import time
from importlib import import_module
from typing import Any

from celery import signals

from evalhub.celery import app

app.conf.worker_soft_shutdown_timeout = 1.0


@signals.worker_process_init.connect
def slow_down(**options: Any) -> None:
    # Django is not set up yet when Celery loads this module.
    module = import_module("metrics.services.evaluate")
    compute = module._compute

    def slow(*arguments: Any) -> Any:
        time.sleep(float(os.environ.get("SLOW_SECONDS", "0")))
        return compute(*arguments)

    module._compute = slow  # type: ignore[attr-defined]
