"""The Celery application.

Messages only announce work: the database is the queue, and every worker runs a dispatcher.
"""

import os
import sys
from logging.config import dictConfig
from typing import Any

from celery import Celery, signals
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
# Celery's checks of Django would load every page; the worker checks what it needs itself.
os.environ.setdefault("CELERY_SKIP_CHECKS", "true")

app = Celery("evalhub")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["metrics"])
# Otherwise Celery closes the connection to the database before and after each task: to open one
# takes PostgreSQL longer than to store a run. The worker closes old and broken connections
# (evalhub/serving/worker.py).
app.conf["CELERY_DB_REUSE_MAX"] = sys.maxsize


@signals.setup_logging.connect
def set_up_logging(**options: Any) -> None:
    """Configure the log of the service instead of Celery's, in each process of a worker."""
    dictConfig(settings.LOGGING)
