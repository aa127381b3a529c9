"""What the commands of campaigns do for their organisers, and their options."""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path
from typing import Any

from . import commands
from .commands import say, show
from .errors import Unavailable, WrongOption
from .phases import Releases
from .statuses import CONFLICT, DONE

_DRAFT = ("slug", "name", "team", "state", "registration")
_TEAM = ("team", "name", "state", "accepted_at")
_SNAPSHOT = (
    "number",
    "phase",
    "label",
    "code",
    "created_at",
    "archive_bytes",
    "withdrawn_at",
    "doi",
    "page",
)
_NOTICE = ("posted_at", "title", "audience", "id")
_MAIL = ("created_at", "event", "to", "subject", "state", "attempts", "last_error", "id")


def create(args: argparse.Namespace) -> int:
    fields = {"team": args.team} if args.team else {}
    with commands.hub_of(args) as hub:
        made = hub.create_campaign(args.campaign, name=args.name, **fields).info()
        show(args, [{name: made.raw[name] for name in _DRAFT}], hub)
        if not args.quiet:
            say(
                f"Describe it in a file: evh campaign config get {args.campaign}; then evh "
                "campaign publish."
            )

    return DONE


def publish(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        made = hub.campaign(args.campaign).publish()
        show(args, [{name: made.raw[name] for name in _DRAFT}], hub)
    return DONE


def decide(args: argparse.Namespace) -> int:
    """Accept, decline or remove a team."""
    with commands.hub_of(args) as hub:
        made = hub.campaign(args.campaign).change_team(
            args.team, state=args.state, reason=args.reason
        )
        show(args, [{name: made.raw[name] for name in _TEAM}], hub)
    return DONE


def get_config(args: argparse.Namespace) -> int:
    """Write the configuration of a campaign into a file, or to standard output."""
    with commands.hub_of(args) as hub:
        content = hub.campaign(args.campaign).config(args.form)

    if args.to == "-":
        sys.stdout.write(content.decode())
    else:
        Path(args.to).write_bytes(content)

    return DONE


def put_config(args: argparse.Namespace) -> int:
    """Apply a file, or list what it would change; a change that is not allowed is a conflict then, too."""
    content = sys.stdin.buffer.read() if args.file == "-" else args.file
    with commands.hub_of(args) as hub:
        found = hub.campaign(args.campaign).put_config(content, dry_run=args.dry_run)
        rows = found.rows()
        show(args, rows, hub)
        refused = [row for row in rows if not row["allowed"]]

        if not args.quiet:
            done = "would change" if args.dry_run else "changed"
            refusals = f", {len(refused)} not allowed: nothing would be changed" if refused else ""
            say(f"{len(rows)} {done}{refusals}.")

    return CONFLICT if refused else DONE


def copy(args: argparse.Namespace) -> int:
    collections: dict[str, str] = {}
    for pair in args.collection:
        old, sign, new = pair.partition("=")
        if not (old and sign and new):
            raise WrongOption(f"--collection {pair}: write it as OLD=NEW")
        collections[old] = new

    fields = {"team": args.team} if args.team else {}
    with commands.hub_of(args) as hub:
        how: dict[str, Any] = {
            "name": args.name,
            "shift_days": args.shift_days,
            "collections": collections,
        }
        made = hub.campaign(args.campaign).copy(args.slug, **how, **fields)
        show(args, made.phases().rows(), hub)
        say(f"{args.slug} is a draft; see it with evh campaign config get {args.slug}.")

    return DONE


def list_releases(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        show(args, hub.campaign(args.campaign).phase(args.phase).releases().rows(), hub)
    return DONE


def plan_release(args: argparse.Namespace) -> int:
    """Plan a release, at a time or to be done by hand."""
    fields: dict[str, Any] = {
        "qrels": args.qrels,
        "with_run_files": args.with_run_files,
        "note": args.note,
    }

    fields |= {"zone": args.zone} if args.zone else {}
    with commands.hub_of(args) as hub:
        made = (
            hub.campaign(args.campaign).phase(args.phase).release(args.audience, args.at, **fields)
        )
        show(args, Releases({"results": [made.raw]}).rows(), hub)
        if not args.at and not args.quiet:
            say(f"It is done by evh campaign release now {made.id}.")

    return DONE


def release_now(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        done = hub.release_now(args.release, force=args.force, reason=args.reason)
        show(args, Releases({"results": [done.raw]}).rows(), hub)
    return DONE


def cancel_release(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        hub.cancel_release(args.release)
    say(f"Release {args.release} is cancelled.")
    return DONE


def packet(args: argparse.Namespace) -> int:
    """Write the results of a team in a phase into a zip file."""
    with commands.hub_of(args) as hub:
        content = hub.campaign(args.campaign).phase(args.phase).packet(args.team)

    path = Path(
        args.to or f"{args.campaign}-{args.phase}{f'-{args.team}' if args.team else ''}.zip"
    )
    path.write_bytes(content)
    show(
        args,
        [{"file": str(path), "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}],
    )

    return DONE


def list_snapshots(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        rows = hub.campaign(args.campaign).snapshots().rows()
        show(args, [{name: row[name] for name in _SNAPSHOT} for row in rows], hub)
    return DONE


def make_snapshot(args: argparse.Namespace) -> int:
    """Make a snapshot; its citation is written beside."""
    with commands.hub_of(args) as hub:
        made = hub.campaign(args.campaign).make_snapshot(args.phase, label=args.label)
        show(args, [{name: made.raw[name] for name in _SNAPSHOT}], hub)
        if not args.quiet:
            say(made.citation)
    return DONE


def pull_snapshot(args: argparse.Namespace) -> int:
    """Write the archive of a snapshot into a file, and hold it against its SHA-256."""
    with commands.hub_of(args) as hub:
        found = hub.snapshot(args.snapshot)
        content = hub.snapshot_archive(found.code)

    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != found.archive_sha256:
        raise Unavailable(
            f"the archive that came has the SHA-256 {sha256}, not {found.archive_sha256}"
        )

    path = Path(args.to or f"{found.campaign}-s{found.number}-{found.code}.tar.zst")
    path.write_bytes(content)
    show(args, [{"file": str(path), "size": len(content), "sha256": sha256}])

    return DONE


def outbox(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        rows = hub.campaign(args.campaign).outbox(args.limit).rows()
        show(args, [{name: row[name] for name in _MAIL} for row in rows], hub)
    return DONE


def notices(args: argparse.Namespace) -> int:
    """List the notices; their texts are written beside."""
    with commands.hub_of(args) as hub:
        rows = hub.campaign(args.campaign).notices().rows()
        show(args, [{name: row[name] for name in _NOTICE} for row in rows], hub)
        for row in rows if not args.quiet else []:
            say(f"\n{row['title']}\n\n{row['text']}")
    return DONE


def notify(args: argparse.Namespace) -> int:
    text = sys.stdin.read() if args.text == "-" else args.text
    with commands.hub_of(args) as hub:
        made = hub.campaign(args.campaign).notify(args.title, text, audience=args.audience)
        show(args, [{name: made.raw[name] for name in _NOTICE}], hub)
    return DONE


def add_commands(made: Any, within: Any) -> None:
    """Add those of organisers to the commands of campaigns."""
    one = made("create", create, "make a draft, of which the owners of its team are the organisers")
    one.add_argument("campaign", help="short name")
    one.add_argument("--name", default="", help="default: its short name")
    one.add_argument("--team", help="default: your own")
    made("publish", publish, "show a draft to everybody").add_argument("campaign")
    one = made("team", decide, "accept, decline or remove a team")
    one.add_argument("campaign")
    one.add_argument("team")
    one.add_argument("state", choices=("accepted", "declined", "removed"))
    one.add_argument("--reason", default="")
    config = within(made("config", get_config, "a campaign as a file: get and put it"), None)
    one = config("get", get_config, "write what its organisers set")
    one.add_argument("campaign")
    one.add_argument("--as", dest="form", choices=("yaml", "json"), default="yaml")
    one.add_argument("--to", default="-", metavar="FILE", help="default: standard output")
    one = config("put", put_config, "make the campaign what a file says, all or nothing")
    one.add_argument("campaign")
    one.add_argument("file", metavar="FILE", help="of YAML or JSON; - is standard input")
    one.add_argument(
        "--dry-run",
        action="store_true",
        help="only list what would change; status 9 if not all may",
    )

    one = made("copy", copy, "make a draft of a campaign: its configuration, forms and agreements")
    one.add_argument("campaign")
    one.add_argument("slug", help="short name of the copy")
    one.add_argument("--name", default="", help="default: its short name")
    one.add_argument("--team", help="default: the configured one, or your own")
    one.add_argument(
        "--shift-days", type=int, default=0, metavar="N", help="move all times, as by 365"
    )
    one.add_argument("--collection", action="append", default=[], metavar="OLD=NEW",
                     help="another collection of a phase; may be repeated")  # fmt: skip
    _add_releases(made, within)
    _add_snapshots(made, within)
    _add_news(made)


def _add_snapshots(made: Any, within: Any) -> None:
    frozen = within(
        made(
            "snapshot", list_snapshots, "snapshots of results, which papers cite: list, make, pull"
        ),
        None,
    )

    frozen("list", list_snapshots, "list those that you see").add_argument("campaign")
    one = frozen("make", make_snapshot, "make one of a phase, or of all phases")
    one.add_argument("campaign")
    one.add_argument("phase", nargs="?")
    one.add_argument("--label", default="results", help="such as 'official results'")
    one = frozen(
        "pull", pull_snapshot, "write the archive of one; evalhub verify-snapshot checks it"
    )
    one.add_argument("snapshot", metavar="SHA256", help="at least 20 digits of it")
    one.add_argument("--to", metavar="FILE", help="default: CAMPAIGN-sNUMBER-CODE.tar.zst")


def _add_releases(made: Any, within: Any) -> None:
    released = within(
        made("release", list_releases, "releases of results: list, plan, now, cancel"), None
    )
    one = released("list", list_releases, "list those of a phase")
    one.add_argument("campaign")
    one.add_argument("phase")
    one = released("plan", plan_release, "plan one, at a time or until it is done by hand")
    one.add_argument("campaign")
    one.add_argument("phase")
    one.add_argument("audience", choices=("teams", "participants", "public"))
    one.add_argument(
        "--at",
        metavar="TIME",
        help="with its offset, or a day with --zone; default: by release now",
    )

    one.add_argument("--zone", help="AoE, UTC, Europe/Lisbon")
    one.add_argument(
        "--qrels", type=int, metavar="V", help="the version that has to be active; default: any"
    )
    one.add_argument(
        "--with-run-files", action="store_true", help="its audience may download the runs"
    )
    one.add_argument("--note", default="")
    one = released("now", release_now, "do a planned one at once, permanently")
    one.add_argument("release", metavar="ID")
    one.add_argument(
        "--force", action="store_true", help="do not wait for evaluations; with --reason"
    )
    one.add_argument("--reason", default="")
    released("cancel", cancel_release, "cancel a planned one").add_argument("release", metavar="ID")
    one = made("packet", packet, "the results of your team in a phase, as a zip file")
    one.add_argument("campaign")
    one.add_argument("phase")
    one.add_argument("--team", help="for organisers")
    one.add_argument("--to", metavar="FILE", help="default: CAMPAIGN-PHASE.zip")


def _add_news(made: Any) -> None:
    made("notices", notices, "what the organisers told the teams and everybody").add_argument(
        "campaign"
    )
    one = made("notify", notify, "post a notice, which accepted teams get by mail")
    one.add_argument("campaign")
    one.add_argument("title")
    one.add_argument("text", help="- is standard input")
    one.add_argument("--audience", choices=("teams", "public"), default="teams")
    one = made(
        "outbox", outbox, "the mails of a campaign: what was sent, waits or would have been sent"
    )
    one.add_argument("campaign")
    one.add_argument("--limit", type=int, help="rows; default: all")
