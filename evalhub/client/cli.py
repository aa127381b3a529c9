"""The command `evh`: its arguments and its exit statuses. `evalhub submit` and the like come here, too."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

from . import commands
from .errors import (
    Ambiguous,
    BadConfig,
    BadFile,
    BadSource,
    Blind,
    Conflict,
    EvalHubError,
    EvaluationFailed,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    QuotaExceeded,
    Refused,
    Throttled,
    TimedOut,
)
from .output import FORMATS, BadFormat
from .version import VERSION

# The first that fits. 0 is done, 1 an error of the server or the network after all tries.
_STATUS: tuple[tuple[type[EvalHubError], int], ...] = (
    (BadFormat, 2),
    (Ambiguous, 2),
    (BadConfig, 3),
    (NotAuthenticated, 3),
    (Blind, 4),
    (NotAllowed, 3),
    (NotFound, 4),
    (BadFile, 5),
    (BadSource, 5),
    (QuotaExceeded, 6),
    (EvaluationFailed, 7),
    (TimedOut, 8),
    (Conflict, 9),
    (Throttled, 1),
    (Refused, 2),
)
_INTERRUPTED = 130
_EPILOG = """exit status: 0 done; 1 an error of the server or network, after all tries; 2 wrong options;
3 not logged in or not allowed; 4 not there, or blind; 5 a file was refused; 6 the quota is used up; 7 an evaluation
failed; 8 timed out while waiting; 9 a conflict, such as a tag that is taken; 130 interrupted"""
_SHELLS = {
    "bash": "complete -W '{names}' evh",
    "zsh": 'compdef \'_arguments "1: :({names})" "*: :_files"\' evh',
    "fish": "complete -c evh -n __fish_use_subcommand -a '{names}'",
}


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each has its `function`."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--url", help="address of the server, instead of the configured one")
    common.add_argument("--profile", help="profile of the configuration")
    common.add_argument("--format", help=f"{', '.join(FORMATS)}, or with fields: 'json(tag,AP)'")
    common.add_argument("-q", "--quiet", action="store_true", help="print ids only")
    common.add_argument("-v", "--verbose", action="store_true", help="print each request, without the token")
    top = argparse.ArgumentParser(prog="evh", description="Submit runs to EvalHub and read what came of them.",
                                  epilog=_EPILOG)  # fmt: skip
    top.add_argument("--version", action="version", version=f"evalhub-client {VERSION}")
    adders = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, run: Any, help: str, *, measures: bool = False, of: bool = False) -> argparse.ArgumentParser:
        made = adders.add_parser(name, help=help, parents=[common])
        made.set_defaults(function=run)
        if measures:
            made.add_argument("-m", "--measure", action="append", default=[], help="a measure; may be repeated")
        if of:
            made.add_argument("-c", "--collection", default="", help="the collection of runs that are named by tag")
        return made

    _add_accounts(add)
    _add_runs(add)
    _add_results(add)
    return top


def _add_accounts(add: Any) -> None:
    made = add("login", commands.login, "keep a token, which is requested or read from standard input")
    made.add_argument("--insecure", action="store_true", help="send the token to this address over plain http")
    add("logout", commands.logout, "forget the token").add_argument("--revoke", action="store_true", help="revoke it")
    add("whoami", commands.whoami, "say whose token it is and what it may do")
    add("collections", commands.collections, "list collections, or show one").add_argument("collection", nargs="?")
    made = add("api", commands.api, "send any request")
    made.add_argument("method")
    made.add_argument("path", help="below /api/v1/")
    made.add_argument("-f", "--field", action="append", default=[], metavar="K=V", help="a parameter or field")
    made = add("open", commands.open_page, "open the page of a collection or run", of=True)
    made.add_argument("name", help="a collection, an id of a run, or its tag with -c")
    add("completion", _completion, "print what completes commands").add_argument("shell", choices=sorted(_SHELLS))


def _add_runs(add: Any) -> None:
    made = add("submit", commands.submit, "submit run files, or those of a folder")
    made.add_argument("collection")
    made.add_argument("files", nargs="+", metavar="FILE")
    made.add_argument("--tag", help="of one run; default: that of the file, or the file's name")
    made.add_argument("--team", help="default: the configured one, or your own")
    made.add_argument("--description", default="")
    made.add_argument("--meta", action="append", default=[], metavar="K=V", help="metadata; may be repeated")
    made.add_argument("--wait", action="store_true", help="wait for the evaluation and print means")
    made.add_argument("--timeout", type=float, default=3600.0, help="seconds to wait")
    made.add_argument("--dry-run", action="store_true", help="only check the files")
    made.add_argument("--parallel", type=int, default=4, help="files sent at once")
    made.add_argument("--if-taken", choices=("fail", "skip", "suffix"), default="fail", help="another run has the tag")
    made.add_argument("--follow", action="store_true", help="go on with files that appear in the folder")
    made.add_argument("--journal", default=".evh-journal.jsonl", help="what was sent, for the next call")
    made.add_argument("--stop", action="store_true", help="stop at the first file that is refused")
    for name, run, does in (
        ("status", commands.status, "the states of runs, or of all of a collection"),
        ("watch", commands.watch, "follow the states until no run is on its way"),
        ("wait", commands.wait, "wait silently; the exit status tells"),
    ):
        made = add(name, run, does, of=True)
        made.add_argument(
            "runs", nargs="+" if name == "wait" else "*", metavar="RUN", help="id, address, tag, team/tag"
        )
        made.add_argument("--team", help="runs of this team only")
        made.add_argument("--timeout", type=float, default=600.0, help="seconds to wait")


def _add_results(add: Any) -> None:
    made = add("values", commands.values, "means of a run, or its values by topic", measures=True, of=True)
    made.add_argument("run", metavar="RUN")
    made.add_argument("--per-topic", action="store_true")
    made = add("leaderboard", commands.leaderboard, "the leaderboard of a collection", measures=True)
    made.add_argument("collection")
    made.add_argument("--filter")
    made.add_argument("--sort", help="the measure that ranks")
    made.add_argument("--baseline", metavar="RUN")
    made.add_argument("--statistics", help="tiers, intervals, ranks or all")
    made.add_argument("--limit", type=int, help="rows; default: all")
    made = add("compare", commands.compare, "compare runs, with tests", measures=True)
    made.add_argument("collection")
    made.add_argument("runs", nargs="*", metavar="RUN")
    made.add_argument("--baseline", metavar="RUN")
    made.add_argument("--test", action="append", default=[], help="a significance test; may be repeated")
    made.add_argument("--correction")
    made.add_argument("--timeout", type=float, default=600.0, help="seconds to wait for a long comparison")
    made = add("diff", commands.diff, "two runs topic by topic")
    made.add_argument("collection")
    made.add_argument("a", metavar="RUN")
    made.add_argument("b", metavar="RUN")
    made.add_argument("-m", "--measure")
    made.add_argument("--order", choices=("topic", "difference"), default="topic")
    made = add("pull", commands.pull, "download runs, values and judgements")
    made.add_argument("collection")
    made.add_argument("runs", nargs="*", metavar="RUN")
    made.add_argument("--to", default=".", help="a folder")


def _completion(args: argparse.Namespace) -> int:
    actions = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    names = " ".join(actions[0].choices)
    sys.stdout.write(_SHELLS[args.shell].format(names=names) + "\n")
    return 0


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command and leave with its exit status; `argv` begins with the program's name."""
    sys.exit(run(list(sys.argv if argv is None else argv)[1:]))


def run(arguments: list[str]) -> int:
    """Run a command and return its exit status."""
    try:
        args = parser().parse_args(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    # httpx tells each request in a line; the token is not in it.
    logging.basicConfig(format="%(message)s", level=logging.INFO if args.verbose else logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.INFO if args.verbose else logging.WARNING)
    try:
        status: int = args.function(args)
    except EvalHubError as error:
        sys.stderr.write(f"evh: {error}\n")
        return next((status for kind, status in _STATUS if isinstance(error, kind)), 1)
    except BrokenPipeError:
        # Whoever read has enough; nothing is left to be written at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        sys.stderr.write("evh: interrupted; what was sent goes on\n")
        return _INTERRUPTED
    return status
