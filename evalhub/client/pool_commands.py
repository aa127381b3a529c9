"""Commands about pools, and their options."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from . import commands
from .commands import say, show
from .errors import WrongOption
from .hub import Hub
from .pools import Pool
from .statuses import DONE

_FIELDS = (
    "id", "number", "collection", "campaign", "phase", "state", "method", "documents", "note",
    "created_at", "frozen_at", "shown",
)  # fmt: skip
_NUMBERS = ("k", "budget", "n", "p", "seed")
_WORDS = ("method", "by", "note")
_FORMS = ("tsv", "trec", "jsonl")
_IMPORTED = ("lines", "new", "changed", "same", "unjudged")
_VERSION = ("collection", "version", "active", "judgements", "levels", "resolve")
_RULES = (
    "adjudicated", "majority", "max", "min", "mean_rounded_down", "latest", "primary",
)  # fmt: skip


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


def show_assignments(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        show(args, hub.pool(args.pool).assignments(), hub)
    return DONE


def assign_topics(args: argparse.Namespace) -> int:
    """Give topics to an assessor."""
    fields = {
        "topics": args.topics.split(",") if args.topics else None,
        "copies": args.copies,
        "overlap": args.overlap,
        "due_at": args.due or None,
    }
    with commands.hub_of(args) as hub:
        rows = hub.pool(args.pool).assign(args.assessor, **fields)
        show(args, rows, hub)
    return DONE


def unassign_topics(args: argparse.Namespace) -> int:
    """Take topics from an assessor, by default all; the judgements stay."""
    topics = args.topics.split(",") if args.topics else None
    with commands.hub_of(args) as hub:
        pool = hub.pool(args.pool)
        for row in pool.assignments():
            if row["assessor"] == args.assessor and (topics is None or row["topic_id"] in topics):
                pool.unassign(row["assessor"], row["topic_id"])
    return DONE


def write_documents(args: argparse.Namespace) -> int:
    """Write documents that are to be judged as lines of JSON, in the form of `evh judge pairs`."""
    written = 0
    with ExitStack() as files, commands.hub_of(args) as hub:
        pool = hub.pool(args.pool)
        topics = args.topics.split(",") if args.topics else _topics_of(hub, pool)
        output: Any = sys.stdout
        if args.to != "-":
            output = files.enter_context(open(args.to, "w", encoding="utf-8"))

        for topic in topics:
            for row in pool.documents(topic):
                if row["level"] is not None and not args.all:
                    continue
                pair = {
                    "topic": topic,
                    "query": row["query"],
                    "doc": row["doc_id"],
                    "title": row["title"],
                    "text": row["snippet"],
                }
                output.write(f"{json.dumps(pair, ensure_ascii=False)}\n")
                written += 1

    say(f"{written:,} documents are to be judged.")
    return DONE


def _topics_of(hub: Hub, pool: Pool) -> list[str]:
    """Return the topics that are given to the user; for organisers without one all of the pool."""
    user = hub.me().raw["username"]
    own = [row["topic_id"] for row in pool.assignments() if row["assessor"] == user]
    return own or [row["topic_id"] for row in pool.info().raw["topics"]]


def import_judgements(args: argparse.Namespace) -> int:
    """Store a file of judgements, all or none."""
    with commands.hub_of(args) as hub:
        answer = hub.pool(args.pool).store_judgements(
            args.file,
            assessor=args.assessor,
            aspect=args.aspect,
            format=args.form,
            iteration=args.iteration,
            scale=args.scale,
            allow_outside=args.allow_outside,
            dry_run=args.dry_run,
        )
        show(args, [{name: answer.raw[name] for name in _IMPORTED}], hub)

    for warning in answer.raw["warnings"]:
        say(f"line {warning['line']}: {warning['message']} ({warning['count']:,} lines)")
    if args.dry_run:
        say("The file can be stored; nothing is stored yet.")
    return DONE


def show_conflicts(args: argparse.Namespace) -> int:
    """List the documents on which assessors differ."""
    params = {"aspect": args.aspect, "conflict_at": args.conflict_at}
    if args.decided:
        params["decided"] = "true"
    with commands.hub_of(args) as hub:
        query = {name: value for name, value in params.items() if value}
        rows = [
            {
                "topic_id": row["topic_id"],
                "doc_id": row["doc_id"],
                "levels": ", ".join(
                    f"{each['assessor']} {each['level']}" for each in row["levels"]
                ),
                "decided": row["decided"],
            }
            for row in hub.pool(args.pool).conflicts(**query)
        ]
        show(args, rows, hub)
    return DONE


def adjudicate_conflicts(args: argparse.Namespace) -> int:
    """Decide the levels of documents: lines of topic, document, level and perhaps a note."""
    decisions = []
    for number, line in enumerate(Path(args.file).read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        parts = line.split("\t") if "\t" in line else line.split(None, 3)
        if not 3 <= len(parts) <= 4 or not parts[2].strip().isdecimal():
            raise WrongOption(
                f"{args.file}, line {number}: write a topic, a document, a level and perhaps a note"
            )
        decision: dict[str, Any] = {"topic_id": parts[0], "doc_id": parts[1]}
        decisions.append({**decision, "level": int(parts[2]), "note": "".join(parts[3:])})

    with commands.hub_of(args) as hub:
        show(args, hub.pool(args.pool).adjudicate(decisions), hub)
    return DONE


def show_agreement(args: argparse.Namespace) -> int:
    """Show how far the assessors agree."""
    with commands.hub_of(args) as hub:
        agreement = hub.pool(args.pool).agreement(
            **({"aspect": args.aspect} if args.aspect else {})
        )
        show(args, agreement.rows(), hub)
    documents, assessors = agreement.raw["documents"], len(agreement.raw["assessors"])
    say(f"{documents:,} documents by {assessors} assessors")
    return DONE


def make_qrels(args: argparse.Namespace) -> int:
    """Make a version of the judgements."""
    fields: dict[str, Any] = {"resolve": args.resolve, "activate": not args.no_activate}
    if args.ignore_sampling:
        fields["ignore_sampling"] = True
    for name in ("note", "author_kind", "author", "model", "aspect"):
        if getattr(args, name):
            fields[name] = getattr(args, name)

    with commands.hub_of(args) as hub:
        version = hub.pool(args.pool).make_qrels(**fields)
        show(args, [{name: version.raw[name] for name in _VERSION}], hub)
    return DONE


def _add_judging(add_action: Any) -> None:
    """Add the actions on assignments and judgements."""
    for name, function, help_text in (
        ("assignments", show_assignments, "who judges which topics, and how far"),
        ("assign", assign_topics, "give topics to an assessor"),
        ("unassign", unassign_topics, "take topics from an assessor; the judgements stay"),
        ("documents", write_documents, "write documents to judge as lines of JSON"),
        ("judge-import", import_judgements, "store a file of judgements"),
        ("conflicts", show_conflicts, "documents on which assessors differ"),
        ("adjudicate", adjudicate_conflicts, "decide levels where assessors differ"),
        ("agreement", show_agreement, "how far assessors agree"),
        ("qrels", make_qrels, "make a version of the collection's judgements"),
    ):
        action = add_action(name, function, help_text)
        action.add_argument("pool", metavar="ID")
        if name in ("assign", "unassign"):
            action.add_argument("assessor", metavar="USER")
        if name in ("assign", "unassign", "documents"):
            action.add_argument(
                "--topics", default="", help="ids with commas between; default: all"
            )
        if name in ("conflicts", "agreement", "judge-import", "qrels"):
            action.add_argument("--aspect", default="", help="default: relevance")

        if name == "assign":
            action.add_argument("--copies", type=int, help="assessors of a document; default: 1")
            action.add_argument(
                "--overlap", type=float, help="share of documents with several; default: 1"
            )
            action.add_argument("--due", default="", metavar="TIME")
        if name == "documents":
            action.add_argument("--all", action="store_true", help="those you judged, too")
            action.add_argument(
                "--to", default="-", metavar="FILE", help="default: standard output"
            )
        if name == "judge-import":
            action.add_argument("file", metavar="FILE")
            action.add_argument("--assessor", default="", metavar="NAME", help="who judged")
            action.add_argument(
                "--form", choices=("qrels", "tsv", "jsonl"), default="qrels", help="default: qrels"
            )
            action.add_argument("--iteration", choices=("subtopic", "round", "ignore"))
            action.add_argument(
                "--scale", default="", metavar="VALUES", help="of the file, as in 0,0.5,1"
            )
            action.add_argument("--allow-outside", action="store_true", help="of the pool, too")
            action.add_argument("--dry-run", action="store_true", help="check; store nothing")
        if name == "conflicts":
            action.add_argument("--conflict-at", type=int, help="levels apart; default: relevance")
            action.add_argument("--decided", action="store_true", help="adjudicated ones, too")
        if name == "adjudicate":
            action.add_argument(
                "file", metavar="FILE", help="topic, document, level, perhaps a note"
            )
        if name == "qrels":
            action.add_argument(
                "--resolve", choices=_RULES, default=_RULES[0], help="default: adjudicated"
            )
            action.add_argument("--no-activate", action="store_true")
            action.add_argument("--ignore-sampling", action="store_true", help="admit all measures")
            action.add_argument("--note", default="")
            action.add_argument("--author-kind", choices=("person", "model", "clicks", "mixed"))
            action.add_argument("--author", default="", metavar="NAME")
            action.add_argument("--model", default="", help="the model that judged")


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
        "--by", default="", metavar="NAME", help="team, run, or a parameter of runs"
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

    _add_judging(add_action)
