"""The command `evh`: its arguments and exit statuses. `evalhub submit` and others use it, too."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from . import (
    account_commands,
    campaign_commands,
    collection_commands,
    commands,
    completion,
    convert_commands,
    experiment_commands,
    gate_commands,
    judge_commands,
    pool_commands,
    prediction_commands,
    study_commands,
    suite_commands,
    table_commands,
)
from .errors import EvalHubError, UploadWarning, suggestion
from .gate import TESTS
from .output import FORMATS
from .statuses import INTERRUPTED, status_of
from .version import VERSION

_EPILOG = """exit status: 0 done; 1 an error of the server or network, after all tries; 2 wrong options;
3 not logged in or not allowed; 4 not there, or blind; 5 a file was refused; 6 the quota is used up; 7 an evaluation
failed; 8 timed out while waiting; 9 a conflict, such as a tag that is taken; 10 gate: worse; 11 gate: undecided,
with --undecided fail; 12 nothing to wait for: no active judgements, or no worker; 130 interrupted"""
_USAGE = "evh COMMAND [ACTION] [COLLECTION] [RUN or FILE]... [OPTIONS]"
_EXAMPLES = """a first session:
  evh login --url https://hub.example
  evh collections create robust04 --topics topics.tsv --qrels qrels.txt -m AP
  evh submit robust04 bm25.run --wait
  evh leaderboard robust04
  evh compare robust04 bm25 dense -m AP

