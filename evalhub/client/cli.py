"""The command `evh`: its arguments and its exit statuses. `evalhub submit` and the like come here, too."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from . import (
    account_commands,
    campaign_commands,
    collection_commands,
    commands,
    completion,
    experiment_commands,
    gate_commands,
    prediction_commands,
    study_commands,
)
from .errors import EvalHubError, suggestion
from .gate import TESTS
from .output import FORMATS
from .statuses import INTERRUPTED, status_of
from .version import VERSION

_EPILOG = """exit status: 0 done; 1 an error of the server or network, after all tries; 2 wrong options;
3 not logged in or not allowed; 4 not there, or blind; 5 a file was refused; 6 the quota is used up; 7 an evaluation
failed; 8 timed out while waiting; 9 a conflict, such as a tag that is taken; 10 gate: worse; 11 gate: undecided,
with --undecided fail; 130 interrupted"""
# What helps on the command line.
_ADVICE = {
    "not_authenticated": " Run evh login.",
    "authentication_failed": " Run evh login.",
    "tag_taken": ", or --if-taken suffix",
    "agreement_missing": "; read it with evh campaign agreements, and sign it with evh campaign "
    "sign",
}
_RUN = "id, address, tag or team/tag"


class Parser(argparse.ArgumentParser):
    """A parser that names the command, the option or the choice that may be meant."""

    def __init__(self, **options: Any) -> None:
        # `--token` would be short for --token-file, and a token its value.
        super().__init__(**options, allow_abbrev=False)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            near = suggestion(str(value), known) or f"; choose from {', '.join(known)}"
            raise argparse.ArgumentError(action, f"there is no {value!r}{near}")

    def refuse(self, unknown: list[str]) -> NoReturn:
        """End with the arguments that no option takes."""
        options = [option for action in self._actions for option in action.option_strings]
        near = (
            suggestion(unknown[0].partition("=")[0], options) if unknown[0].startswith("-") else ""
        )
        self.error(f"unknown arguments: {' '.join(unknown)}{near}")


def _common(default: Any = None) -> Parser:
    """Return the options of every command; those after a command within a command must not reset the ones before."""
    options: dict[str, Any] = {"default": default} if default else {}
    common = Parser(add_help=False)
    common.add_argument(
        "--url", help="address of the server, instead of the configured one", **options
    )
    common.add_argument("--profile", help="profile of the configuration", **options)
    common.add_argument(
        "--token-file",
        metavar="FILE",
        help="file with the token, instead of the kept one",
        **options,
    )

    common.add_argument(
        "--format", help=f"{', '.join(FORMATS)}, or with fields: 'json(tag,AP)'", **options
    )
    common.add_argument("-q", "--quiet", action="store_true", help="print ids only", **options)
    common.add_argument(
        "-v", "--verbose", action="store_true", help="print each request, not the token", **options
    )

    return common


def parser() -> Parser:
    """Return the parser of all commands; each has its `function`, and the `parser` that knows its options."""
    common = _common()
    top = Parser(
        prog="evh", description="Submit runs to EvalHub and read what came of them.", epilog=_EPILOG
    )
    top.add_argument("--version", action="version", version=f"evalhub-client {VERSION}")

    adders = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, run: Any, help: str, *, measures: bool = False, of: bool = False) -> Parser:
        made = adders.add_parser(
            name, help=help, description=f"{help[0].upper()}{help[1:]}.", parents=[common]
        )
        made.set_defaults(function=run, parser=made)
        if measures:
            _measures(made)

        if of:
            made.add_argument(
                "-c",
                "--collection",
                default="",
                help="the collection of runs that are named by tag",
            )

        return made

    _add_accounts(add)
    _add_collections(add)
    _add_judgements(add)
    _add_sessions(add)
    _add_runs(add)
    _add_results(add)
    _add_gate(add)
    experiment_commands.add_commands(add, _within, _RUN)
    study_commands.add_commands(add, _RUN)
    campaign_commands.add_commands(add, _within)

    return top


def _measures(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "-m",
        "--measure",
        action="append",
        default=[],
        help="a measure, such as nDCG@10; may be repeated",
    )


def _within(made: Parser, run: Any) -> Any:
    """Return what adds commands within a command, which by itself is `run`, or needs one of them if that is None."""
    if run:
        made.set_defaults(function=run)

    adders = made.add_subparsers(metavar="ACTION", required=run is None)

    def add(name: str, function: Any, help: str) -> Parser:
        inner = adders.add_parser(name, help=help, parents=[_common(argparse.SUPPRESS)])
        inner.set_defaults(function=function, parser=inner)
        return inner

    return add


def _add_accounts(add: Any) -> None:
    made = add(
        "login",
        account_commands.login,
        "keep a token, which is requested or read from standard input",
    )

    made.add_argument(
        "--insecure", action="store_true", help="send the token to this address over plain http"
    )
    made = add("logout", account_commands.logout, "forget the token")
    made.add_argument("--revoke", action="store_true", help="revoke it, too")
    add("whoami", account_commands.whoami, "say whose token it is and what it may do")
    made = add("api", account_commands.api, "send any request")
    made.add_argument("method")
    made.add_argument("path", help="below /api/v1/")
    made.add_argument(
        "-f", "--field", action="append", default=[], metavar="K=V", help="a parameter or field"
    )
    made.add_argument(
        "-F", "--file", action="append", default=[], metavar="K=@FILE", help="a file of a form"
    )
    made.add_argument(
        "--input", default="", metavar="FILE", help="a body of JSON; - is standard input"
    )
    made.add_argument("--key", default="", help="idempotency key, with which a POST is sent again")
    made = add("open", account_commands.open_page, "open the page of a collection or run", of=True)
    made.add_argument("name", help="a collection, an id of a run, or its tag with -c")
    made = add(
        "mcp",
        account_commands.mcp,
        "a server of the Model Context Protocol over standard input and output",
    )

    made.add_argument(
        "--allow-submit", action="store_true", help="with a tool that submits files of this folder"
    )
    made = add(
        "completion",
        lambda args: completion.write(args.shell, parser()),
        "print what completes commands",
    )
    made.add_argument("shell", choices=completion.SHELLS)


def _add_collections(add: Any) -> None:
    within = _within(
        add(
            "collections",
            collection_commands.list_collections,
            "list, show, create or import collections",
        ),
        collection_commands.list_collections,
    )

    within("list", collection_commands.list_collections, "list those that you can see")
    within("show", collection_commands.show_collection, "show one").add_argument("collection")
    made = within(
        "import",
        collection_commands.import_collection,
        "make or complete one of topics and judgements",
    )

    made.add_argument("collection")
    made.add_argument(
        "--ir-datasets", required=True, metavar="ID", help="the dataset; its documents are not read"
    )
    made.add_argument(
        "--team", help="of a new collection; default: the configured one, or your own"
    )
    made.add_argument(
        "--visibility", choices=("public", "team", "private"), help="of a new collection"
    )
    made = within("create", collection_commands.create_collection, "create one")
    made.add_argument("collection", help="its short name, as in addresses")
    made.add_argument("--team", help="default: the configured one, or your own")
    made.add_argument("--name", help="default: its short name")
    made.add_argument("--description", default="")
    made.add_argument("--visibility", choices=("public", "team", "private"), help="default: public")
    made.add_argument(
        "--blind",
        action="store_true",
        help="judgements and values are shown when they are released",
    )

    made.add_argument("--daily-submissions", type=int, metavar="N", help="of each team")
    made.add_argument("--documents", type=int, metavar="N", help="size of the document collection")
    _measures(made)
    made = add(
        "topics",
        collection_commands.list_topics,
        "list, upload or download topics; which are difficult",
    )

    made.add_argument("collection")
    within = _within(made, collection_commands.list_topics)
    within("list", collection_commands.list_topics, "list them")
    study_commands.add_topics(within)
    made = within(
        "upload", collection_commands.upload_topics, "replace the topics by those of a file"
    )
    made.add_argument("file")
    made.add_argument(
        "--topic-format",
        choices=("trec-sgml", "trec-xml", "jsonl", "tsv"),
        help="default: what it looks like",
    )

    made.add_argument("--dry-run", action="store_true", help="only check the file")
    made = within("pull", collection_commands.pull_topics, "write them as lines of JSON")
    made.add_argument("--to", default="-", metavar="FILE", help="default: standard output")


def _add_judgements(add: Any) -> None:
    made = add(
        "qrels", collection_commands.list_qrels, "list, upload, activate or download judgements"
    )
    made.add_argument("collection")
    within = _within(made, collection_commands.list_qrels)
    within("list", collection_commands.list_qrels, "list the versions")
    made = within("upload", collection_commands.upload_qrels, "upload a version, and activate it")
    made.add_argument("file")
    made.add_argument("--keep-active", action="store_true", help="do not activate it")
    made.add_argument("--note", default="")
    made.add_argument(
        "--keyed-by", choices=("topic", "query"), help="of sessions: the second column is a query"
    )
    made.add_argument(
        "--iteration", choices=("subtopic", "round", "ignore"), help="what the second column means"
    )
    made.add_argument("--dry-run", action="store_true", help="only check the file")
    made = within(
        "activate",
        collection_commands.activate_qrels,
        "activate a version: every run is evaluated again",
    )

    made.add_argument("version", type=int)
    made = within("pull", collection_commands.pull_qrels, "write a version into a file")
    made.add_argument("version", type=int, nargs="?", help="default: the active one")
    made.add_argument("--to", default="-", metavar="FILE", help="default: standard output")


def _add_sessions(add: Any) -> None:
    made = add(
        "sessions",
        collection_commands.list_sessions,
        "session sets: list, submit, values, leaderboard",
    )

    made.add_argument("collection")
    within = _within(made, collection_commands.list_sessions)
    within("list", collection_commands.list_sessions, "list the session sets and their states")
    made = within("submit", collection_commands.submit_sessions, "submit a session log")
    made.add_argument("file")
    made.add_argument("--tag", help="default: the name of its only system, or sessions")
    made.add_argument("--team", help="default: the configured one, or your own")
    made.add_argument("--log-format", help="default: what it looks like")
    made.add_argument("--judged-by", choices=("topic", "session", "query", "own"))
    made.add_argument("--description", default="")
    made.add_argument(
        "--meta",
        action="append",
        default=[],
        metavar="K=V",
        help="metadata, or auto; may be repeated",
    )

    made.add_argument("--dry-run", action="store_true", help="only check the file")
    made.add_argument("--wait", action="store_true", help="wait for the evaluation")
    made.add_argument("--timeout", type=float, default=3600.0, help="seconds to wait")
    made = within(
        "values",
        collection_commands.session_values,
        "means of a session set, or its values by session",
    )

    made.add_argument("set", help="id, tag or team/tag")
    _measures(made)
    made.add_argument("--per-session", action="store_true")
    for name in ("system", "topic", "searcher"):
        made.add_argument(f"--{name}", help=f"only sessions of this {name}")

    made = within(
        "leaderboard", collection_commands.session_leaderboard, "the systems by their means"
    )
    _measures(made)
    made.add_argument("--judged-by", choices=("topic", "session", "query", "own"))
    made.add_argument("--sort", help="the measure that ranks")
    made.add_argument("--limit", type=int, help="rows; default: all")


def _add_runs(add: Any) -> None:
    made = add(
        "submit",
        prediction_commands.submit,
        "submit run files, those of a folder, or predictions of a library",
    )

    made.add_argument(
        "collection",
        help="with --from mteb the folder; with --from st left out where one is configured",
    )
    made.add_argument("files", nargs="*", metavar="FILE")
    made.add_argument("--from", dest="library", choices=("mteb", "st"), help="FILE holds predictions of MTEB or of"
                      " sentence-transformers")  # fmt: skip
    made.add_argument(
        "--collections", metavar="TOML", help='with --from mteb: lines such as SciFact = "scifact"'
    )
    made.add_argument(
        "--drop-identical",
        action="store_true",
        help="leave out documents with the id of their topic",
    )

    made.add_argument("--tag", help="of one run; default: that of the file, or the file's name")
    made.add_argument("--team", help="default: the configured one, or your own")
    made.add_argument("--description", default="")
    made.add_argument("--meta", action="append", default=[], metavar="K=V",
                      help="metadata; may be repeated; auto: git commit, versions, command "
                           "line")  # fmt: skip
    made.add_argument("--known", metavar="FILE", help="documents that the user of one run knew")
    made.add_argument("--wait", action="store_true", help="wait for the evaluation and print means")
    made.add_argument("--timeout", type=float, default=3600.0, help="seconds to wait")
    made.add_argument("--dry-run", action="store_true", help="only check the files")
    made.add_argument("--parallel", type=int, default=4, help="files sent at once")
    made.add_argument(
        "--system",
        help="one run becomes the next version of this system, called after it: splade-v4",
    )
    made.add_argument("--if-taken", choices=("fail", "skip", "suffix", "version"), default="fail",
                      help="another run has the tag")  # fmt: skip
    made.add_argument(
        "--wait-for-quota", action="store_true", help="where it is used up, go on at midnight UTC"
    )
    made.add_argument(
        "--follow", action="store_true", help="go on with files that appear in the folder"
    )
    made.add_argument(
        "--journal", default=".evh-journal.jsonl", help="what was sent, for the next call"
    )
    made.add_argument("--stop", action="store_true", help="stop at the first file that is refused")
    made.add_argument("--label", help="let a label of the team name the run as it is submitted, with --wait once it"
                      " is evaluated; with --follow the latest one")  # fmt: skip
    made.add_argument(
        "--experiment", help="of the team, by its short name or id: the runs are put into it"
    )

    for name, run, does in (
        ("status", commands.status, "the states of runs, or of all of a collection"),
        ("watch", commands.watch, "follow the states until no run is on its way"),
        ("wait", commands.wait, "wait silently; the exit status tells"),
    ):
        made = add(name, run, does, of=True)
        if name == "wait":
            made.add_argument("runs", nargs="+", metavar="RUN", help=_RUN)
            made.add_argument("--timeout", type=float, default=600.0, help="seconds to wait")
        else:
            made.add_argument("runs", nargs="*", metavar="RUN", help=f"{_RUN}, or a collection")
            made.add_argument("--team", help="runs of this team only")

        if name == "watch":
            made.add_argument(
                "--timeout",
                type=float,
                default=float("inf"),
                help="seconds to wait; default: no end",
            )


def _add_results(add: Any) -> None:
    made = add(
        "values", commands.values, "means of a run, or its values by topic", measures=True, of=True
    )
    made.add_argument("run", metavar="RUN", help=_RUN)
    made.add_argument("--per-topic", action="store_true")
    made = add(
        "leaderboard", commands.leaderboard, "the leaderboard of a collection", measures=True
    )
    made.add_argument("collection", nargs="?", help="default: the configured one")
    made.add_argument("--filter", help="as in the field above the leaderboard: 'bm25 team:lab'")
    made.add_argument("--sort", help="the measure that ranks")
    made.add_argument("--baseline", metavar="RUN")
    made.add_argument("--statistics", help="tiers, intervals, ranks or all")
    made.add_argument(
        "--entries",
        choices=("official", "all"),
        help="of a collection with a phase; default: official",
    )

    made.add_argument("--limit", type=int, help="rows; default: all")
    made = add("compare", commands.compare, "compare runs, with tests", measures=True)
    made.add_argument("collection")
    made.add_argument("runs", nargs="*", metavar="RUN", help=f"{_RUN}; default: all")
    made.add_argument("--baseline", metavar="RUN")
    made.add_argument(
        "--test", action="append", default=[], help="a significance test; may be repeated"
    )
    made.add_argument("--correction", help="of p for several pairs: holm, bonferroni, ...")
    made.add_argument(
        "--timeout", type=float, default=600.0, help="seconds to wait for a long comparison"
    )
    made = add("diff", commands.diff, "two runs topic by topic")
    made.add_argument("collection")
    made.add_argument("a", metavar="RUN")
    made.add_argument("b", metavar="RUN")
    made.add_argument("-m", "--measure")
    made.add_argument("--order", choices=("topic", "difference"), default="topic")
    made = add("pull", collection_commands.pull, "download runs, values, topics and judgements")
    made.add_argument("collection", nargs="?", help="default: the configured one")
    made.add_argument("runs", nargs="*", metavar="RUN", help=f"{_RUN}; default: all")
    made.add_argument("--to", default=".", help="a folder")


def _add_gate(add: Any) -> None:
    made = add("gate", gate_commands.gate, "fail if a run is worse than a baseline")
    made.add_argument("collection")
    made.add_argument("run", metavar="RUN", help="id, address, tag, team/tag, label:name")
    made.add_argument(
        "--baseline", metavar="RUN", help="the same, or previous: the run of the same tag before it"
    )
    made.add_argument("--rule", action="append", required=True, metavar="RULE",
                      help="'nDCG@10 no-worse-than 0.01' (or 2%%), 'AP no-significant-drop', 'AP no-drop', "
                      "'AP at-least 0.3'; may be repeated")  # fmt: skip
    made.add_argument("--test", choices=TESTS, default="paired_t")
    made.add_argument("--alpha", type=float, default=0.05, help="level of a verdict, default 0.05")
    made.add_argument(
        "--undecided", choices=("warn", "fail"), default="warn", help="fail: status 11"
    )
    made.add_argument(
        "--no-baseline",
        choices=("fail", "pass"),
        default="fail",
        help="there is no such run or label yet",
    )

    made.add_argument(
        "--promote", metavar="LABEL", help="let this label name the run if all rules are fine"
    )
    made.add_argument("--junit", metavar="FILE", help="write JUnit XML")
    made.add_argument("--markdown", metavar="FILE", help="write Markdown; - is standard output")
    made.add_argument(
        "--timeout", type=float, default=600.0, help="seconds to wait for evaluations"
    )
    made = add("labels", gate_commands.labels, "the labels of a collection")
    made.add_argument("collection")
    made = add("label", gate_commands.label, "let a label name a run, or delete it")
    made.add_argument("collection")
    made.add_argument("name")
    made.add_argument("run", metavar="RUN", nargs="?", help="a run of your team")
    made.add_argument(
        "--expected", metavar="ID", help="only if it names this run now; none: only if it is new"
    )
    made.add_argument("--note", default="", help="why, for the label's history")
    made.add_argument("--delete", action="store_true")
    made.add_argument("--team", help="whose label is deleted, if several of your teams have it")


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command and leave with its exit status; `argv` begins with the program's name."""
    sys.exit(run(list(sys.argv if argv is None else argv)[1:]))


def run(arguments: list[str]) -> int:
    """Run a command and return its exit status."""
    try:
        args, unknown = parser().parse_known_args(arguments)
        if unknown:
            args.parser.refuse(unknown)
    except SystemExit as ended:
        return int(ended.code or 0)

    logging.basicConfig(format="evh: %(message)s", level=logging.WARNING)
    logging.getLogger("evalhub_client").setLevel(logging.INFO if args.verbose else logging.WARNING)

    try:
        status: int = args.function(args)
    except EvalHubError as error:
        code = getattr(error, "code", "")
        # The tag of an entry may be taken, too, and `evh campaign enter` has no such option.
        helps = (
            "" if code == "tag_taken" and not hasattr(args, "if_taken") else _ADVICE.get(code, "")
        )
        sys.stderr.write(f"evh: {error}{helps}\n")

        return status_of(error)
    except BrokenPipeError:
        # Whoever read has enough; nothing is left to be written at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        sys.stderr.write("evh: interrupted; what was sent goes on\n")
        return INTERRUPTED
    except OSError as error:
        # A file that cannot be read or written.
        sys.stderr.write(f"evh: {error}\n")
        return status_of(EvalHubError())

    return status
