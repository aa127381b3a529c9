"""Commands about collections: show them, upload to them, download everything in them."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from . import commands, ir_datasets
from .collection import Collection
from .commands import metadata_in, say, say_teams, show
from .errors import Blind, EvalHubError, NotFound
from .runs import Run
from .statuses import DONE

_COLLECTION_FIELDS = (
    "slug", "name", "team", "visibility", "blind", "active_qrels", "topics", "runs"
)  # fmt: skip
QRELS_FIELDS = (
    "version", "active", "judgements", "topics", "keyed_by", "iteration", "sampling", "authors",
    "note", "created_at", "sha256",
)  # fmt: skip
# A name of a file that cannot lead out of the folder.
_SAFE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


def list_collections(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        rows = hub.collections().rows()
        show(args, [{name: row[name] for name in _COLLECTION_FIELDS} for row in rows], hub)
    return DONE


def show_collection(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        show(args, hub.collection(args.collection).info().rows(), hub, upright=True)
    return DONE


def import_collection(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        fields = {"team": args.team or hub.config.team or None, "visibility": args.visibility}
        row = ir_datasets.import_collection(hub, args.collection, args.ir_datasets, **fields)
        show(args, [row], hub)

    return DONE


def create_collection(args: argparse.Namespace) -> int:
    names = ("visibility", "documents", "description", "daily_submissions", "blind")
    fields: dict[str, Any] = {name: getattr(args, name) for name in names}
    fields["measures"] = args.measure
    with commands.hub_of(args) as hub:
        fields["team"] = args.team or hub.config.team
        fields = {name: value for name, value in fields.items() if value}
        collection = hub.create_collection(args.collection, name=args.name or "", **fields)
        try:
            if args.topics:
                collection.upload_topics(Path(args.topics))
            if args.qrels:
                collection.upload_qrels(Path(args.qrels), scale=args.scale)
        except (EvalHubError, OSError):
            say(
                f"Collection {args.collection} was created, but not filled: correct the file and"
                f" upload it with evh topics upload {args.collection} FILE or evh qrels upload"
                f" {args.collection} FILE."
            )
            raise

        show(args, collection.info().rows(), hub, upright=True)
        say(collection.page)

    return DONE


def list_qrels(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        versions = hub.collection(args.collection).qrels().rows()
        show(args, [{name: row[name] for name in QRELS_FIELDS} for row in versions], hub)
    return DONE


def upload_qrels(args: argparse.Namespace) -> int:
    names = (
        "note", "keyed_by", "iteration", "sampling", "ignore_sampling", "scale", "author_kind",
        "author", "model", "parent", "derivation", "produced_at", "dry_run",
    )  # fmt: skip
    options = {name: getattr(args, name) for name in names}
    options["activate"] = not args.keep_active
    options["prompt"] = Path(args.prompt).read_text(encoding="utf-8") if args.prompt else ""
    with commands.hub_of(args) as hub:
        answer = hub.collection(args.collection).upload_qrels(Path(args.file), **options).raw
        if args.dry_run:
            row = {name: answer[name] for name in ("sha256", "iteration", "counts")}
            show(args, [{"file": args.file, **row}], hub)
        else:
            show(args, [{name: answer[name] for name in QRELS_FIELDS}], hub)

    return DONE


def activate_qrels(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        version = hub.collection(args.collection).qrels(args.version).activate()
        show(args, [{name: version.raw[name] for name in QRELS_FIELDS}], hub)
    return DONE


def qrels_agreement(args: argparse.Namespace) -> int:
    """Show how far a version agrees with another one: sentences, then coefficients, topics or runs."""
    names = ("measure", "uses_model", "family", "k")
    parameters = {name: getattr(args, name) for name in names if getattr(args, name)}
    with commands.hub_of(args) as hub:
        version = hub.collection(args.collection).qrels(args.version)
        answer = version.agreement(args.other, **parameters).raw
        show(args, _agreement_rows(answer, args.table), hub)
        for sentence in answer["sentences"]:
            say(sentence)
        if answer["runs_reason"]:
            say(f"{answer['runs_reason']}.")

    return DONE


def _agreement_rows(answer: dict[str, Any], table: str) -> list[dict[str, Any]]:
    if table == "topics":
        fields = ("topic_id", "documents")
        return [
            {**{name: row[name] for name in fields}, **row["coefficients"]}
            for row in answer["by_topic"]
        ]

    if table == "runs":
        rows = answer["runs"]["runs"] if answer["runs"] else []
        return [
            {**row, "run": f"{row['run']['team']}/{row['run']['tag']}"}
            for row in sorted(rows, key=lambda row: -row["difference"])
        ]

    rows = [{"coefficient": name, **row} for name, row in answer["coefficients"].items()]
    for threshold in answer["relevant"]:
        for name in ("overlap", "kappa"):
            rows.append({"coefficient": f"{name} at {threshold['level']}", **threshold[name]})
    return rows


def pull_qrels(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        collection = hub.collection(args.collection)
        version = args.version or collection.info().active_qrels
        if not version:
            detail = f"collection {args.collection} shows no active judgements; name a version"
            raise NotFound(404, {"detail": detail})

        write_file(args.to, collection.qrels(version).file())

    return DONE


def list_topics(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        rows = hub.collection(args.collection).topics().rows()
        show(args, [{"topic_id": row["topic_id"], "title": row["title"]} for row in rows], hub)
    return DONE


def upload_topics(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        collection = hub.collection(args.collection)
        answer = collection.upload_topics(
            Path(args.file), format=args.topic_format, dry_run=args.dry_run
        ).raw
        row = {"file": args.file, "format": answer["format"], "topics": answer["topics"]}
        show(args, [row], hub)

    return DONE


def pull_topics(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        write_file(args.to, _topic_lines(hub.collection(args.collection)))
    return DONE


def topic_attributes(args: argparse.Namespace) -> int:
    """List the attributes of topics; replace or delete them."""
    with commands.hub_of(args) as hub:
        collection = hub.collection(args.collection)
        if args.delete:
            collection.delete_topic_attributes()
            say(f"deleted the attributes of topics of {args.collection}")
        elif args.file:
            answer = collection.upload_topic_attributes(Path(args.file), dry_run=args.dry_run).raw
            row = {"file": args.file, "topics": answer["topics"], **answer["keys"]}
            show(args, [row], hub)
        else:
            rows = collection.topic_attributes().rows()
            keys = sorted({key for row in rows for key in row["attributes"]})
            show(
                args,
                [
                    {
                        "topic_id": row["topic_id"],
                        **{key: row["attributes"].get(key) for key in keys},
                    }
                    for row in rows
                ],
                hub,
            )

    return DONE


def upload_documents(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        collection = hub.collection(args.collection)
        answer = collection.upload_documents(Path(args.file), dry_run=args.dry_run).raw
        row = {"file": args.file, **{name: answer[name] for name in ("documents", "titled")}}
        show(args, [row], hub)

    return DONE


def delete_documents(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        hub.collection(args.collection).delete_documents()
        say(f"deleted the titles of documents of {args.collection}")
    return DONE


def list_sessions(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        sets = hub.collection(args.collection).sessions.all()
        show(args, [row for session_set in sets for row in session_set.rows()], hub)

    return DONE


def submit_sessions(args: argparse.Namespace) -> int:
    names = ("tag", "team", "judged_by", "description", "dry_run")
    options = {name: getattr(args, name) for name in names}
    options |= {"format": args.log_format, "metadata": metadata_in(args.meta)}
    with commands.hub_of(args) as hub:
        answer = hub.collection(args.collection).sessions.submit(Path(args.file), **options)
        if args.dry_run:
            fields = ("tag", "format", "sessions", "queries", "topics", "searchers", "systems")
            row = {"file": args.file, **{name: answer.raw[name] for name in fields}}
            show(args, [row], hub)
            return DONE

        try:
            if args.wait:
                answer.wait(args.timeout)
        finally:
            show(args, answer.rows(), hub)
            say_teams(args, [answer])

    return DONE


def session_values(args: argparse.Namespace) -> int:
    selection = {name: getattr(args, name) for name in ("system", "topic", "searcher")}
    selection = {name: value for name, value in selection.items() if value is not None}
    with commands.hub_of(args) as hub:
        sessions = hub.collection(args.collection).sessions
        answer = sessions.values(args.set, *args.measure, **selection)
        means = [{"measure": name, **mean} for name, mean in answer.means.items()]
        show(args, answer.rows() if args.per_session else means, hub)

    return DONE


def session_leaderboard(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        sessions = hub.collection(args.collection).sessions
        parameters = {"judged_by": args.judged_by, "sort": args.sort}
        board = sessions.leaderboard(*args.measure, rows=args.limit, **parameters)
        show(args, board.rows(), hub)

    return DONE


def pull(args: argparse.Namespace) -> int:
    """Download runs with known documents and values, topics and judgements, with a manifest."""
    folder = Path(args.to)
    folder.mkdir(parents=True, exist_ok=True)
    with commands.hub_of(args) as hub:
        collection = hub.collection(args.collection or hub.config.collection)
        runs = [collection.run(name) for name in args.runs] or collection.runs()
        info = collection.info().raw
        files: dict[str, dict[str, Any]] = {}

        def write(name: str, content: bytes) -> None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            sha256 = hashlib.sha256(content).hexdigest()
            files[name] = {"size": len(content), "sha256": sha256}

        for run in runs:
            if not _SAFE.fullmatch(run.team) or not _SAFE.fullmatch(run.tag):
                raise EvalHubError(
                    f"{run.team}/{run.tag} is not a name for a file; nothing more was written"
                )
            _write_run(run, f"runs/{run.team}/{run.tag}", write)

        if info["topics"]:
            write("topics.jsonl", _topic_lines(collection))
        if version := info["active_qrels"]:
            write(f"qrels-{version}.qrels", collection.qrels(version).file())

        manifest = {"url": hub.url, "collection": info, "runs": [run.raw for run in runs]}

    manifest["files"] = files
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    say(f"{len(runs)} runs and {len(files)} files are in {folder}; manifest.json lists them.")
    return DONE


def _write_run(run: Run, name: str, write: Any) -> None:
    content = run.file()
    if hashlib.sha256(content).hexdigest() != run.sha256:
        raise EvalHubError(
            f"run {run.team}/{run.tag} arrived damaged: its SHA-256 is not {run.sha256}"
        )

    write(f"{name}.run", content)
    if run.known_sha256:
        write(f"{name}.known", run.known())

    if run.state == "evaluated":
        try:
            write(f"{name}.values.json", json.dumps(run.values().raw).encode())
        except Blind as error:
            say(f"{run.team}/{run.tag}: {error}")


def _topic_lines(collection: Collection) -> bytes:
    """Return topics with their attributes as lines of JSON, which can be uploaded again."""
    rows = collection.topic_attributes().rows()
    attributes = {row["topic_id"]: row["attributes"] for row in rows}
    lines = []
    for row in collection.topics().rows():
        line = {"_id": row["topic_id"], "title": row["title"], **row["fields"]}
        if row["topic_id"] in attributes:
            line["attributes"] = attributes[row["topic_id"]]

        lines.append(line)

    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines).encode()


def write_file(to: str, content: bytes) -> None:
    """Write a file, or to standard output for `-`."""
    if to == "-":
        sys.stdout.buffer.write(content)
    else:
        Path(to).write_bytes(content)
        say(f"{len(content):,} bytes are in {to}.")
