"""The Celery application. Messages only announce work: the database is the queue, and every worker runs a
dispatcher."""

import os
import sys
from logging.config import dictConfig
from typing import Any

from celery import Celery, signals
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
# Celery's Django part would load every page to check it; the worker's own step checks what matters
# to it.
os.environ.setdefault("CELERY_SKIP_CHECKS", "true")

app = Celery("evalhub")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["metrics"])
# Otherwise Celery closes the connection to the database before and after each task: to open one
# takes PostgreSQL longer than to store a run. The worker closes those that are old or broken
# (evalhub/serving/worker.py).
app.conf["CELERY_DB_REUSE_MAX"] = sys.maxsize


@signals.setup_logging.connect
def set_up_logging(**options: Any) -> None:
    """Configure the service's own log in the worker and in each process of its pool, instead of Celery's."""
    dictConfig(settings.LOGGING)
