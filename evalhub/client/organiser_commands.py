"""Commands about campaigns for their organisers, and their options."""

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

_DRAFT_FIELDS = ("slug", "name", "team", "state", "registration")
_AUDIENCES = ("teams", "public", "without_entries", "without_address")
_LINK_FIELDS = ("url", "key", "team_name", "expires_at", "max_uses")
_SNAPSHOT_FIELDS = (
    "number", "phase", "label", "code", "created_at", "archive_bytes", "withdrawn_at", "doi", "page"
)  # fmt: skip
_NOTICE_FIELDS = ("posted_at", "title", "audience", "id")
_MAIL_FIELDS = ("created_at", "event", "to", "subject", "state", "attempts", "last_error", "id")


def create(args: argparse.Namespace) -> int:
    fields = {"team": args.team} if args.team else {}
    with commands.hub_of(args) as hub:
        info = hub.create_campaign(args.campaign, name=args.name, **fields).info()
        show(args, [{name: info.raw[name] for name in _DRAFT_FIELDS}], hub)
        if not args.quiet:
            say(
                f"Describe it in a file: evh campaign config get {args.campaign}; then evh "
                "campaign publish."
            )

    return DONE


def publish(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        campaign = hub.campaign(args.campaign).publish()
        show(args, [{name: campaign.raw[name] for name in _DRAFT_FIELDS}], hub)
    return DONE


def decide(args: argparse.Namespace) -> int:
    """Accept, decline or remove teams; one that could not change is a conflict."""
    if bool(args.team) == args.all_requested:
        raise WrongOption("name teams, or give --all-requested: one of the two")

    with commands.hub_of(args) as hub:
        decisions = hub.campaign(args.campaign).decide_teams(
            args.team, state=args.state, all_requested=args.all_requested, reason=args.reason
        )
        show(args, decisions.rows(), hub)
        refused = decisions.raw["refused"]
        if not args.quiet:
            refusals = f", {refused} not" if refused else ""
            say(f"{decisions.raw['changed']} {args.state}{refusals}.")

    return CONFLICT if refused else DONE


def list_links(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        show(args, hub.campaign(args.campaign).links().rows(), hub)
    return DONE


def create_link(args: argparse.Namespace) -> int:
    """Make a link by which people take part, and print its address, which is shown once."""
    with commands.hub_of(args) as hub:
        campaign = hub.campaign(args.campaign)
        link = campaign.create_link(team_name=args.team, days=args.days, max_uses=args.people)
        show(args, [{name: link.raw[name] for name in _LINK_FIELDS}], hub)
    return DONE


def revoke_link(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        hub.campaign(args.campaign).revoke_link(args.key)
    say(f"Link {args.key} is revoked.")
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
    """Apply a file, or list what it would change; changes that are not allowed are a conflict."""
    content = sys.stdin.buffer.read() if args.file == "-" else args.file
    with commands.hub_of(args) as hub:
        changes = hub.campaign(args.campaign).put_config(content, dry_run=args.dry_run).rows()
        show(args, changes, hub)

    refused = [change for change in changes if not change["allowed"]]
    if not args.quiet:
        verb = "would change" if args.dry_run else "changed"
        refusals = f", {len(refused)} not allowed: nothing would be changed" if refused else ""
        say(f"{len(changes)} {verb}{refusals}.")

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
        campaign = hub.campaign(args.campaign)
        options: dict[str, Any] = {"shift_days": args.shift_days, "collections": collections}
        draft = campaign.copy(args.slug, name=args.name, **options, **fields)
        show(args, draft.phases().rows(), hub)
        say(f"{args.slug} is a draft; see it with evh campaign config get {args.slug}.")

    return DONE


def list_releases(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        show(args, hub.campaign(args.campaign).phase(args.phase).releases().rows(), hub)
    return DONE


def plan_release(args: argparse.Namespace) -> int:
    """Plan a release, at a time or until it is done by hand."""
    fields: dict[str, Any] = {"qrels": args.qrels, "with_run_files": args.with_run_files}
    fields["note"] = args.note
    if args.zone:
        fields["zone"] = args.zone

    with commands.hub_of(args) as hub:
        phase = hub.campaign(args.campaign).phase(args.phase)
        release = phase.release(args.audience, args.at, **fields)
        show(args, Releases({"results": [release.raw]}).rows(), hub)
        if not args.at and not args.quiet:
            say(f"It is done by evh campaign release now {release.id}.")

    return DONE


def release_now(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        release = hub.release_now(args.release, force=args.force, reason=args.reason)
        show(args, Releases({"results": [release.raw]}).rows(), hub)
    return DONE


def cancel_release(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        hub.cancel_release(args.release)
    say(f"Release {args.release} is cancelled.")
    return DONE


def packet(args: argparse.Namespace) -> int:
    """Write the results of a team in a phase, or of all teams, into a zip file."""
    if args.all and args.team:
        raise WrongOption("name a --team, or give --all: one of the two")

    with commands.hub_of(args) as hub:
        phase = hub.campaign(args.campaign).phase(args.phase)
        content = phase.packets() if args.all else phase.packet(args.team)

    team = f"-{args.team}" if args.team else "-packets" if args.all else ""
    path = Path(args.to or f"{args.campaign}-{args.phase}{team}.zip")
    path.write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    show(args, [{"file": str(path), "size": len(content), "sha256": sha256}])
    return DONE


def topics(args: argparse.Namespace) -> int:
    """List the figures of a phase's entries on each topic."""
    with commands.hub_of(args) as hub:
        phase = hub.campaign(args.campaign).phase(args.phase)
        show(args, phase.topics(reference=args.reference).rows(), hub)
    return DONE


def entries_file(args: argparse.Namespace) -> int:
    """Write the entries of a phase into a CSV file, with answers, parameters and times."""
    with commands.hub_of(args) as hub:
        content = hub.campaign(args.campaign).phase(args.phase).entries_file()

    path = Path(args.to or f"{args.campaign}-{args.phase}-entries.csv")
    path.write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    show(args, [{"file": str(path), "size": len(content), "sha256": sha256}])
    return DONE


def list_snapshots(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        rows = hub.campaign(args.campaign).snapshots().rows()
        show(args, [{name: row[name] for name in _SNAPSHOT_FIELDS} for row in rows], hub)
    return DONE


def make_snapshot(args: argparse.Namespace) -> int:
    """Make a snapshot; its citation goes to standard error."""
    with commands.hub_of(args) as hub:
        snapshot = hub.campaign(args.campaign).make_snapshot(args.phase, label=args.label)
        show(args, [{name: snapshot.raw[name] for name in _SNAPSHOT_FIELDS}], hub)
        if not args.quiet:
            say(snapshot.citation)

    return DONE


def pull_snapshot(args: argparse.Namespace) -> int:
    """Write the archive of a snapshot into a file, after a check of its SHA-256."""
    with commands.hub_of(args) as hub:
        snapshot = hub.snapshot(args.snapshot)
        content = hub.snapshot_archive(snapshot.code)

    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != snapshot.archive_sha256:
        raise Unavailable(
            f"the archive that came has the SHA-256 {sha256}, not {snapshot.archive_sha256}"
        )

    path = Path(args.to or f"{snapshot.campaign}-s{snapshot.number}-{snapshot.code}.tar.zst")
    path.write_bytes(content)
    show(args, [{"file": str(path), "size": len(content), "sha256": sha256}])

    return DONE


def outbox(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        rows = hub.campaign(args.campaign).outbox(args.limit).rows()
        show(args, [{name: row[name] for name in _MAIL_FIELDS} for row in rows], hub)
    return DONE


def notices(args: argparse.Namespace) -> int:
    """List the notices; their texts go to standard error."""
    with commands.hub_of(args) as hub:
        rows = hub.campaign(args.campaign).notices().rows()
        show(args, [{name: row[name] for name in _NOTICE_FIELDS} for row in rows], hub)
        for row in rows if not args.quiet else []:
            say(f"\n{row['title']}\n\n{row['text']}")
    return DONE


def notify(args: argparse.Namespace) -> int:
    text = sys.stdin.read() if args.text == "-" else args.text
    with commands.hub_of(args) as hub:
        campaign = hub.campaign(args.campaign)
        notice = campaign.notify(args.title, text, audience=args.audience, teams=args.team)
        show(args, [{name: notice.raw[name] for name in _NOTICE_FIELDS}], hub)
    return DONE


def add_commands(add_action: Any, add_actions: Any) -> None:
    """Add the actions of organisers to the command of campaigns."""
    action = add_action(
        "create", create, "make a draft, of which the owners of its team are the organisers"
    )
    action.add_argument("campaign", help="short name")
    action.add_argument("--name", default="", help="default: its short name")
    action.add_argument("--team", help="default: your own")
    add_action("publish", publish, "show a draft to everybody").add_argument("campaign")

    action = add_action("team", decide, "accept, decline or remove teams")
    action.add_argument("campaign")
    action.add_argument("team", nargs="*")
    action.add_argument("--all-requested", action="store_true", help="all that wait for a decision")
    states = action.add_mutually_exclusive_group(required=True)
    for option, state in (("accept", "accepted"), ("decline", "declined"), ("remove", "removed")):
        states.add_argument(f"--{option}", dest="state", action="store_const", const=state)
    action.add_argument("--reason", default="", help="of a removal: required")

    command = add_action(
        "link", list_links, "links by which people take part: list, create, revoke"
    )
    add_link_action = add_actions(command, None)
    add_link_action("list", list_links, "list the open ones").add_argument("campaign")

    action = add_link_action("create", create_link, "make one; its address is shown once")
    action.add_argument("campaign")
    action.add_argument(
        "--team", default="", metavar="NAME", help="one team for all; default: each registers one"
    )
    action.add_argument("--days", type=int, default=7, help="until it expires; default: 7")
    action.add_argument("--people", type=int, help="how many can use it; default: any number")

    action = add_link_action("revoke", revoke_link, "revoke one")
    action.add_argument("campaign")
    action.add_argument("key")

    command = add_action("config", get_config, "a campaign as a file: get and put it")
    add_config_action = add_actions(command, None)

    action = add_config_action("get", get_config, "write what its organisers set")
    action.add_argument("campaign")
    action.add_argument("--as", dest="form", choices=("yaml", "json"), default="yaml")
    action.add_argument("--to", default="-", metavar="FILE", help="default: standard output")

    action = add_config_action(
        "put", put_config, "make the campaign what a file says, all or nothing"
    )
    action.add_argument("campaign")
    action.add_argument("file", metavar="FILE", help="of YAML or JSON; - is standard input")
    action.add_argument(
        "--dry-run",
        action="store_true",
        help="only list what would change; status 9 if not all may",
    )

    action = add_action(
        "copy", copy, "make a draft of a campaign: its configuration, forms and agreements"
    )
    action.add_argument("campaign")
    action.add_argument("slug", help="short name of the copy")
    action.add_argument("--name", default="", help="default: its short name")
    action.add_argument("--team", help="default: the configured one, or your own")
    action.add_argument(
        "--shift-days", type=int, default=0, metavar="N", help="move all times, as by 365"
    )
    action.add_argument("--collection", action="append", default=[], metavar="OLD=NEW",
                     help="another collection of a phase; may be repeated")  # fmt: skip
    _add_releases(add_action, add_actions)
    _add_snapshots(add_action, add_actions)
    _add_notices(add_action)


def _add_snapshots(add_action: Any, add_actions: Any) -> None:
    command = add_action(
        "snapshot", list_snapshots, "snapshots of results, which papers cite: list, make, pull"
    )
    add_snapshot_action = add_actions(command, None)
    add_snapshot_action("list", list_snapshots, "list those that you see").add_argument("campaign")

    action = add_snapshot_action("make", make_snapshot, "make one of a phase, or of all phases")
    action.add_argument("campaign")
    action.add_argument("phase", nargs="?")
    action.add_argument("--label", default="results", help="such as 'official results'")

    action = add_snapshot_action(
        "pull", pull_snapshot, "write the archive of one; evalhub verify-snapshot checks it"
    )
    action.add_argument("snapshot", metavar="SHA256", help="at least 20 digits of it")
    action.add_argument("--to", metavar="FILE", help="default: CAMPAIGN-sNUMBER-CODE.tar.zst")


def _add_releases(add_action: Any, add_actions: Any) -> None:
    command = add_action("release", list_releases, "releases of results: list, plan, now, cancel")
    add_release_action = add_actions(command, None)

    action = add_release_action("list", list_releases, "list those of a phase")
    action.add_argument("campaign")
    action.add_argument("phase")

    action = add_release_action(
        "plan", plan_release, "plan one, at a time or until it is done by hand"
    )
    action.add_argument("campaign")
    action.add_argument("phase")
    action.add_argument("audience", choices=("teams", "participants", "public"))
    action.add_argument(
        "--at",
        metavar="TIME",
        help="with its offset, or a day with --zone; default: by release now",
    )
    action.add_argument("--zone", help="AoE, UTC, Europe/Lisbon")
    action.add_argument(
        "--qrels", type=int, metavar="V", help="the version that has to be active; default: any"
    )
    action.add_argument(
        "--with-run-files", action="store_true", help="its audience may download the runs"
    )
    action.add_argument("--note", default="")

    action = add_release_action("now", release_now, "do a planned one at once, permanently")
    action.add_argument("release", metavar="ID")
    action.add_argument(
        "--force", action="store_true", help="do not wait for evaluations; with --reason"
    )
    action.add_argument("--reason", default="")
    add_release_action("cancel", cancel_release, "cancel a planned one").add_argument(
        "release", metavar="ID"
    )

    action = add_action("packet", packet, "the results of your team in a phase, as a zip file")
    action.add_argument("campaign")
    action.add_argument("phase")
    action.add_argument("--team", help="for organisers")
    action.add_argument("--all", action="store_true", help="of all teams, for organisers")
    action.add_argument("--to", metavar="FILE", help="default: CAMPAIGN-PHASE.zip")

    action = add_action("topics", topics, "lowest to highest values by topic, for organisers")
    action.add_argument("campaign")
    action.add_argument("phase")
    action.add_argument(
        "--reference",
        choices=("all", "best_of_team"),
        default="all",
        help="all runs that compete and were on time, or the best one of each team",
    )

    action = add_action("entries-file", entries_file, "all entries of a phase as CSV, with answers")
    action.add_argument("campaign")
    action.add_argument("phase")
    action.add_argument("--to", metavar="FILE", help="default: CAMPAIGN-PHASE-entries.csv")


def _add_notices(add_action: Any) -> None:
    action = add_action("notices", notices, "what the organisers told the teams and everybody")
    action.add_argument("campaign")

    action = add_action("notify", notify, "post a notice, which accepted teams get by mail")
    action.add_argument("campaign")
    action.add_argument("title")
    action.add_argument("text", help="- is standard input")
    action.add_argument("--audience", choices=_AUDIENCES, default="teams")
    action.add_argument(
        "--team", action="append", default=[], help="only to this team; may be repeated"
    )

    action = add_action(
        "outbox", outbox, "the mails of a campaign: what was sent, waits or would have been sent"
    )
    action.add_argument("campaign")
    action.add_argument("--limit", type=int, help="rows; default: all")
