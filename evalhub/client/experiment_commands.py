"""What the commands of experiments and notes do, and their options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from . import commands
from .experiments import ids_of
from .statuses import DONE


def list_experiments(args: argparse.Namespace) -> int:
    asked = {name: getattr(args, name, None) for name in ("team", "collection")}
    with commands.hub_of(args) as hub:
        found = hub.experiments(**{name: value for name, value in asked.items() if value})
        rows = [{name: row[name] for name in _LISTED} for row in found.rows()]
        commands.show(args, rows, hub)

    return DONE


def show_experiment(args: argparse.Namespace) -> int:
    """Show the runs of an experiment."""
    with commands.hub_of(args) as hub:
        commands.show(args, hub.experiment(args.experiment).runs, hub)
    return DONE


def create_experiment(args: argparse.Namespace) -> int:
    fields = {"name": args.name or args.experiment, "goal": args.goal, "team": args.team}
    with commands.hub_of(args) as hub:
        made = hub.create_experiment(
            args.experiment, **{name: value for name, value in fields.items() if value}
        )
        commands.show(args, made.rows(), hub)
        commands.say(made.page)

    return DONE


def add_runs(args: argparse.Namespace) -> int:
    return _change_runs(args, lambda experiment, runs: experiment.add(*runs))


def remove_runs(args: argparse.Namespace) -> int:
    return _change_runs(args, lambda experiment, runs: experiment.remove(*runs))


def _change_runs(args: argparse.Namespace, change: Callable[[Any, list[str]], Any]) -> int:
    with commands.hub_of(args) as hub:
        runs = ids_of(hub, args.runs, args.collection)
        commands.show(args, change(hub.experiment(args.experiment), runs).rows(), hub)
    return DONE


def list_notes(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        commands.show(args, _subject(args, hub).notes().rows(), hub)
    return DONE


def write_note(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        commands.show(args, _subject(args, hub).note(args.text).rows(), hub)
    return DONE


def _subject(args: argparse.Namespace, hub: Any) -> Any:
    """Return the run or the experiment that the notes are about."""
    return hub.experiment(args.name) if args.experiment else hub.run(args.name, args.collection)


_LISTED = ("id", "team", "slug", "name", "visibility", "baseline", "count", "created_at")


def add_commands(add: Any, within: Any, run: str) -> None:
    """Add the commands to the parser; `run` says how a run is named."""
    named = "short name, team/short name or id"
    made = within(add("experiments", list_experiments, "experiments: list, show, create, add and remove "
                                                       "runs"),
                  list_experiments)  # fmt: skip
    listed = made("list", list_experiments, "list those that you see")
    listed.add_argument("--team", help="of this team only")
    listed.add_argument("--collection", help="only those with runs of this collection")
    made("show", show_experiment, "the runs of one").add_argument("experiment", help=named)
    created = made("create", create_experiment, "create one")
    created.add_argument("experiment", metavar="SLUG", help="its short name")
    created.add_argument("--name", help="default: its short name")
    created.add_argument("--goal", default="")
    created.add_argument("--team", help="default: the configured one, or your own")

    for name, function, does in (
        ("add", add_runs, "put runs into one"),
        ("remove", remove_runs, "take runs out"),
    ):
        changed = made(name, function, does)
        changed.add_argument("experiment", help=named)
        changed.add_argument("runs", nargs="+", metavar="RUN", help=run)
        changed.add_argument("-c", "--collection", default="", help="of runs that are named by tag")

    for name, function, does in (
        ("notes", list_notes, "the notes about a run or an experiment"),
        ("note", write_note, "write a note about a run or an experiment"),
    ):
        noted = add(name, function, does, of=True)
        noted.add_argument("name", metavar="RUN", help=f"{run}; with --experiment, one of those")
        noted.add_argument("--experiment", action="store_true", help="NAME is an experiment")
        if name == "note":
            noted.add_argument("text")