"""
# Commands with actions about one collection; without an action they list.
_NOUNS = ("topics", "documents", "qrels", "sessions", "tables")
_FORMS = {"*": "[{}]...", "+": "{}...", "?": "[{}]"}
_EXAMPLE_OF = {
    "collections": "evh collections create robust04 --topics topics.tsv --qrels qrels.txt -m AP",
    "topics": "evh topics upload robust04 topics.tsv",
    "qrels": "evh qrels upload robust04 qrels.txt --note 'pool of 2004'",
    "documents": "evh documents upload robust04 corpus.jsonl",
    "tables": "evh tables upload robust04 answers.tsv --tool nuggetizer",
    "sessions": "evh sessions submit trec14 sessions.jsonl --wait",
    "submit": "evh submit robust04 bm25.run.gz dense.json --wait",
    "convert": "evh convert qrels test.tsv --to qrels.txt",
    "pool": "evh pool make robust04 --method depth -k 10 --dry-run",
    "suite": "evh suite make mine scifact 'fiqa nDCG@10'",
    "replicate": "evh replicate robust04 seed1 seed2 --of splade",
    "status": "evh status robust04",
    "wait": "evh wait robust04 bm25 dense",
    "values": "evh values robust04 bm25 -m AP --per-topic",
    "leaderboard": "evh leaderboard robust04 -m AP -m nDCG@10",
    "compare": "evh compare robust04 bm25 dense -m AP",
    "diff": "evh diff robust04 bm25 dense -m AP",
    "gate": "evh gate robust04 bm25 --baseline label:main --rule 'nDCG@10 no-worse-than 0.01'",
    "label": "evh label robust04 main bm25",
    "pull": "evh pull robust04 --to robust04/",
    "open": "evh open robust04 bm25",
    "api": "evh api GET collections/robust04/runs/",
}
_VALUED = ("--url", "--profile", "--token-file", "--format")
# Advice for errors, by their code.
_ADVICE = {
    "not_authenticated": "; run evh login",
    "authentication_failed": "; run evh login",
    "tag_taken": ", or --if-taken suffix",
    "agreement_missing": "; read it with evh campaign agreements, and sign it with evh campaign "
    "sign",
}
_RUN = "id, address, tag or team/tag"
_BASELINE = "a run with which the others are compared; several with commas between them"


class Parser(argparse.ArgumentParser):
    """A parser that suggests similar commands, options and choices.

    `commands` are the parsers of its commands or actions.
    """

    def __init__(self, **options: Any) -> None:
        self.commands: dict[str, Parser] = {}
        # Abbreviated, `--token` would be --token-file, and a token taken as its value.
        super().__init__(**options, allow_abbrev=False)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            hint = suggestion(str(value), choices) or f"; choose from {', '.join(choices)}"
            raise argparse.ArgumentError(action, f"there is no {value!r}{hint}")

    def refuse(self, unknown: list[str]) -> NoReturn:
        """Exit because of arguments that no option takes."""
        options = [option for action in self._actions for option in action.option_strings]
        is_option = unknown[0].startswith("-")
        hint = suggestion(unknown[0].partition("=")[0], options) if is_option else ""
        if not is_option and "--collection" in options:
            hint = f"; of a run that is named by tag, write the collection first: {_USAGE}"
        self.error(f"unknown arguments: {' '.join(unknown)}{hint}")


def _common(default: Any = None) -> Parser:
    """Return the options of every command, with a default.

    Those of an action must not reset the ones before it, as in `evh -q topics list C`.
    """
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
    """Return the parser of all commands; each sets its `function` and its own `parser`."""
    top = Parser(
        prog="evh",
        usage=_USAGE,
        description="Submit runs to EvalHub and read what came of them.",
        epilog=_EXAMPLES + _EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[_common()],
    )
    common = _common(argparse.SUPPRESS)
    top.add_argument("--version", action="version", version=f"evalhub-client {VERSION}")
    subparsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND", prog="evh")

    def add(
        name: str, function: Any, help: str, *, measures: bool = False, in_collection: bool = False
    ) -> Parser:
        description = f"{help[0].upper()}{help[1:]}."
        example = _EXAMPLE_OF.get(name, "")
        command = subparsers.add_parser(
            name,
            help=help,
            description=description,
            epilog=f"example: {example}" if example else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=[common],
        )
        command.set_defaults(function=function, parser=command)
        top.commands[name] = command
        if measures:
            _add_measures(command)
        if in_collection:
            help_text = "the collection of runs that are named by tag"
            command.add_argument("-c", "--collection", default="", help=help_text)

        return command

    _add_accounts(add)
    _add_collections(add)
    _add_judgements(add)
    _add_runs(add)
    convert_commands.add_commands(add, _add_actions)
    _add_results(add)
    _add_gate(add)
    experiment_commands.add_commands(add, _add_actions, _RUN)
    study_commands.add_commands(add, _RUN)
    judge_commands.add_commands(add, _add_actions)
    table_commands.add_commands(add, _add_actions)
    _add_sessions(add)
    campaign_commands.add_commands(add, _add_actions)
    pool_commands.add_commands(add, _add_actions)
    suite_commands.add_commands(add, _add_actions)
    _add_tools(add)
    _set_usage(top, "evh")
    top.usage = _USAGE

    return top


def _set_usage(parser: Parser, name: str) -> None:
    """Let the usage of each command name its arguments, which come before the options."""
    for action in parser._actions:
        if not action.option_strings and not action.choices:
            action.metavar = action.metavar or action.dest.upper()

    arguments = [
        _FORMS.get(str(action.nargs), "{}").format(action.metavar)
        for action in parser._actions
        if not action.option_strings and action.metavar
    ]
    parser.usage = " ".join([name, *arguments, "[OPTIONS]"])
    for command_name, command in parser.commands.items():
        _set_usage(command, f"{name} {command_name}")


def _add_measures(command: argparse.ArgumentParser) -> None:
    help_text = "a measure, such as nDCG@10; may be repeated"
    command.add_argument("-m", "--measure", action="append", default=[], help=help_text)


def _add_actions(command: Parser, function: Any, *, in_collection: bool = False) -> Any:
    """Return the function that adds actions to a command; `in_collection` about a collection.

    Without an action the command calls `function`; if that is None, it needs an action.
    """
    if function:
        command.set_defaults(function=function)

    subparsers = command.add_subparsers(metavar="ACTION", required=function is None)

    def add_action(name: str, function: Any, help: str) -> Parser:
        description = f"{help[0].upper()}{help[1:]}."
        action = subparsers.add_parser(
            name, help=help, description=description, parents=[_common(argparse.SUPPRESS)]
        )
        action.set_defaults(function=function, parser=action)
        command.commands[name] = action
        if in_collection:
            action.add_argument("collection", metavar="COLLECTION")
        return action

    return add_action


def _add_accounts(add: Any) -> None:
    command = add(
        "login",
        account_commands.login,
        "keep a token, which is requested or read from standard input",
    )
    command.add_argument(
        "--insecure", action="store_true", help="send the token to this address over plain http"
    )

    command = add("logout", account_commands.logout, "forget the token")
    command.add_argument("--revoke", action="store_true", help="revoke it, too")
    add("whoami", account_commands.whoami, "say whose token it is and what it may do")


def _add_tools(add: Any) -> None:
    command = add("api", account_commands.api, "send any request")
    command.add_argument("method")
    command.add_argument("path", help="below /api/v1/")
    command.add_argument(
        "-f", "--field", action="append", default=[], metavar="K=V", help="a parameter or field"
    )
    command.add_argument(
        "-F", "--file", action="append", default=[], metavar="K=@FILE", help="a file of a form"
    )
    command.add_argument(
        "--input", default="", metavar="FILE", help="a body of JSON; - is standard input"
    )
    command.add_argument(
        "--key", default="", help="idempotency key, with which a POST is sent again"
    )

    command = add(
        "open",
        account_commands.open_page,
        "open the page of a collection or run",
        in_collection=True,
    )
    command.add_argument(
        "runs",
        nargs="+",
        metavar="[COLLECTION] RUN",
        help="a collection, an id of a run, or a collection and a tag",
    )

    command = add(
        "mcp",
        account_commands.mcp,
        "a server of the Model Context Protocol over standard input and output",
    )
    command.add_argument(
        "--allow-submit", action="store_true", help="with a tool that submits files of this folder"
    )

    command = add(
        "completion",
        lambda args: completion.write(args.shell, parser()),
        "print what completes commands",
    )
    command.add_argument("shell", choices=completion.SHELLS)


def _add_collections(add: Any) -> None:
    command = add(
        "collections",
        collection_commands.list_collections,
        "list, show, create or import collections",
    )
    add_action = _add_actions(command, collection_commands.list_collections)
    add_action("list", collection_commands.list_collections, "list those that you can see")
    add_action("show", collection_commands.show_collection, "show one").add_argument("collection")

    command = add_action(
        "import",
        collection_commands.import_collection,
        "make or complete one of topics and judgements",
    )
    command.add_argument("collection")
    command.add_argument(
        "--ir-datasets", required=True, metavar="ID", help="the dataset; its documents are not read"
    )
    command.add_argument(
        "--team", help="of a new collection; default: the configured one, or your own"
    )
    command.add_argument(
        "--visibility", choices=("public", "team", "private"), help="of a new collection"
    )

    command = add_action("create", collection_commands.create_collection, "create one")
    command.add_argument("collection", help="its short name, as in addresses")
    command.add_argument("--team", help="default: the configured one, or your own")
    command.add_argument("--name", help="default: its short name")
    command.add_argument("--description", default="")
    command.add_argument(
        "--visibility", choices=("public", "team", "private"), help="default: public"
    )
    command.add_argument(
        "--blind",
        action="store_true",
        help="judgements and values are shown when they are released",
    )
    command.add_argument("--topics", metavar="FILE", help="its topics, as topics upload takes them")
    command.add_argument(
        "--qrels", metavar="FILE", help="its judgements, as qrels upload takes them"
    )
    command.add_argument(
        "--scale", type=int, metavar="N", help="multiply every level: 10 makes 0.7 the level 7"
    )
    command.add_argument("--daily-submissions", type=int, metavar="N", help="of each team")
    command.add_argument(
        "--documents", type=int, metavar="N", help="size of the document collection"
    )
    _add_measures(command)

    command = add(
        "topics",
        collection_commands.list_topics,
        "list, upload or download topics; which are difficult",
    )
    add_action = _add_actions(command, None, in_collection=True)
    add_action("list", collection_commands.list_topics, "list them")
    study_commands.add_topics(add_action)

    command = add_action(
        "upload", collection_commands.upload_topics, "replace the topics by those of a file"
    )
    command.add_argument("file")
    command.add_argument(
        "--topic-format",
        choices=("trec-sgml", "trec-xml", "jsonl", "tsv"),
        help="default: what it looks like",
    )
    command.add_argument("--dry-run", action="store_true", help="only check the file")

    command = add_action(
        "attributes",
        collection_commands.topic_attributes,
        "list their attributes, replace them by a file, or delete them",
    )
    command.add_argument(
        "file", nargs="?", help="lines of topic, tab, values below a line of the keys; or JSON"
    )
    command.add_argument("--dry-run", action="store_true", help="only check the file")
    command.add_argument("--delete", action="store_true", help="delete all of them")

    command = add_action("pull", collection_commands.pull_topics, "write them as lines of JSON")
    command.add_argument("--to", default="-", metavar="FILE", help="default: standard output")

    command = add("documents", None, "upload or delete the titles of documents")
    add_action = _add_actions(command, None, in_collection=True)
    command = add_action(
        "upload", collection_commands.upload_documents, "replace the titles by those of a file"
    )
    command.add_argument("file", help="lines of id, tab, title; or JSON as in BEIR's corpus.jsonl")
    command.add_argument("--dry-run", action="store_true", help="only check the file")
    add_action("delete", collection_commands.delete_documents, "delete all titles")


def _add_judgements(add: Any) -> None:
    command = add(
        "qrels", collection_commands.list_qrels, "list, upload, activate or download judgements"
    )
    add_action = _add_actions(command, None, in_collection=True)
    add_action("list", collection_commands.list_qrels, "list the versions")

    command = add_action(
        "upload", collection_commands.upload_qrels, "upload a version, and activate it"
    )
    command.add_argument("file", help="judgements of BEIR, of NTCIR and in JSON are converted")
    command.add_argument("--keep-active", action="store_true", help="do not activate it")
    command.add_argument("--note", default="")
    command.add_argument(
        "--keyed-by", choices=("topic", "query"), help="of sessions: the second column is a query"
    )
    command.add_argument(
        "--iteration", choices=("subtopic", "round", "ignore"), help="what the second column means"
    )
    command.add_argument(
        "--sampling",
        choices=("strata", "probabilities"),
        help="how the judged documents were drawn, which the lines then have",
    )
    command.add_argument(
        "--ignore-sampling",
        action="store_true",
        help="admit all measures, with documents outside the sample as not relevant",
    )
    command.add_argument(
        "--scale", type=int, metavar="N", help="multiply every level: 10 makes 0.7 the level 7"
    )
    add_authors(command)
    command.add_argument("--dry-run", action="store_true", help="only check the file")

    command = add_action(
        "activate",
        collection_commands.activate_qrels,
        "activate a version: every run is evaluated again",
    )
    command.add_argument("version", type=int)

    command = add_action(
        "agreement",
        collection_commands.qrels_agreement,
        "how far a version agrees with another one, and what it does to the runs",
    )
    command.add_argument("version", type=int)
    command.add_argument(
        "--with", dest="other", type=int, metavar="VERSION", help="default: its parent"
    )
    command.add_argument("-m", "--measure", help="for orders of runs and significance")
    command.add_argument(
        "--uses-model", metavar="NAME", help="a parameter of runs that says which model a run uses"
    )
    command.add_argument(
        "--family", metavar="TEXT", help="of the judge: values of that parameter contain this"
    )
    command.add_argument("-k", type=int, metavar="K", help="of Judged@k; default: 10")
    command.add_argument(
        "--table", choices=("coefficients", "topics", "runs"), default="coefficients"
    )

    command = add_action("pull", collection_commands.pull_qrels, "write a version into a file")
    command.add_argument("version", type=int, nargs="?", help="default: the active one")
    command.add_argument("--to", default="-", metavar="FILE", help="default: standard output")


def add_authors(command: argparse.ArgumentParser) -> None:
    """Add the options that describe who judged, and from which version."""
    command.add_argument(
        "--author-kind",
        choices=("person", "model", "clicks", "mixed"),
        default="",
        help="who judged",
    )
    command.add_argument("--author", default="", metavar="NAME", help="the name of the judge")
    command.add_argument("--model", default="", help="the model that judged, with its version")
    command.add_argument("--prompt", metavar="FILE", help="a file with the prompt of the model")
    command.add_argument(
        "--parent", type=int, metavar="VERSION", help="from which these judgements were made"
    )
    command.add_argument(
        "--derivation",
        choices=("filled", "replaced", "sampled"),
        default="",
        help="how they were made from it; every judgement is checked",
    )
    command.add_argument("--produced-at", default="", metavar="TIME", help="when they were made")


def _add_sessions(add: Any) -> None:
    command = add(
        "sessions",
        collection_commands.list_sessions,
        "session sets: list, submit, values, leaderboard",
    )
    add_action = _add_actions(command, None, in_collection=True)
    add_action("list", collection_commands.list_sessions, "list the session sets and their states")

    command = add_action("submit", collection_commands.submit_sessions, "submit a session log")
    command.add_argument("file")
    command.add_argument("--tag", help="default: the name of its only system, or sessions")
    command.add_argument("--team", help="default: the configured one, or your own")
    command.add_argument("--log-format", help="default: what it looks like")
    command.add_argument("--judged-by", choices=("topic", "session", "query", "own"))
    command.add_argument("--description", default="")
    command.add_argument(
        "--meta",
        action="append",
        default=[],
        metavar="K=V",
        help="metadata, or auto; may be repeated",
    )
    command.add_argument("--dry-run", action="store_true", help="only check the file")
    command.add_argument("--wait", action="store_true", help="wait for the evaluation")
    command.add_argument("--timeout", type=float, default=3600.0, help="seconds to wait")

    command = add_action(
        "values",
        collection_commands.session_values,
        "means of a session set, or its values by session",
    )
    command.add_argument("set", help="id, tag or team/tag")
    _add_measures(command)
    command.add_argument("--per-session", action="store_true")

    for name in ("system", "topic", "searcher"):
        command.add_argument(f"--{name}", help=f"only sessions of this {name}")

    command = add_action(
        "leaderboard", collection_commands.session_leaderboard, "the systems by their means"
    )
    _add_measures(command)
    command.add_argument("--judged-by", choices=("topic", "session", "query", "own"))
    command.add_argument("--sort", help="the measure that ranks")
    command.add_argument("--limit", type=int, help="rows; default: all")


def _add_runs(add: Any) -> None:
    command = add(
        "submit",
        prediction_commands.submit,
        "submit run files, those of a folder, or predictions of a library",
    )
    command.add_argument(
        "collection",
        help="with --from mteb the folder; with --from st left out where one is configured",
    )
    command.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="files or folders; runs of MS MARCO and in JSON are converted",
    )
    command.add_argument("--from", dest="library", choices=("mteb", "st"), help="FILE holds predictions of MTEB or of"
                      " sentence-transformers")  # fmt: skip
    command.add_argument(
        "--suite",
        default="",
        help="COLLECTION is a folder with files or folders named as the collections of this suite",
    )
    command.add_argument(
        "--collections", metavar="TOML", help='with --from mteb: lines such as SciFact = "scifact"'
    )
    command.add_argument(
        "--drop-identical",
        action="store_true",
        help="leave out documents with the id of their topic",
    )
    command.add_argument("--tag", help="of one run; default: that of the file, or the file's name")
    command.add_argument("--team", help="default: the configured one, or your own")
    command.add_argument("--description", default="")
    command.add_argument("--meta", action="append", default=[], metavar="K=V",
                      help="metadata; may be repeated; auto: git commit, versions, command "
                           "line")  # fmt: skip
    command.add_argument("--known", metavar="FILE", help="documents that the user of one run knew")
    command.add_argument(
        "--wait", action="store_true", help="wait for the evaluation and print means"
    )
    command.add_argument("--timeout", type=float, default=3600.0, help="seconds to wait")
    command.add_argument("--dry-run", action="store_true", help="only check the files")
    command.add_argument("--parallel", type=int, default=4, help="files sent at once")
    command.add_argument(
        "--system",
        help="one run becomes the next version of this system, called after it: splade-v4",
    )
    command.add_argument(
        "--replicate",
        metavar="NAME",
        default="",
        help="the files are replicates of one system of this name, such as its seeds: one row, with "
        "the means over them for each topic; they are called after the files",
    )
    command.add_argument("--if-taken", choices=("fail", "skip", "suffix", "version"), default="fail",
                      help="another run has the tag")  # fmt: skip
    command.add_argument(
        "--wait-for-quota", action="store_true", help="where it is used up, go on at midnight UTC"
    )
    command.add_argument(
        "--follow", action="store_true", help="go on with files that appear in the folder"
    )
    command.add_argument(
        "--journal", default=".evh-journal.jsonl", help="what was sent, for the next call"
    )
    command.add_argument(
        "--stop", action="store_true", help="stop at the first file that is refused"
    )
    command.add_argument("--label", help="let a label of the team name the run as it is submitted, with --wait once it"
                      " is evaluated; with --follow the latest one")  # fmt: skip
    command.add_argument(
        "--experiment", help="of the team, by its short name or id: the runs are put into it"
    )
    command.add_argument(
        "--values",
        action="store_true",
        help="a run without a ranking and a file, named with --tag: tables have its values",
    )
    command.add_argument(
        "--passages",
        default="",
        metavar="TEXT",
        help="runs rank passages, such as D1#7 with --passages '#': each document gets its best",
    )

    command = add(
        "replicate",
        commands.replicate,
        "make runs replicates of one system, or single runs again",
    )
    command.add_argument("collection")
    command.add_argument("runs", nargs="+", metavar="RUN", help=_RUN)
    group = command.add_mutually_exclusive_group(required=True)
    group.add_argument("--of", metavar="NAME", help="the name of the system")
    group.add_argument("--single", action="store_true", help="they are single runs again")

    for name, function, help_text in (
        ("status", commands.status, "the states of runs, or of all of a collection"),
        ("watch", commands.watch, "follow the states until no run is on its way"),
        ("wait", commands.wait, "wait for evaluations; the exit status tells"),
    ):
        command = add(name, function, help_text, in_collection=True)
        if name == "wait":
            command.add_argument("runs", nargs="+", metavar="[COLLECTION] RUN", help=_RUN)
            command.add_argument("--timeout", type=float, default=600.0, help="seconds to wait")
        else:
            command.add_argument(
                "runs", nargs="*", metavar="[COLLECTION] RUN", help=f"{_RUN}; default: all"
            )
            command.add_argument("--team", help="runs of this team only")
        if name == "watch":
            command.add_argument(
                "--timeout",
                type=float,
                default=float("inf"),
                help="seconds to wait; default: no end",
            )


def _add_results(add: Any) -> None:
    command = add(
        "values",
        commands.values,
        "means of a run, or its values by topic",
        measures=True,
        in_collection=True,
    )
    command.add_argument("runs", nargs="+", metavar="[COLLECTION] RUN", help=_RUN)
    command.add_argument("--per-topic", action="store_true")

    command = add(
        "leaderboard", commands.leaderboard, "the leaderboard of a collection", measures=True
    )
    command.add_argument("collection", nargs="?", help="default: the configured one")
    command.add_argument("--filter", help="as in the field above the leaderboard: 'bm25 team:lab'")
    command.add_argument("--sort", help="the measure that ranks")
    command.add_argument("--baseline", metavar="RUN", help=_BASELINE)
    command.add_argument("--statistics", help="tiers, intervals, ranks or all")
    command.add_argument(
        "--entries",
        choices=("official", "all"),
        help="of a collection with a phase; default: official",
    )
    _add_topics(command)
    command.add_argument("--by", metavar="KEY", help="a column for each group of topics")
    command.add_argument("--limit", type=int, help="rows; default: all")

    command = add("compare", commands.compare, "compare runs, with tests", measures=True)
    command.add_argument("collection")
    command.add_argument("runs", nargs="*", metavar="RUN", help=f"{_RUN}; default: all")
    command.add_argument("--baseline", metavar="RUN", help=_BASELINE)
    command.add_argument(
        "--test", action="append", default=[], help="a significance test; may be repeated"
    )
    command.add_argument("--correction", help="of p for several pairs: holm, bonferroni, ...")
    _add_topics(command)
    command.add_argument(
        "--by", metavar="KEY", help="two runs in the groups of topics that an attribute makes"
    )
    command.add_argument(
        "--weights", metavar="KEY", help="two runs with topics weighted by a number they have"
    )
    command.add_argument(
        "--timeout", type=float, default=600.0, help="seconds to wait for a long comparison"
    )

    command = add("diff", commands.diff, "two runs topic by topic")
    command.add_argument("collection")
    command.add_argument("a", metavar="RUN")
    command.add_argument("b", metavar="RUN")
    command.add_argument("-m", "--measure")
    command.add_argument("--order", choices=("topic", "difference"), default="topic")
    _add_topics(command)

    command = add("pull", collection_commands.pull, "download runs, values, topics and judgements")
    command.add_argument("collection", nargs="?", help="default: the configured one")
    command.add_argument("runs", nargs="*", metavar="RUN", help=f"{_RUN}; default: all")
    command.add_argument("--to", default=".", help="a folder")


def _add_topics(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--topics", metavar="FILTER", help="the topics to use, as in 'type:navigational words:<4'"
    )


def _add_gate(add: Any) -> None:
    command = add("gate", gate_commands.gate, "fail if a run is worse than a baseline")
    command.add_argument("collection")
    command.add_argument("run", metavar="RUN", help="id, address, tag, team/tag, label:name")
    command.add_argument(
        "--baseline", metavar="RUN", help="the same, or previous: the run of the same tag before it"
    )
    command.add_argument("--rule", action="append", metavar="RULE",
                      help="'nDCG@10 no-worse-than 0.01' (or 2%%), 'AP no-significant-drop', 'AP no-drop', "
                      "'AP at-least 0.3'; may be repeated; default: no-significant-drop of the "
                      "collection's first measure")  # fmt: skip
    command.add_argument("--test", choices=TESTS, default="paired_t")
    command.add_argument(
        "--alpha", type=float, default=0.05, help="level of a verdict, default 0.05"
    )
    command.add_argument(
        "--undecided", choices=("warn", "fail"), default="warn", help="fail: status 11"
    )
    command.add_argument(
        "--no-baseline",
        choices=("fail", "pass"),
        default="fail",
        help="there is no such run or label yet",
    )
    command.add_argument(
        "--promote", metavar="LABEL", help="let this label name the run if all rules are fine"
    )
    command.add_argument("--junit", metavar="FILE", help="write JUnit XML")
    command.add_argument("--markdown", metavar="FILE", help="write Markdown; - is standard output")
    command.add_argument(
        "--timeout", type=float, default=600.0, help="seconds to wait for evaluations"
    )

    command = add("labels", gate_commands.labels, "the labels of a collection")
    command.add_argument("collection")

    command = add("label", gate_commands.label, "let a label name a run, or delete it")
    command.add_argument("collection")
    command.add_argument("name")
    command.add_argument("run", metavar="RUN", nargs="?", help="a run of your team")
    command.add_argument(
        "--expected", metavar="ID", help="only if it names this run now; none: only if it is new"
    )
    command.add_argument("--note", default="", help="why, for the label's history")
    command.add_argument("--delete", action="store_true")
    command.add_argument("--team", help="whose label is deleted, if several of your teams have it")


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command and exit with its status; `argv` begins with the program's name."""
    sys.exit(run(list(sys.argv if argv is None else argv)[1:]))


