"""A Celery application whose jobs take SLOW_SECONDS longer and may take LIMIT_SECONDS, for faults in the middle of one.

A run whose tag begins with `greedy` needs more memory than there is: its process is killed, as the
kernel does it.
"""

from __future__ import annotations

import os
import signal
import time
from importlib import import_module
from typing import Any

from celery import signals

from evalhub.serving.celery import app

app.conf.worker_soft_shutdown_timeout = 1.0
if limit := os.environ.get("LIMIT_SECONDS"):
    app.conf.task_soft_time_limit = float(limit)


@signals.worker_process_init.connect
def slow_down(**options: Any) -> None:
    # Django is not set up yet when Celery loads this module.
    for module, name in (
        ("metrics.services.values.evaluate", "_compute"),
        ("metrics.services.comparisons.stored", "encode"),
    ):
        _slow_down(import_module(module), name)


def _slow_down(module: Any, name: str) -> None:
    call = getattr(module, name)

    def slow(*arguments: Any) -> Any:
        run = getattr(arguments[0], "run", None)
        if run and run.tag.startswith("greedy"):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(float(os.environ.get("SLOW_SECONDS", "0")))
        return call(*arguments)

    setattr(module, name, slow)
