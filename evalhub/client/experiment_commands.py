"""Commands about experiments and notes, and their options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from . import commands
from .experiments import ids_of
from .statuses import DONE


def list_experiments(args: argparse.Namespace) -> int:
    filters = {name: getattr(args, name, None) for name in ("team", "collection")}
    filters = {name: value for name, value in filters.items() if value}
    with commands.hub_of(args) as hub:
        experiments = hub.experiments(**filters).rows()
        commands.show(args, [{name: row[name] for name in _FIELDS} for row in experiments], hub)

    return DONE


def show_experiment(args: argparse.Namespace) -> int:
    """Show the runs of an experiment."""
    with commands.hub_of(args) as hub:
        commands.show(args, hub.experiment(args.experiment).runs, hub)
    return DONE


def create_experiment(args: argparse.Namespace) -> int:
    fields = {"name": args.name or args.experiment, "goal": args.goal, "team": args.team}
    with commands.hub_of(args) as hub:
        fields = {name: value for name, value in fields.items() if value}
        experiment = hub.create_experiment(args.experiment, **fields)
        commands.show(args, experiment.rows(), hub)
        commands.say(experiment.page)

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


_FIELDS = ("id", "team", "slug", "name", "visibility", "baseline", "count", "created_at")


def add_commands(add: Any, add_actions: Any, run: str) -> None:
    """Add the commands to the parser; `run` says how a run is named."""
    name_help = "short name, team/short name or id"
    command = add(
        "experiments", list_experiments, "experiments: list, show, create, add and remove runs"
    )
    add_action = add_actions(command, list_experiments)

    action = add_action("list", list_experiments, "list those that you see")
    action.add_argument("--team", help="of this team only")
    action.add_argument("--collection", help="only those with runs of this collection")

    action = add_action("show", show_experiment, "the runs of one")
    action.add_argument("experiment", help=name_help)

    action = add_action("create", create_experiment, "create one")
    action.add_argument("experiment", metavar="SLUG", help="its short name")
    action.add_argument("--name", help="default: its short name")
    action.add_argument("--goal", default="")
    action.add_argument("--team", help="default: the configured one, or your own")

    for name, function, help_text in (
        ("add", add_runs, "put runs into one"),
        ("remove", remove_runs, "take runs out"),
    ):
        action = add_action(name, function, help_text)
        action.add_argument("experiment", help=name_help)
        action.add_argument("runs", nargs="+", metavar="RUN", help=run)
        action.add_argument("-c", "--collection", default="", help="of runs that are named by tag")

    for name, function, help_text in (
        ("notes", list_notes, "the notes about a run or an experiment"),
        ("note", write_note, "write a note about a run or an experiment"),
    ):
        command = add(name, function, help_text, in_collection=True)
        command.add_argument("name", metavar="RUN", help=f"{run}; with --experiment, one of those")
        command.add_argument("--experiment", action="store_true", help="NAME is an experiment")
        if name == "note":
            command.add_argument("text")
