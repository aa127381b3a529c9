"""What the commands of collections do: what they hold, what is uploaded to them, and how to take all of it along."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from . import commands, ir_datasets
from .answers import Answer
from .commands import metadata_in, say, show
from .errors import Blind, EvalHubError, NotFound
from .runs import Run
from .statuses import DONE

_LISTED = ("slug", "name", "team", "visibility", "blind", "active_qrels", "topics", "runs")
_VERSION = (
    "version",
    "active",
    "judgements",
    "topics",
    "keyed_by",
    "iteration",
    "note",
    "created_at",
    "sha256",
)
# What becomes the name of a file: nothing that leads out of the folder.
_SAFE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


def list_collections(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        show(args, [{name: row[name] for name in _LISTED} for row in hub.collections().rows()], hub)
    return DONE


def show_collection(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        show(args, hub.collection(args.collection).info().rows(), hub, upright=True)
    return DONE


def import_collection(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        how = {"team": args.team or hub.config.team or None, "visibility": args.visibility}
        show(
            args,
            [ir_datasets.import_collection(hub, args.collection, args.ir_datasets, **how)],
            hub,
        )

    return DONE


def create_collection(args: argparse.Namespace) -> int:
    fields: dict[str, Any] = {
        "visibility": args.visibility,
        "documents": args.documents,
        "measures": args.measure,
    }

    fields |= {
        "description": args.description,
        "daily_submissions": args.daily_submissions,
        "blind": args.blind,
    }

    with commands.hub_of(args) as hub:
        fields["team"] = args.team or hub.config.team
        sent = {name: value for name, value in fields.items() if value}
        made = hub.create_collection(args.collection, name=args.name or "", **sent)
        show(args, made.info().rows(), hub, upright=True)
        say(f"{made.page}")

    return DONE


def list_qrels(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        listed = hub.collection(args.collection).qrels().rows()
        show(args, [{name: row[name] for name in _VERSION} for row in listed], hub)
    return DONE


def upload_qrels(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        how = {
            "note": args.note,
            "keyed_by": args.keyed_by,
            "iteration": args.iteration,
            "dry_run": args.dry_run,
        }

        found = hub.collection(args.collection).upload_qrels(
            Path(args.file), activate=not args.keep_active, **how
        )
        if args.dry_run:
            show(
                args,
                [
                    {
                        "file": args.file,
                        **{name: found.raw[name] for name in ("sha256", "iteration", "counts")},
                    }
                ],
                hub,
            )
            _warn(found.raw["warnings"])
        else:
            show(args, [{name: found.raw[name] for name in _VERSION}], hub)
            _warn(found.raw["warnings"].get("warnings", []))

    return DONE


def activate_qrels(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        found = hub.collection(args.collection).qrels(args.version).activate()
        show(args, [{name: found.raw[name] for name in _VERSION}], hub)
    return DONE


def pull_qrels(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        collection = hub.collection(args.collection)
        version = args.version or collection.info().active_qrels
        if not version:
            raise NotFound(
                404,
                {
                    "detail": f"collection {args.collection} shows no active judgements; name a "
                    "version"
                },
            )

        _write(args.to, collection.qrels(version).file())

    return DONE


def list_topics(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        rows = hub.collection(args.collection).topics().rows()
        show(args, [{"topic_id": row["topic_id"], "title": row["title"]} for row in rows], hub)
    return DONE


def upload_topics(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        how = {"format": args.topic_format, "dry_run": args.dry_run}
        found = hub.collection(args.collection).upload_topics(Path(args.file), **how)
        show(
            args,
            [{"file": args.file, "format": found.raw["format"], "topics": found.raw["topics"]}],
            hub,
        )
        _warn(found.raw["warnings"].get("warnings", []))

    return DONE


def pull_topics(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        _write(args.to, _topic_lines(hub.collection(args.collection).topics()))
    return DONE


def list_sessions(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        show(
            args,
            [row for made in hub.collection(args.collection).sessions.all() for row in made.rows()],
            hub,
        )

    return DONE


def submit_sessions(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        sessions = hub.collection(args.collection).sessions
        how = {
            "tag": args.tag,
            "team": args.team,
            "format": args.log_format,
            "judged_by": args.judged_by,
        }

        how |= {
            "description": args.description,
            "metadata": metadata_in(args.meta),
            "dry_run": args.dry_run,
        }

        found = sessions.submit(Path(args.file), **how)
        if args.dry_run:
            names = ("tag", "format", "sessions", "queries", "topics", "searchers", "systems")
            show(args, [{"file": args.file, **{name: found.raw[name] for name in names}}], hub)
            return DONE

        if args.wait:
            found.wait(args.timeout)

        show(args, found.rows(), hub)

    return DONE


def session_values(args: argparse.Namespace) -> int:
    selected = {
        name: getattr(args, name)
        for name in ("system", "topic", "searcher")
        if getattr(args, name) is not None
    }

    with commands.hub_of(args) as hub:
        found = hub.collection(args.collection).sessions.values(args.set, *args.measure, **selected)
        rows = [{"measure": name, **mean} for name, mean in found.means.items()]
        show(args, found.rows() if args.per_session else rows, hub)

    return DONE


def session_leaderboard(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        asked = {"judged_by": args.judged_by, "sort": args.sort}
        found = hub.collection(args.collection).sessions.leaderboard(
            *args.measure, rows=args.limit, **asked
        )
        show(args, found.rows(), hub)

    return DONE


def pull(args: argparse.Namespace) -> int:
    """Write runs with their known documents and values, topics and judgements into a folder, and a manifest."""
    folder = Path(args.to)
    with commands.hub_of(args) as hub:
        collection = hub.collection(args.collection or hub.config.collection)
        runs = [collection.run(name) for name in args.runs] or collection.runs()

        manifest: dict[str, Any] = {
            "url": hub.url,
            "collection": collection.info().raw,
            "runs": [],
            "files": {},
        }

        def keep(name: str, content: bytes) -> None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            manifest["files"][name] = {
                "size": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
            }

        folder.mkdir(parents=True, exist_ok=True)
        for run in runs:
            if not _SAFE.fullmatch(run.team) or not _SAFE.fullmatch(run.tag):
                raise EvalHubError(
                    f"{run.team}/{run.tag} is not a name for a file; nothing more was written"
                )

            _keep_run(run, f"runs/{run.team}/{run.tag}", keep)
            manifest["runs"].append(run.raw)

        if manifest["collection"]["topics"]:
            keep("topics.jsonl", _topic_lines(collection.topics()))

        version = manifest["collection"]["active_qrels"]
        if version:
            keep(f"qrels-{version}.qrels", collection.qrels(version).file())

    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    say(
        f"{len(runs)} runs and {len(manifest['files'])} files are in {folder}; manifest.json "
        "lists them."
    )
    return DONE


def _keep_run(run: Run, name: str, keep: Any) -> None:
    content = run.file()
    if hashlib.sha256(content).hexdigest() != run.sha256:
        raise EvalHubError(
            f"run {run.team}/{run.tag} arrived damaged: its SHA-256 is not {run.sha256}"
        )

    keep(f"{name}.run", content)
    if run.known_sha256:
        keep(f"{name}.known", run.known())

    if run.state == "evaluated":
        try:
            keep(f"{name}.values.json", json.dumps(run.values().raw).encode())
        except Blind as error:
            say(f"{run.team}/{run.tag}: {error}")


def _topic_lines(topics: Answer) -> bytes:
    """Return topics as lines of JSON, in the form in which they can be uploaded."""
    lines = [
        {"_id": row["topic_id"], "title": row["title"], **row["fields"]} for row in topics.rows()
    ]
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines).encode()


def _write(to: str, content: bytes) -> None:
    """Write a file, or to standard output for `-`."""
    if to == "-":
        sys.stdout.buffer.write(content)
    else:
        Path(to).write_bytes(content)
        say(f"{len(content):,} bytes are in {to}.")


def _warn(warnings: list[dict[str, Any]]) -> None:
    for warning in warnings:
        say(f"{warning['code']}: {warning['message']}")
