"""Commands about pools, and their options."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from . import commands
from .commands import say, show
from .errors import WrongOption
from .statuses import DONE

_FIELDS = (
    "id", "number", "collection", "campaign", "phase", "state", "method", "documents", "note",
    "created_at", "frozen_at", "shown",
)  # fmt: skip
_NUMBERS = ("k", "budget", "n", "p", "seed")
_WORDS = ("method", "by", "note")
_FORMS = ("tsv", "trec", "jsonl")


def _row(raw: dict[str, Any]) -> dict[str, Any]:
    return {name: raw[name] for name in _FIELDS}


def list_pools(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        show(args, [_row(row) for row in hub.pools(args.place).rows()], hub)
    return DONE


def make_pool(args: argparse.Namespace) -> int:
    """Make a draft, or show the documents of the first runs at each depth."""
    recipe: dict[str, Any] = {
        name: value
        for name in (*_WORDS, *_NUMBERS)
        if (value := getattr(args, name)) not in (None, "")
    }
    recipe["only_new"] = not args.with_judged
    if args.baselines:
        recipe["baselines"] = True
    if args.priorities:
        recipe["priorities"] = [_number(text) for text in args.priorities.split(",")]
    if args.topics:
        recipe["topics"] = args.topics.split(",")
    if args.run:
        recipe["runs"] = args.run
    if args.stratum:
        recipe["strata"] = [_stratum(text) for text in args.stratum]
    if args.extra:
        recipe["extra"] = _extra(args.extra)

    with commands.hub_of(args) as hub:
        pools = hub.pools(args.place)
        if args.dry_run:
            check = pools.check(**recipe)
            show(args, check.rows(), hub)
            say(f"{check.documents:,} documents on {len(check.topics)} topics; nothing is stored")
        else:
            pool = pools.make(**recipe)
            show(args, [_row(pool.raw)], hub, upright=True)
    return DONE


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise WrongOption(f"--priorities {text!r}: write whole numbers, as in 1,2") from None


def _stratum(text: str) -> dict[str, Any]:
    try:
        ranks, rate = text.split(":")
        first, last = ranks.split("-")
        return {"ranks": [int(first), int(last)], "rate": float(rate)}
    except ValueError:
        raise WrongOption(f"--stratum {text!r}: write ranks and a rate, as in 11-100:0.1") from None


def _extra(path: str) -> list[dict[str, str]]:
    documents = []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        if not line.strip():
            continue
        topic_id, _, doc_id = line.strip().partition("\t" if "\t" in line else " ")
        if not doc_id.strip():
            raise WrongOption(f"{path}, line {number}: write a topic, a blank and a document")
        documents.append({"topic_id": topic_id, "doc_id": doc_id.strip()})
    return documents


def show_pool(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        pool = hub.pool(args.pool).info()
        show(args, [{**_row(pool.raw), "sha256": pool.sha256}], hub, upright=True)
    return DONE


def freeze_pool(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        show(args, [_row(hub.pool(args.pool).freeze().raw)], hub, upright=True)
    return DONE


def publish_pool(args: argparse.Namespace) -> int:
    """Show a frozen pool to all who see the results of its collection, or hide it again."""
    with commands.hub_of(args) as hub:
        pool = hub.pool(args.pool).show(not args.hide)
        show(args, [_row(pool.raw)], hub, upright=True)
    return DONE


def delete_pool(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        hub.pool(args.pool).delete()
    return DONE


def show_statistics(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        statistics = hub.pool(args.pool).statistics()
        show(args, statistics.rows(), hub)
    return DONE


def show_reusability(args: argparse.Namespace) -> int:
    """Show the runs with and without what their own team brought to the pool."""
    parameters = {"measures": args.measure, "by": args.by, "depth": args.depth}
    parameters["pooled"] = args.run
    query = {name: value for name, value in parameters.items() if value}
    with commands.hub_of(args) as hub:
        answer = hub.collection(args.collection).reusability(**query)
        show(args, answer.rows(), hub)
        for sentence in answer.sentences:
            say(sentence)
    return DONE


def show_undecided(args: argparse.Namespace) -> int:
    """Show the unjudged documents that would decide which of two runs is ahead."""
    with commands.hub_of(args) as hub:
        answer = hub.collection(args.collection).undecided(args.a, args.b, args.measure)
        show(args, answer.rows(), hub)
        say(answer.sentence)
    return DONE


def save_files(args: argparse.Namespace) -> int:
    """Save the files for an assessor: one topic, or a zip archive of all."""
    with commands.hub_of(args) as hub:
        pool = hub.pool(args.pool)
        if args.topic:
            content = pool.file(args.topic, args.form, args.assessor)
        else:
            content = pool.archive(args.form, args.assessor)

    path = Path(args.out or (f"{args.topic}.{args.form}" if args.topic else "pool.zip"))
    path.write_bytes(content)
    if not args.quiet:
        say(f"{path}: {len(content):,} bytes")
    return DONE


def add_commands(add: Any, add_actions: Any) -> None:
    """Add `evh pool` and its actions."""
    command = add("pool", None, "pools: the documents of runs that assessors judge")
    add_action = add_actions(command, None)
    place = "a collection, or CAMPAIGN/PHASE"

    action = add_action("list", list_pools, "the pools that you see")
    action.add_argument("place", metavar="PLACE", help=place)

    action = add_action("make", make_pool, "make a draft, or count its documents")
    action.add_argument("place", metavar="PLACE", help=place)
    action.add_argument("--method", choices=("depth", "take", "sample"), required=True)
    action.add_argument("-k", type=int, help="ranks of each run")
    action.add_argument("--budget", type=int, help="of depth: the most documents over all topics")
    action.add_argument("-n", type=int, help="of take: documents of a topic")
    action.add_argument("--by", choices=("rrf", "rbp"), help="of take: the score of documents")
    action.add_argument("-p", type=float, help="of take by rbp: persistence, 0.8 by default")
    action.add_argument(
        "--stratum",
        action="append",
        default=[],
        metavar="FIRST-LAST:RATE",
        help="of sample, as in 11-100:0.1; may be repeated",
    )
    action.add_argument("--priorities", default="", help="of entries, as in 1,2; default: all")
    action.add_argument("--baselines", action="store_true", help="baselines contribute, too")
    action.add_argument(
        "--run", action="append", default=[], metavar="ID", help="a run; may be repeated"
    )
    action.add_argument("--topics", default="", help="ids with commas between; default: all")
    action.add_argument("--extra", default="", metavar="FILE", help="lines of topic and document")
    action.add_argument(
        "--with-judged", action="store_true", help="keep judged and pooled documents"
    )
    action.add_argument("--seed", type=int, help="of samples and of the order of files")
    action.add_argument("--note", default="")
    action.add_argument("--dry-run", action="store_true", help="count; store nothing")

    for name, function, help_text in (
        ("show", show_pool, "one pool"),
        ("freeze", freeze_pool, "freeze a draft: it never changes again"),
        ("publish", publish_pool, "show a frozen pool to all who see the results"),
        ("delete", delete_pool, "delete a draft"),
        ("statistics", show_statistics, "what each run brought"),
        ("files", save_files, "save the files for an assessor"),
    ):
        action = add_action(name, function, help_text)
        action.add_argument("pool", metavar="ID")
        if name == "publish":
            action.add_argument("--hide", action="store_true", help="to organisers alone again")
        if name == "files":
            action.add_argument("--topic", default="", help="one topic; default: a zip of all")
            action.add_argument("--form", choices=_FORMS, default="tsv")
            action.add_argument("--assessor", default="", help="whose order the documents have")
            action.add_argument("--out", default="", metavar="FILE")

    action = add_action(
        "reusability", show_reusability, "runs without what their own team brought to the pool"
    )
    action.add_argument("collection", metavar="COLLECTION")
    action.add_argument("-m", "--measure", default="", help="default: the collection's first")
    action.add_argument(
        "--by", default="", metavar="NAME", help="team (the default), run, or a parameter of runs"
    )
    action.add_argument("--depth", type=int, metavar="K", help="ranks of pooled runs")
    action.add_argument(
        "--run", action="append", default=[], metavar="ID", help="a pooled run; may be repeated"
    )

    action = add_action(
        "undecided", show_undecided, "unjudged documents that decide which of two runs is ahead"
    )
    action.add_argument("collection", metavar="COLLECTION")
    action.add_argument("a", metavar="RUN")
    action.add_argument("b", metavar="RUN")
    action.add_argument("-m", "--measure", help="P@k, CG@k, DCG@k or RBP(rel=1)")
