"""The `evalhub` command: a few commands of its own, and every management command of the service."""

from __future__ import annotations

import os
import sys
from importlib import import_module

# Where each command's function is; named as text, so that none pays for what another one imports.
_LOCAL: dict[str, str] = {
    "eval": "evalhub.local.eval:main",
}
_SERVICE = "django.core.management:execute_from_command_line"

_HELP = """evalhub COMMAND [options]; evalhub COMMAND --help says more

  eval             evaluate run files on this machine, as trec_eval does: no server, no database
  serve            the web server and its worker on this machine
  web              the web server alone; its workers are processes of their own
  worker           a worker, one of as many as you like, on PostgreSQL and Redis
  demo             fill a data folder with a simulated collection, print its leaderboard, serve it
  create_admin     make an administrator and a token
  create_token     make a token for a user
  migrate          bring the database up to date (serve does it by itself)
  worker           a worker on Redis, beside a web server of your own
  backup           everything into one file, while the service runs
  restore          a backup into an empty install; --verify only checks the file
  fsck             check every row and file; --repair what can be repaired, --fast without reading files
  sweep            delete what nobody needs any longer (workers do it every hour)
"""


def main() -> None:
    """The console script's entry."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
    command = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if command in ("--help", "-h", "help") and len(sys.argv) < 3:
        sys.stdout.write(_HELP)
        return
    module, _, function = _LOCAL.get(command, _SERVICE).partition(":")
    getattr(import_module(module), function)(sys.argv)
