"""Commands that convert files of the field into TREC's columns, without a server."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from .commands import say
from .converting import JSON, RUN_FORMS, TRIPLES, QrelsConverter, RunConverter
from .errors import BadSource
from .sources import convert, form_of_file, tag_of_name
from .statuses import DONE
from .value_converting import VALUE_FORMS, ValuesConverter, names_in


def convert_run(args: argparse.Namespace) -> int:
    """Write a run of another form in six columns."""
    path = Path(args.file)
    form = args.form or form_of_file(path)
    if not form:
        raise BadSource(
            f"{path} has no form that is converted: three columns or JSON. A run of six columns is "
            "submitted as it is"
        )
    if form == TRIPLES and not args.form:
        raise BadSource(
            f"{path} has three columns, and its third does not begin with rank 1; if it is a "
            "score, add --from triples"
        )

    converter = RunConverter(
        str(path),
        form,
        args.tag or tag_of_name(path.name),
        not args.form,
        drop_identical=args.drop_identical,
    )
    return _write(args, converter, path)


def convert_qrels(args: argparse.Namespace) -> int:
    """Write judgements of another form in four columns with whole levels."""
    path = Path(args.file)
    return _write(args, QrelsConverter(str(path), args.scale, form_of_file(path) == JSON), path)


def convert_values(args: argparse.Namespace) -> int:
    """Write values of another form as a table."""
    path = Path(args.file)
    converter = ValuesConverter(
        str(path),
        args.form,
        names_in(args.run, "--run"),
        names_in(args.measure, "--measure"),
    )
    return _write(args, converter, path)


def _write(
    args: argparse.Namespace,
    converter: RunConverter | QrelsConverter | ValuesConverter,
    path: Path,
) -> int:
    """Write the lines to standard output, or into a file that is whole when it is there."""
    if args.to == "-":
        sys.stdout.writelines(convert(converter, path))
    else:
        part = Path(f"{args.to}.part")
        try:
            with part.open("w", encoding="utf-8", newline="") as file:
                file.writelines(convert(converter, path))
            os.replace(part, args.to)
        finally:
            part.unlink(missing_ok=True)

    say(f"evh: {converter.note()}")
    return DONE


def add_commands(add: Any, add_actions: Any) -> None:
    """Add the command to the parser."""
    command = add("convert", None, "write runs, judgements or values of another form in columns")
    add_action = add_actions(command, None)

    action = add_action("run", convert_run, "MS MARCO, three columns or JSON into six columns")
    action.add_argument("file", metavar="FILE")
    action.add_argument("--from", dest="form", choices=RUN_FORMS, help="msmarco: query, document, rank;"
                        " triples: query, document, score; json; default: what it looks like")  # fmt: skip
    action.add_argument("--tag", help="default: the file's name")
    action.add_argument(
        "--drop-identical",
        action="store_true",
        help="leave out documents with the id of their topic",
    )
    action.add_argument("--to", default="-", metavar="FILE", help="default: standard output")

    action = add_action(
        "qrels", convert_qrels, "judgements of BEIR, NTCIR or JSON into four columns"
    )
    action.add_argument("file", metavar="FILE")
    action.add_argument(
        "--scale", type=int, metavar="N", help="multiply every level: 10 makes 0.7 the level 7"
    )
    action.add_argument("--to", default="-", metavar="FILE", help="default: standard output")

    action = add_action(
        "values", convert_values, "values of TIRA or Every Eval Ever into a table for evh tables"
    )
    action.add_argument("file", metavar="FILE")
    action.add_argument(
        "--from", dest="form", choices=VALUE_FORMS, required=True,
        help="tira: trec-eval-leaderboard; every-eval-ever: instances, as in *_samples.jsonl",
    )  # fmt: skip
    action.add_argument(
        "--run", action="append", default=[], metavar="NAME=RUN",
        help="the run that a name or model of the file stands for; may be repeated",
    )  # fmt: skip
    action.add_argument(
        "--measure", action="append", default=[], metavar="NAME=MEASURE",
        help="the declared measure for a name of the file; may be repeated",
    )  # fmt: skip
    action.add_argument("--to", default="-", metavar="FILE", help="default: standard output")
