"""What the commands do that explain the values of a collection, and their options."""

from __future__ import annotations

import argparse
from typing import Any

from . import commands
from .commands import say, show
from .errors import WrongOption
from .statuses import DONE

_KEY = ("space", "name", "unit", "role", "runs", "missing", "distinct", "min", "max", "values")
_SORTS = ("difficulty", "spread", "disagreement", "best", "topic")


def parameters(args: argparse.Namespace) -> int:
    """List the parameters and costs of runs; `values` has the most frequent ones."""
    with commands.hub_of(args) as hub:
        found = hub.collection(args.collection).parameters(
            args.name or "", filter=args.filter or ""
        )
        rows = [{name: row[name] for name in _KEY} for row in found.rows()]
        for row in rows:
            row["values"] = [value["value"] for value in row["values"]]

        show(args, rows, hub)

    return DONE


def configurations(args: argparse.Namespace) -> int:
    """Put the parameters of runs side by side, or list what changed since the baseline."""
    if args.changes and not args.baseline:
        raise WrongOption("--changes lists what changed since --baseline RUN; name it")

    with commands.hub_of(args) as hub:
        how = {"baseline": args.baseline, "filter": args.filter or ""}
        found = hub.collection(args.collection).configurations(args.runs, **how)
        show(args, found.since() if args.changes else found.rows(), hub)

        if not args.changes:
            counts = (len(found.raw["runs"]), len(found.raw["differ"]), len(found.raw["same"]))
            say("{} runs: {} parameters differ, {} are the same.".format(*counts))

    return DONE


def difficulty(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        how = {"sort": args.sort, "order": args.order}
        found = hub.collection(args.collection).difficulty(args.measure, args.limit, **how)
        show(args, found.rows(), hub)
        _warn(found)
    return DONE


def show_topic(args: argparse.Namespace) -> int:
    """Show what every run reaches on a topic; its text and judgements are written beside."""
    with commands.hub_of(args) as hub:
        found = hub.collection(args.collection).topic(args.topic, args.measure, args.limit)
        show(args, found.rows(), hub)
        title = f": {found.title}" if found.title else ""
        say(
            f"Topic {found.topic_id}{title}. {found.judged} documents are judged, "
            f"{found.relevant} relevant."
        )
        _warn(found)

    return DONE


def importance(args: argparse.Namespace) -> int:
    """List what changing one parameter changed, or with --levels what goes with the measure."""
    with commands.hub_of(args) as hub:
        chosen = {"runs": args.runs or None, "filter": args.filter}
        found = hub.collection(args.collection).importance(args.measure, **chosen)
        show(args, found.levels() if args.levels else found.rows(), hub)
        if found.message:
            say(found.message)

        _warn(found)

    return DONE


def frontier(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        chosen: dict[str, Any] = {
            "runs": args.runs or None,
            "filter": args.filter,
            "across": args.across or None,
        }
        found = hub.collection(args.collection).frontier(args.measure, args.cost, **chosen)
        show(args, found.rows(), hub)
        _warn(found)

    return DONE


def _warn(found: Any) -> None:
    for caution in found.cautions:
        say(f"{caution['code']}: {caution['message']}")


def add_topics(within: Any) -> None:
    """Add what `evh topics C` does with the values of topics."""
    made = within("difficulty", difficulty, "the judged topics by what the runs reach on them")
    made.add_argument("-m", "--measure", help="default: the collection's first")
    made.add_argument("--sort", choices=_SORTS, help="default: difficulty")
    made.add_argument("--order", choices=("asc", "desc"), help="default: the worst first")
    made.add_argument("--limit", type=int, help="rows; default: all")
    made = within("show", show_topic, "what every run reaches on one")
    made.add_argument("topic", help="its id")
    made.add_argument("-m", "--measure", help="default: the collection's first")
    made.add_argument("--limit", type=int, help="rows; default: all")


def add_commands(add: Any, run: str) -> None:
    """Add the commands to the parser; `run` says how a run is named."""
    made = add(
        "parameters", parameters, "the parameters and costs of runs, with the values that occur"
    )
    made.add_argument("collection", nargs="?", help="default: the configured one")
    made.add_argument("--name", metavar="TEXT", help="those with this in their name")
    made.add_argument("--filter", help="of the runs that a filter of the leaderboard selects")

    for name, function, does in (
        ("configurations", configurations, "how runs were made, side by side"),
        ("importance", importance, "which parameters matter for a measure"),
        ("frontier", frontier, "which runs are worth their cost"),
    ):
        made = add(name, function, does)
        made.add_argument("collection")
        made.add_argument("runs", nargs="*", metavar="RUN", help=f"{run}; default: all")
        made.add_argument(
            "--filter",
            help="the runs that a filter of the leaderboard selects: 'param:bm25.k1>0.9'",
        )

        if name == "configurations":
            made.add_argument(
                "--baseline", metavar="RUN", help="the first one, which the others are held against"
            )
            made.add_argument(
                "--changes",
                action="store_true",
                help="list what changed in each run since the baseline",
            )
        else:
            made.add_argument("-m", "--measure", help="default: the collection's first")

        if name == "importance":
            made.add_argument(
                "--levels", action="store_true", help="the parameters that go with the measure"
            )

        if name == "frontier":
            made.add_argument(
                "--cost", help="such as latency_ms; default: the one that most runs have"
            )
            made.add_argument(
                "--across", action="store_true", help="compare runs on different hardware, too"
            )
