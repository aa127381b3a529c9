"""System checks that refuse settings under which runs would be lost. Every command runs them first.

Django's own checks are about the code, not about an install, and load every page and endpoint: tests
and `evalhub check` run them.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks

from evalhub.settings import env
from runs.services.storage.stores.s3 import is_installed

# File systems that do not share locks and a memory-mapped log as SQLite needs them.
_NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "gluster", "lustre", "gpfs", "beegfs", "ocfs2", "gfs2",
            "fuse.sshfs", "fuse.gluster", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse")  # fmt: skip
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1", None)
_MIN_LEASE, _MAX_LEASE = 2, 3600
_MOUNTS = Path("/proc/self/mounts")
# The address at which the machines of most clouds find their metadata.
_METADATA = ip_address("169.254.169.254")

Messages = list[checks.CheckMessage]
# The checks of this module, which commands of the service run.
OWN_CHECKS = ("evalhub",)
# Those that do not need a writable data folder, for commands that must work on a read-only disk.
READING_CHECKS = ("evalhub.reading",)


@checks.register(*OWN_CHECKS, *READING_CHECKS)
def check_database(**options: Any) -> Messages:
    """Refuse SQLite for several machines and on a network file system."""
    if settings.EVALHUB_DATABASE_URL:
        return []

    messages: Messages = []
    if settings.EVALHUB_REDIS_URL:
        text = "workers on Redis with SQLite: a worker on another machine cannot share the database"
        hint = "set EVALHUB_DATABASE_URL to a PostgreSQL, or leave EVALHUB_REDIS_URL unset"
        is_local = urlsplit(settings.EVALHUB_REDIS_URL).hostname in _LOCAL_HOSTS
        if is_local:
            messages.append(checks.Warning(text, hint, id="evalhub.W001"))
        else:
            messages.append(checks.Error(text, hint, id="evalhub.E001"))

    kind = file_system(settings.EVALHUB_DATA)
    if kind.startswith(_NETWORK_FILE_SYSTEMS):
        text = (
            f"the SQLite database is in {settings.EVALHUB_DATA}, on a network file system ({kind})"
        )
        hint = (
            "set EVALHUB_DATA to a folder on a local disk, or EVALHUB_DATABASE_URL to a PostgreSQL"
        )
        messages.append(checks.Error(text, hint, id="evalhub.E002"))

    return messages


@checks.register(*OWN_CHECKS)
def check_data_folder(**options: Any) -> Messages:
    """Check that the data folder exists or can be created, and is writable."""
    folder = settings.EVALHUB_DATA
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        return []

    text = f"the data folder {folder} cannot be {'written to' if existing == folder else 'made'}"
    hint = f"let user {os.geteuid()} write to {existing}, or set EVALHUB_DATA to another folder"
    return [checks.Error(text, hint, id="evalhub.E003")]


@checks.register(*OWN_CHECKS, *READING_CHECKS)
def check_files(**options: Any) -> Messages:
    """Check that the client of an object store is installed."""
    if settings.EVALHUB_FILES and not is_installed():
        text = "EVALHUB_FILES_URL needs a library that is not installed"
        hint = "pip install botocore"
        return [checks.Error(text, hint, id="evalhub.E014")]

    return []


@checks.register(*OWN_CHECKS)
def check_provider_client(**options: Any) -> Messages:
    """Check that the client of an OpenID Connect provider is installed."""
    if settings.EVALHUB_OIDC_ISSUER and not find_spec("authlib"):
        text = "EVALHUB_OIDC_ISSUER needs a library that is not installed"
        hint = "pip install 'authlib>=1.9,<2' requests"
        return [checks.Error(text, hint, id="evalhub.E015")]

    return []


@checks.register(*OWN_CHECKS, *READING_CHECKS)
def check_names(**options: Any) -> Messages:
    """Warn of variables that begin with EVALHUB_ and are not settings: most are misspelt."""
    messages: Messages = []
    for name, similar in env.misspelt():
        text = f"nothing reads the environment variable {name}"
        hint = "docs/settings.md lists the names; take it out if it is not needed"
        if similar:
            hint = f"did you mean {similar}?"
        messages.append(checks.Warning(text, hint, id="evalhub.W009"))

    return messages


@checks.register(*OWN_CHECKS)
def check_mail(**options: Any) -> Messages:
    """Warn of mails without a host in links and ids."""
    if not settings.EVALHUB_MAIL_URL or settings.EVALHUB_URL:
        return []

    text = "mails have no link, and ids without a host"
    hint = "set EVALHUB_URL, such as https://eval.example.org"
    return [checks.Warning(text, hint, id="evalhub.W013")]


@checks.register(*OWN_CHECKS)
def check_webhooks(**options: Any) -> Messages:
    """Warn of webhooks without a host in links, and of the metadata service that they may reach."""
    if not settings.EVALHUB_WEBHOOKS:
        return []

    messages: Messages = []
    if not settings.EVALHUB_URL:
        text = "links in webhooks have no host"
        hint = "set EVALHUB_URL, such as https://eval.example.org"
        messages.append(checks.Warning(text, hint, id="evalhub.W011"))

    if any(_METADATA in network for network in settings.EVALHUB_WEBHOOK_ALLOW):
        text = (
            f"EVALHUB_WEBHOOK_ALLOW permits {_METADATA}, where clouds keep the credentials of "
            "this machine"
        )
        hint = "name only the networks of your receivers, such as 10.0.0.0/8"
        messages.append(checks.Warning(text, hint, id="evalhub.W012"))

    return messages


@checks.register(*OWN_CHECKS, *READING_CHECKS)
def check_lease(**options: Any) -> Messages:
    """Check that a lease outlives a few missed heartbeats and ends within the hour."""
    if _MIN_LEASE <= settings.EVALHUB_LEASE_SECONDS <= _MAX_LEASE:
        return []
    text = (
        f"EVALHUB_LEASE_SECONDS={settings.EVALHUB_LEASE_SECONDS} is too short or too long for "
        "workers"
    )
    hint = f"choose {_MIN_LEASE} to {_MAX_LEASE} seconds; 30 is good"

    return [checks.Error(text, hint, id="evalhub.E004")]


def check_redis(url: str) -> Messages:
    """Check that Redis does not evict messages, which would delay runs, when a worker starts."""
    # Only a worker checks Redis: other commands do not load the client.
    import redis

    client = redis.Redis.from_url(
        url, socket_timeout=3, socket_connect_timeout=3, decode_responses=True
    )
    try:
        limits: Any = client.config_get("maxmemory", "maxmemory-policy", "appendonly", "save")
    except redis.AuthenticationError as error:
        text = f"Redis refuses the user or password of EVALHUB_REDIS_URL: {error}"
        return [
            checks.Warning(
                text, "correct one of the two; the worker keeps trying", id="evalhub.W010"
            )
        ]
    except redis.ConnectionError as error:
        return [
            checks.Warning(
                f"Redis does not answer yet: {error}", "the worker keeps trying", id="evalhub.W005"
            )
        ]
    except redis.RedisError as error:
        hint = "make sure that its maxmemory-policy is noeviction"
        return [
            checks.Warning(f"Redis does not show its settings: {error}", hint, id="evalhub.W006")
        ]
    finally:
        client.close()

    return [*_check_eviction(limits), *_check_persistence(limits)]


def _check_eviction(limits: dict[str, str]) -> Messages:
    policy = limits.get("maxmemory-policy", "")
    text = f"Redis has maxmemory-policy {policy}"
    hint = "set it to noeviction: a full Redis then refuses messages, and they are sent again"
    if policy.startswith("allkeys"):
        return [
            checks.Error(f"{text}: it silently evicts queued messages", hint, id="evalhub.E007")
        ]

    if policy != "noeviction":
        return [checks.Warning(text, hint, id="evalhub.W007")]
    return []


def _check_persistence(limits: dict[str, str]) -> Messages:
    if limits.get("appendonly") == "yes" or limits.get("save"):
        return []
    hint = "appendonly yes saves the wait; no run is lost without it"
    return [checks.Warning("Redis keeps nothing on disk: after its restart runs wait for a lease's "
                           "time", hint,
                           id="evalhub.W008")]  # fmt: skip


def file_system(path: Path, mounts: Path = _MOUNTS) -> str:
    """Return the type of the file system of a path, or an empty text if the kernel does not say."""
    try:
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return ""

    path = path.resolve()
    matches = [(len(point), kind) for _, point, kind, *_ in lines if path.is_relative_to(point)]
    # If several are mounted at one point, the last one is visible.
    return max(reversed(matches), default=(0, ""), key=lambda match: match[0])[1]
