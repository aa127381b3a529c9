"""Commands about judgements by a model, and their options."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from . import commands, judging
from .collection_commands import QRELS_FIELDS
from .commands import say, show
from .errors import NotFound
from .statuses import DONE


def write_pairs(args: argparse.Namespace) -> int:
    """Write the pairs that are to be judged, as lines of JSON."""
    with ExitStack() as files, commands.hub_of(args) as hub:
        collection = hub.collection(args.collection)
        version = args.version or collection.info().raw["active_qrels"]
        if not version:
            detail = f"collection {args.collection} shows no active judgements; name a version"
            raise NotFound(404, {"detail": detail})

        texts = files.enter_context(open(args.texts, encoding="utf-8")) if args.texts else None
        pairs = judging.pairs_to_judge(
            collection, version, runs=args.run, depth=args.depth, which=args.which, texts=texts
        )
        output: Any = sys.stdout
        if args.to != "-":
            output = files.enter_context(open(args.to, "w", encoding="utf-8"))

        written = without_text = 0
        for pair in pairs:
            output.write(f"{json.dumps(pair, ensure_ascii=False)}\n")
            written += 1
            without_text += not (pair["title"] or pair["text"])

    say(f"{written:,} pairs of version {version} are to be judged.")
    if without_text:
        say(f"{without_text:,} have no text: name a file of texts with --texts.")
    return DONE


def store_answers(args: argparse.Namespace) -> int:
    """Upload a model's answers as a version of the judgements."""
    with open(args.answers, encoding="utf-8") as lines:
        answers = judging.read_answers(lines)

    with commands.hub_of(args) as hub:
        collection = hub.collection(args.collection)
        content = "".join(answers.lines()).encode()
        parent, derivation = None, args.derivation if args.parent else ""
        if args.parent:
            version = collection.qrels(args.parent)
            parent = version.info().raw
            if derivation == "filled":
                content = judging.filled(version.file(), answers)

        answer = collection.upload_qrels(
            content,
            activate=args.activate,
            note=args.note,
            author_kind=judging.author_kind_of(parent, derivation, args.model),
            author=args.author,
            model=args.model,
            prompt=Path(args.prompt).read_text(encoding="utf-8") if args.prompt else "",
            parent=args.parent,
            derivation=derivation,
            produced_at=args.produced_at,
        ).raw
        show(args, [{name: answer[name] for name in QRELS_FIELDS}], hub)

    say(f"{answers.pairs:,} answers are in version {answer['version']}.")
    return DONE


def add_commands(add: Any, add_actions: Any) -> None:
    """Add the command and its options."""
    command = add("judge", None, "judgements by a model: write pairs, store its answers")
    add_action = add_actions(command, None, in_collection=True)

    command = add_action("pairs", write_pairs, "write the pairs to judge as lines of JSON")
    command.add_argument("version", type=int, nargs="?", help="default: the active one")
    command.add_argument(
        "--which", choices=judging.WHICH, default=judging.HOLES,
        help="documents at the top of runs without a judgement, those with one, or both",
    )  # fmt: skip
    command.add_argument(
        "--run", action="append", default=[], metavar="RUN", help="default: all runs; repeatable"
    )
    command.add_argument("--depth", type=int, default=10, metavar="K", help="default: 10")
    command.add_argument(
        "--texts", metavar="FILE",
        help="lines of JSON with _id, title and text; default: the titles of the collection",
    )  # fmt: skip
    command.add_argument("--to", default="-", metavar="FILE", help="default: standard output")

    command = add_action("store", store_answers, "upload answers as a version of the judgements")
    command.add_argument("answers", help="lines of JSON with topic, doc and level")
    command.add_argument("--model", required=True, help="the model that judged, with its version")
    command.add_argument("--author", default="", metavar="NAME", help="the name of the judge")
    command.add_argument("--prompt", metavar="FILE", help="a file with its prompt")
    command.add_argument(
        "--parent", type=int, metavar="VERSION", help="the version that was filled or judged again"
    )
    command.add_argument(
        "--derivation", choices=("filled", "replaced"), default="filled",
        help="of the parent; default: filled",
    )  # fmt: skip
    command.add_argument("--produced-at", default="", metavar="TIME", help="when they were made")
    command.add_argument("--note", default="")
    command.add_argument("--activate", action="store_true", help="evaluate all runs against it")
