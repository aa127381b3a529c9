"""Commands about value tables: measures that other programs compute, and their values."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from . import commands
from .collection_commands import write_file
from .commands import say, show
from .statuses import DONE

_MEASURE = (
    "name", "direction", "low", "high", "unit", "aggregate", "missing", "source", "version",
    "description",
)  # fmt: skip
_TABLE = ("number", "measures", "runs", "values", "tool", "tool_version", "note", "created_at")
_OPTIONS = ("low", "high", "unit", "description", "aggregate", "missing", "source")


def list_tables(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        rows = hub.collection(args.collection).tables().rows()
        show(args, [{name: row[name] for name in _TABLE} for row in rows], hub)
    return DONE


def list_measures(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        rows = hub.collection(args.collection).declared_measures().rows()
        show(args, [{name: row[name] for name in _MEASURE} for row in rows], hub)
    return DONE


def declare_measure(args: argparse.Namespace) -> int:
    fields: dict[str, Any] = {name: getattr(args, name) for name in _OPTIONS}
    fields = {name: value for name, value in fields.items() if value not in (None, "")}
    with commands.hub_of(args) as hub:
        collection = hub.collection(args.collection)
        measure = collection.declare_measure(args.name, args.direction, **fields).raw
        show(args, [{name: measure[name] for name in _MEASURE}], hub)
    return DONE


def delete_measure(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        hub.collection(args.collection).delete_measure(args.name)
        say(f"deleted {args.name} of {args.collection} and its values")
    return DONE


def upload_table(args: argparse.Namespace) -> int:
    names = ("note", "tool", "tool_version", "dry_run")
    options = {name: getattr(args, name) for name in names}
    with commands.hub_of(args) as hub:
        answer = hub.collection(args.collection).upload_values(Path(args.file), **options).raw
        row = {
            name: answer.get(name) for name in ("number", "measures", "runs", "values", "sha256")
        }
        show(args, [{"file": args.file, **row}], hub)
    return DONE


def pull_table(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        write_file(args.to, hub.collection(args.collection).values_file(args.name))
    return DONE


def add_commands(add: Any, add_actions: Any) -> None:
    """Add the command and its options."""
    command = add("tables", None, "values of other programs: declare measures, upload tables")
    add_action = add_actions(command, None, in_collection=True)
    add_action("list", list_tables, "list the uploaded tables")
    add_action("measures", list_measures, "list the declared measures")

    command = add_action("declare", declare_measure, "declare a measure, such as latency_ms")
    command.add_argument("name", help="other commands call it x:NAME")
    command.add_argument("direction", choices=("higher", "lower"), help="which values are better")
    command.add_argument("--low", type=float, metavar="NUMBER", help="no value is lower")
    command.add_argument("--high", type=float, metavar="NUMBER", help="no value is higher")
    command.add_argument("--unit", default="", help="such as ms")
    command.add_argument("--description", default="")
    command.add_argument(
        "--aggregate", choices=("mean", "geometric"), help="the value of a run; default: mean"
    )
    command.add_argument(
        "--missing",
        choices=("undefined", "zero"),
        help="the value of a topic that tables lack; default: undefined",
    )
    command.add_argument(
        "--source",
        choices=("organiser", "reported"),
        help="who gives values: organisers, or each team those of its own runs; default: organiser",
    )

    command = add_action("delete", delete_measure, "delete a measure and its values")
    command.add_argument("name")

    command = add_action(
        "upload", upload_table, "upload values: lines of run, topic, measure, value"
    )
    command.add_argument("file", help="columns with tabs or blanks between them, or lines of JSON")
    command.add_argument("--note", default="")
    command.add_argument(
        "--tool", default="", metavar="NAME", help="the program that computed them"
    )
    command.add_argument("--tool-version", default="", metavar="TEXT", help="its version")
    command.add_argument("--dry-run", action="store_true", help="only check the table")

    command = add_action("pull", pull_table, "write the values of a measure into a file")
    command.add_argument("name")
    command.add_argument("--to", default="-", metavar="FILE", help="default: standard output")
