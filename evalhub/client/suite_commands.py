"""Commands about suites, and their options."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from . import commands
from .benchmarks import BENCHMARKS, import_benchmark
from .commands import say, show
from .errors import WrongOption
from .statuses import DONE
from .suites import suites_of

_FIELDS = ("slug", "name", "team", "version", "collections")
_COLUMNS = ("collection", "measure", "weight", "group")


def list_suites(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        show(args, [{name: row[name] for name in _FIELDS} for row in suites_of(hub)], hub)
    return DONE


def show_suite(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        suite = hub.suite(args.suite).info(args.suite_version)
        show(args, suite.rows(), hub)
    if not args.quiet:
        content = suite.raw["content"]
        say(content["cite"] or f"{suite.name}, version {content['version']}")
    return DONE


def make_suite(args: argparse.Namespace) -> int:
    """Make a suite, or a new version of it."""
    if bool(args.members) == bool(args.file):
        raise WrongOption("name the collections, or a file of them with --file")
    lines = args.members or Path(args.file).read_text(encoding="utf-8").splitlines()
    members = [_member(line) for line in lines if line.strip()]
    names = ("name", "team", "description", "note")
    fields = {name: getattr(args, name) for name in names if getattr(args, name)}
    with commands.hub_of(args) as hub:
        if hub.config.team:
            fields.setdefault("team", hub.config.team)
        suite = hub.suite(args.suite).make(members, **fields)
        show(args, suite.rows(), hub)
        say(f"Version {suite.version}: {suite.page}")
    return DONE


def _member(line: str) -> dict[str, Any]:
    """Return a member from a collection, perhaps with @ and a version of its judgements, a measure,
    a weight and a group."""
    fields: dict[str, Any] = dict(zip(_COLUMNS, line.split(None, 3), strict=False))
    fields["collection"], _, version = fields["collection"].partition("@")
    try:
        if version:
            fields["qrels"] = int(version.removeprefix("v"))
        if "weight" in fields:
            fields["weight"] = float(fields["weight"])
    except ValueError:
        raise WrongOption(
            f"{line!r}: write a collection, a measure, a weight and a group, as in "
            "'scifact nDCG@10 1 science'"
        ) from None
    return fields


def delete_suite(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        hub.suite(args.suite).delete()
    say(f"deleted suite {args.suite}; its collections stay")
    return DONE


def show_board(args: argparse.Namespace) -> int:
    names = ("topics", "order", "resamples", "seed")
    parameters = {"version": args.suite_version} | {name: getattr(args, name) for name in names}
    parameters["systems"] = ",".join(args.system)
    with commands.hub_of(args) as hub:
        query = {name: value for name, value in parameters.items() if value}
        board = hub.suite(args.suite).board(**query)
        show(args, board.rows(), hub)
    for sentence in [] if args.quiet else board.sentences:
        say(sentence)
    return DONE


def compare_systems(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        suite = hub.suite(args.suite)
        comparison = suite.compare(args.first, args.second, args.suite_version, args.topics)
        show(args, comparison.rows(), hub)
    for sentence in [] if args.quiet else comparison.sentences:
        say(sentence)
    return DONE


def import_suite(args: argparse.Namespace) -> int:
    """Import the datasets of BEIR or NanoBEIR, and make a suite of them."""
    with commands.hub_of(args) as hub:
        rows, suite = import_benchmark(
            hub,
            args.suite or args.benchmark,
            BENCHMARKS[args.benchmark],
            only=args.only,
            prefix=args.prefix,
            team=args.team or hub.config.team or None,
            visibility=args.visibility,
        )
        show(args, rows, hub)
        say(f"Version {suite.version}: {suite.page}")
    return DONE


def add_commands(add: Any, add_actions: Any) -> None:
    """Add `evh suite` and its actions."""
    command = add("suite", None, "suites: several collections with one leaderboard")
    add_action = add_actions(command, None)

    add_action("list", list_suites, "the suites that you see")
    for name, function, help_text in (
        ("show", show_suite, "the collections of a suite"),
        ("make", make_suite, "make a suite, or a new version of it"),
        ("delete", delete_suite, "delete a suite with all versions; its collections stay"),
        ("board", show_board, "the systems of a suite by their means"),
        ("compare", compare_systems, "two systems by collection and over all"),
    ):
        action = add_action(name, function, help_text)
        action.add_argument("suite", metavar="SUITE")
        if name == "make":
            action.add_argument(
                "members",
                nargs="*",
                default=[],
                metavar="COLLECTION",
                help="its short name, or also a measure, a weight and a group, as in 'scifact "
                "nDCG@10 1 science'",
            )
            action.add_argument("--file", default="", help="with a line for each collection")
            action.add_argument("--name", default="", help="of a new suite")
            action.add_argument("--team", default="", help="of a new suite; you own it")
            action.add_argument("--description", default="", help="of a new suite")
            action.add_argument("--note", default="", help="on the version")
        if name in ("make", "delete"):
            continue
        if name == "board":
            action.add_argument("--order", choices=("mean", "groups", "borda", "mean_rank"))
            action.add_argument(
                "--system", action="append", default=[], metavar="NAME", help="these alone"
            )
            action.add_argument(
                "--resamples",
                type=int,
                metavar="B",
                help="intervals of Borda's counts from B draws",
            )
            action.add_argument("--seed", type=int, help="of the draws")
        if name in ("board", "compare"):
            action.add_argument(
                "--topics", default="", metavar="WHICH", help="topics, such as type:navigational"
            )
        if name == "compare":
            action.add_argument("first", metavar="TEAM/SYSTEM")
            action.add_argument("second", metavar="TEAM/SYSTEM")
        action.add_argument(
            "--suite-version", type=int, metavar="NUMBER", help="default: the newest"
        )

    for name, benchmark in BENCHMARKS.items():
        action = add_action(
            name, import_suite, f"import the datasets of {benchmark.title} as a suite"
        )
        action.set_defaults(benchmark=name)
        action.add_argument("suite", metavar="SUITE", nargs="?", help=f"default: {name}")
        action.add_argument(
            "--only", action="append", default=[], metavar="DATASET", help="may be repeated"
        )
        action.add_argument(
            "--prefix", help=f"of the names of collections; default: {benchmark.prefix}"
        )
        action.add_argument("--team", default="", help="of new collections and the suite")
        action.add_argument("--visibility", choices=("public", "team", "private"))
