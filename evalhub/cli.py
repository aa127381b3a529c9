"""The `evalhub` command: a few commands of its own, and every management command of the service."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

# The function of each command, as text: commands import only their own modules.
_LOCAL: dict[str, str] = {
    "eval": "evalhub.local.start:main",
    "verify-snapshot": "evalhub.local.verify_snapshot:main",
    "--version": "evalhub.version:main",
}
# The commands of the client, which its own command evh has, too.
_CLIENT = (
    "submit", "status", "watch", "wait", "values", "leaderboard", "compare", "diff", "pull",
    "login", "logout", "whoami", "open", "api", "collections", "qrels", "topics", "documents",
    "sessions", "completion", "mcp", "gate", "label", "labels", "campaign",
)  # fmt: skip
_LOCAL |= dict.fromkeys(_CLIENT, "evalhub.client.cli:main")
_SERVERS = ("serve", "web", "worker")
_SERVICE = "django.core.management:execute_from_command_line"

_HELP = """evalhub COMMAND [options]; see evalhub COMMAND --help, evalhub --version which EvalHub this is

  eval             evaluate run files locally, as trec_eval does: no server, no database
  verify-snapshot  check the archive of a snapshot: no server, no database
  serve            run the web server and its worker on this machine
  web              run the web server alone; run its workers separately
  demo             load a lab's leaderboard and two campaigns, and serve them
  create_admin     create an administrator and a token
  create_user      create an ordinary user and a token
  invite           make a link with which people create an account
  create_token     create a token for a user
  change_user      change a name, address, mark or password; delete_user and delete_collection delete
  migrate          bring the database up to date (serve does this automatically)
  worker           run a worker on PostgreSQL and Redis; run as many as you like
  adopt            take this database, data folder and Redis for one install, on purpose
  backup           back up rows and files into one archive, while the service runs
  restore          restore a backup into an empty installation; --verify only checks it
  fsck             check every row and file; --repair what can be repaired, --fast without reading files
  submit           submit runs to a server; also status, watch, wait, values, leaderboard, compare, diff,
                   pull, collections, qrels, topics, documents, sessions, login, logout, whoami, open, api
  gate             fail if a run is worse than a baseline; also label, labels
  campaign         take part in campaigns and enter runs: campaign list, show, register, sign, enter, ...
  reconcile        list receipts of entries that this database does not have, after a restore
  sweep            delete data that is no longer needed (workers do this every hour)
"""


def main() -> None:
    """Run a command of the console script."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
    command = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if command in ("--help", "-h", "help") and len(sys.argv) < 3:
        sys.stdout.write(_HELP)
        return

    if command in _SERVERS:
        # The first modules that these load are not garbage; collection begins when all are loaded.
        gc.disable()
        # A curve or a comparison of many runs takes a dozen arrays of a megabyte, again and again.
        from runs.formats.scanning.memory import keep_freed_memory

        keep_freed_memory()

    if command == "demo":
        # Threads gain nothing on the small matrices of its systems.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    if command not in _LOCAL:
        # Files of the service have digests of passwords, sessions and blind judgements: nobody else
        # may read them.
        os.umask(0o077)

    module, _, function = _LOCAL.get(command, _SERVICE).partition(":")
    try:
        getattr(import_module(module), function)(sys.argv)
    except Exception as error:
        if message := _explain(error):
            sys.exit(message)
        raise


def _explain(error: Exception) -> str | None:
    """Return what to do about an error of the installation, or None for other errors."""
    from django import db
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured

    from evalhub import database_errors
    from runs.errors import says_damaged

    text = str(error)
    if isinstance(error, ImproperlyConfigured):
        return f"evalhub: {text}"

    # SQLite raises this for a truncated or overwritten file, for one that never was a database, and
    # for a damaged schema. For all other errors Django has a class below DatabaseError.
    damaged = type(error) is db.DatabaseError or says_damaged(error)
    if damaged and not settings.EVALHUB_DATABASE_URL:
        return damaged_database(text)
    if database_errors.is_full(error):
        return (
            f"evalhub: no space is left on the disk ({text}). Free some, then run the command "
            "again."
        )

    if isinstance(error, db.DatabaseError | db.InterfaceError):
        return _explain_database(error, text)

    return None


def _explain_database(error: Exception, text: str) -> str | None:
    """Return what to do about a database that is missing, not migrated, read-only or silent."""
    from django import db
    from django.conf import settings

    from evalhub import database_errors

    name = settings.DATABASES["default"]["NAME"]
    if "unable to open database file" in text:
        return (
            f"evalhub: there is no database {name}. Is EVALHUB_DATA right? If this install is new: "
            "Run evalhub migrate first."
        )

    if database_errors.is_not_migrated(error):
        return (
            f"evalhub: the database is not that of this version ({text.splitlines()[0]}). Run "
            "evalhub migrate first."
        )
    if database_errors.is_read_only(error):
        return (
            f"evalhub: the database is read-only ({text.splitlines()[0]}). Is it a standby, or "
            "its disk read-only?"
        )
    if not isinstance(error, db.OperationalError | db.InterfaceError):
        return None

    address = "EVALHUB_DATABASE_URL" if settings.EVALHUB_DATABASE_URL else name
    # psycopg tries with TLS and without, and its message has the reason twice.
    reason = " ".join(" ".join(dict.fromkeys(text.splitlines())).split())
    problem = "refuses the connection" if "FATAL:" in text else "does not answer"

    return f"evalhub: the database {problem} ({reason}). Check {address}."


def damaged_database(reason: str) -> str:
    """Return what to do about a damaged SQLite file."""
    from django.conf import settings

    path = settings.DATABASES["default"]["NAME"]

    return (
        f"evalhub: the database {path} is damaged ({reason}).\n"
        f"Stop EvalHub, keep a copy of {settings.EVALHUB_DATA}, and restore the last backup into "
        "an empty folder:\n"
        "  EVALHUB_DATA=NEW_FOLDER evalhub restore BACKUP_FILE"
    )
