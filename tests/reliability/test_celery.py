"""The settings of Celery that are in force: one under a wrong name is ignored without a word."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from celery.fixups.django import DjangoWorkerFixup

from evalhub.serving.celery import app
from tests.reliability.rigs import installed, own_redis
from tests.reliability.servers import ROOT, clean_environment


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("task_acks_late", True),
        ("task_reject_on_worker_lost", True),
        ("task_ignore_result", True),
        ("task_always_eager", False),
        ("task_time_limit", 600),
        ("task_soft_time_limit", 540),
        ("task_default_queue", "evalhub-eval"),
        ("accept_content", ["json"]),
        ("result_backend", None),
        ("broker_url", "memory://localhost/"),
        ("broker_connection_max_retries", None),
        ("broker_connection_retry_on_startup", True),
        ("worker_prefetch_multiplier", 1),
        ("worker_max_tasks_per_child", 200),
        ("worker_max_memory_per_child", 1_000_000),
        ("worker_soft_shutdown_timeout", 8),
    ],
)
def test_celery_has_the_settings_that_it_was_given(setting: str, value: object) -> None:
    assert getattr(app.conf, setting) == value


def test_a_worker_keeps_its_connection_to_the_database() -> None:
    """The setting has no place among those with Celery's prefix, and without it each task opens a connection."""
    assert DjangoWorkerFixup(app).db_reuse_max == sys.maxsize


SCRIPT = """
import json
from evalhub.serving.celery import app
channel = app.connection_for_write().channel()
names = (
    "visibility_timeout", "global_keyprefix", "unacked_restore_interval", "unacked_restore_throttle",
    "socket_timeout", "socket_connect_timeout", "socket_keepalive", "health_check_interval",
)
retries = {name: app.conf.broker_transport_options[name] for name in (
    "max_retries", "interval_start", "interval_step", "interval_max")}
print(json.dumps({**{name: getattr(channel, name) for name in names}, **retries}))
"""


@pytest.mark.skipif(
    not (installed() or os.environ.get("EVALHUB_TEST_REQUIRED")), reason="no Redis to start"
)
def test_the_channel_to_redis_has_the_options_that_it_was_given(tmp_path: Path) -> None:
    """Without its time limits a worker that lost its network for ten seconds never hears again."""
    with own_redis() as redis:
        environment = {**clean_environment(tmp_path), "EVALHUB_REDIS_URL": redis.url}
        command = [sys.executable, "manage.py", "shell", "-v", "0", "-c", SCRIPT]
        done = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True
        )
    effective: dict[str, Any] = json.loads(done.stdout)
    assert effective == {
        "visibility_timeout": 900,
        "global_keyprefix": "evalhub:",
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "socket_timeout": 10,
        "socket_connect_timeout": 3,
        "socket_keepalive": True,
        "health_check_interval": 5,
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0.2,
        "interval_max": 0.2,
    }
    assert effective["visibility_timeout"] > app.conf.task_time_limit


LOADED = """
import django
django.setup()
from evalhub.serving.processes import load_web, load_worker
load_web()
load_worker()
from celery.apps.worker import REMAP_SIGTERM
print(REMAP_SIGTERM)
"""


def test_a_worker_of_ours_answers_sigterm_with_the_soft_shutdown(tmp_path: Path) -> None:
    """Celery reads the setting when it is imported: nothing may import it earlier, nor a web server beside the worker."""
    environment = {**clean_environment(tmp_path), "DJANGO_SETTINGS_MODULE": "evalhub.settings"}
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "SIGQUIT\n"
