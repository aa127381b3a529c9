"""Commands about parameters, costs and topics of a collection, and their options."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from . import commands
from .commands import say, show
from .errors import WrongOption
from .statuses import DONE

_PARAMETER_FIELDS = (
    "space",
    "name",
    "unit",
    "role",
    "runs",
    "missing",
    "distinct",
    "min",
    "max",
    "values",
)
_SORTS = ("difficulty", "spread", "disagreement", "best", "topic")


def parameters(args: argparse.Namespace) -> int:
    """List the parameters and costs of runs; `values` has the most frequent ones."""
    if args.upload:
        return _upload_parameters(args)
    if args.dry_run:
        raise WrongOption("--dry-run checks the CSV of --upload FILE; name it")

    with commands.hub_of(args) as hub:
        collection = hub.collection(args.collection)
        listing = collection.parameters(args.name or "", filter=args.filter or "")
        rows = [{name: row[name] for name in _PARAMETER_FIELDS} for row in listing.rows()]
        for row in rows:
            row["values"] = [value["value"] for value in row["values"]]

        show(args, rows, hub)

    return DONE


def _upload_parameters(args: argparse.Namespace) -> int:
    """Set the parameters of the runs of a CSV, and list those that change."""
    with commands.hub_of(args) as hub:
        collection = hub.collection(args.collection)
        answer = collection.upload_parameters(Path(args.upload), dry_run=args.dry_run).raw
        rows = [{"tag": run["tag"], "changes": len(run["changes"])} for run in answer["results"]]
        show(args, rows, hub)
        done = "would change" if args.dry_run else "changed"
        say(f"{answer['changed']} of {answer['runs']} runs {done}.")

    return DONE


def configurations(args: argparse.Namespace) -> int:
    """Put the parameters of runs side by side, or list what changed since the baseline."""
    if args.changes and not args.baseline:
        raise WrongOption("--changes lists what changed since --baseline RUN; name it")

    with commands.hub_of(args) as hub:
        collection = hub.collection(args.collection)
        answer = collection.configurations(
            args.runs, baseline=args.baseline, filter=args.filter or ""
        )
        show(args, answer.since() if args.changes else answer.rows(), hub)

        if not args.changes:
            raw = answer.raw
            say(
                f"{len(raw['runs'])} runs: {len(raw['differ'])} parameters differ, "
                f"{len(raw['same'])} are the same."
            )

    return DONE


def difficulty(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        collection = hub.collection(args.collection)
        parameters = {"sort": args.sort, "order": args.order}
        answer = collection.difficulty(args.measure, args.limit, **parameters)
        show(args, answer.rows(), hub)
        _say_cautions(answer)

    return DONE


def show_topic(args: argparse.Namespace) -> int:
    """Show the values of all runs on a topic, after a line about the topic on standard error."""
    with commands.hub_of(args) as hub:
        topic = hub.collection(args.collection).topic(args.topic, args.measure, args.limit)
        show(args, topic.rows(), hub)
        title = f": {topic.title}" if topic.title else ""
        say(
            f"Topic {topic.topic_id}{title}. {topic.judged} documents are judged, "
            f"{topic.relevant} relevant."
        )
        _say_cautions(topic)

    return DONE


def importance(args: argparse.Namespace) -> int:
    """List what changing one parameter changed, or with --levels what goes with the measure."""
    with commands.hub_of(args) as hub:
        selection = {"runs": args.runs or None, "filter": args.filter}
        answer = hub.collection(args.collection).importance(args.measure, **selection)
        show(args, answer.levels() if args.levels else answer.rows(), hub)
        if answer.message:
            say(answer.message)
        _say_cautions(answer)

    return DONE


def frontier(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        selection: dict[str, Any] = {"runs": args.runs or None, "filter": args.filter}
        selection["across"] = args.across or None
        answer = hub.collection(args.collection).frontier(args.measure, args.cost, **selection)
        show(args, answer.rows(), hub)
        _say_cautions(answer)

    return DONE


def _say_cautions(answer: Any) -> None:
    for caution in answer.cautions:
        say(f"{caution['code']}: {caution['message']}")


def add_topics(add_action: Any) -> None:
    """Add the actions of `evh topics C` that read values of topics."""
    action = add_action(
        "difficulty", difficulty, "the judged topics by what the runs reach on them"
    )
    action.add_argument("-m", "--measure", help="default: the collection's first")
    action.add_argument("--sort", choices=_SORTS, help="default: difficulty")
    action.add_argument("--order", choices=("asc", "desc"), help="default: the worst first")
    action.add_argument("--limit", type=int, help="rows; default: all")

    action = add_action("show", show_topic, "what every run reaches on one")
    action.add_argument("topic", help="its id")
    action.add_argument("-m", "--measure", help="default: the collection's first")
    action.add_argument("--limit", type=int, help="rows; default: all")


def add_commands(add: Any, run: str) -> None:
    """Add the commands to the parser; `run` says how a run is named."""
    command = add(
        "parameters", parameters, "the parameters and costs of runs, with the values that occur"
    )
    command.add_argument("collection", nargs="?", help="default: the configured one")
    command.add_argument("--name", metavar="TEXT", help="those with this in their name")
    command.add_argument("--filter", help="of the runs that a filter of the leaderboard selects")
    command.add_argument(
        "--upload",
        metavar="FILE",
        help="set those of the runs of a CSV: a column tag, and one for each parameter",
    )
    command.add_argument("--dry-run", action="store_true", help="with --upload: store nothing")

    for name, function, help_text in (
        ("configurations", configurations, "how runs were made, side by side"),
        ("importance", importance, "which parameters matter for a measure"),
        ("frontier", frontier, "which runs are worth their cost"),
    ):
        command = add(name, function, help_text)
        command.add_argument("collection")
        command.add_argument("runs", nargs="*", metavar="RUN", help=f"{run}; default: all")
        command.add_argument(
            "--filter",
            help="the runs that a filter of the leaderboard selects: 'param:bm25.k1>0.9'",
        )
        if name == "configurations":
            command.add_argument(
                "--baseline", metavar="RUN", help="the first one, which the others are held against"
            )
            command.add_argument(
                "--changes",
                action="store_true",
                help="list what changed in each run since the baseline",
            )
        else:
            command.add_argument("-m", "--measure", help="default: the collection's first")
        if name == "importance":
            command.add_argument(
                "--levels", action="store_true", help="the parameters that go with the measure"
            )
        if name == "frontier":
            command.add_argument(
                "--cost", help="such as latency_ms; default: the one that most runs have"
            )
            command.add_argument(
                "--across", action="store_true", help="compare runs on different hardware, too"
            )