def run(arguments: list[str]) -> int:
    """Run a command and return its exit status."""
    try:
        args = _parse(arguments)
    except SystemExit as system_exit:
        return int(system_exit.code or 0)

    logging.basicConfig(format="evh: %(message)s", level=logging.WARNING)
    logging.getLogger("evalhub_client").setLevel(logging.INFO if args.verbose else logging.WARNING)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UploadWarning)
            warnings.showwarning = _show_warning
            status: int = args.function(args)
    except EvalHubError as error:
        code = getattr(error, "code", "")
        advice = _ADVICE.get(code, "")
        # The tag of an entry may be taken, too, and `evh campaign enter` has no --if-taken.
        if code == "tag_taken" and not hasattr(args, "if_taken"):
            advice = ""
        message = str(error).rstrip(".") if advice else str(error)
        sys.stderr.write(f"evh: {message}{advice}\n")
        return status_of(error)
    except BrokenPipeError:
        # The reader closed the pipe; the flush at exit must not fail, too.
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


def _show_warning(
    message: Warning | str, category: type[Warning], *place: Any, **more: Any
) -> None:
    """Write a warning as a line for a person, without the place in the code."""
    sys.stderr.write(f"evh: {message}\n")


def _parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options and arguments of a command, in any order of the two."""
    top = parser()
    arguments = _with_action(top, arguments)
    args, unknown = top.parse_known_args(arguments)
    if unknown and not any(text.startswith("-") for text in unknown):
        # argparse ends an argument with several values at the first option: join the values.
        for line in _joined(arguments, unknown):
            joined, rest = top.parse_known_args(line)
            if not rest:
                return joined

    if unknown:
        args.parser.refuse(unknown)
    return args


def _joined(arguments: list[str], late: list[str]) -> Iterator[list[str]]:
    """Yield the arguments with the late ones before each option, from the last one on."""
    rest = arguments[::-1]
    for text in reversed(late):
        rest.remove(text)
    rest.reverse()

    for place in range(len(rest) - 1, _places(arguments)[0], -1):
        if rest[place].startswith("-"):
            yield [*rest[:place], *late, *rest[place:]]


def _places(arguments: list[str]) -> list[int]:
    """Return the places of the command and of what follows it before other options than common."""
    places, skips = [], False
    for place, text in enumerate(arguments):
        if skips or text.startswith("-"):
            skips = not skips and text in _VALUED
        else:
            places.append(place)
    return places


def _with_action(top: Parser, arguments: list[str]) -> list[str]:
    """Return the arguments of `evh qrels C` with the action `list`.

    Exit with the right line where an action follows its collection: `evh qrels upload C FILE`.
    """
    places = _places(arguments)
    if len(places) < 2 or arguments[places[0]] not in _NOUNS:
        return arguments

    noun, first = arguments[places[0]], arguments[places[1]]
    command = top.commands[noun]
    if first in command.commands:
        return arguments
    if len(places) == 2 and "list" in command.commands:
        return [*arguments[: places[1]], "list", *arguments[places[1] :]]

    if len(places) > 2:
        second = arguments[places[2]]
        similar = get_close_matches(second, list(command.commands), 1)
        if similar:
            right = list(arguments)
            right[places[1]], right[places[2]] = similar[0], first
            hint = "" if second in command.commands else f"; did you mean {similar[0]!r}?"
            command.error(
                f"the action comes before the collection: {shlex.join(['evh', *right])}{hint}"
            )

    return arguments
