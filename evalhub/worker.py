"""What a Celery worker does beside consuming: it dispatches. Loaded by every worker through CELERY_IMPORTS."""

from __future__ import annotations

from typing import Any

from celery import bootsteps

from evalhub.celery import app
from metrics.services.dispatch import Dispatcher
from metrics.tasks import evaluate
from runs.formats.scan import warm_up


def publish(evaluation_id: int) -> None:
    evaluate.apply_async(kwargs={"evaluation_id": evaluation_id})


class DispatcherStep(bootsteps.StartStopStep):
    """Runs the dispatcher as a thread of the worker's main process, beside its consumer."""

    requires = ("celery.worker.components:Pool",)

    def create(self, worker: Any) -> Any:
        return Dispatcher(publish)


# Before the pool forks, so that its processes share the compiled kernels.
warm_up()
app.steps["worker"].add(DispatcherStep)
