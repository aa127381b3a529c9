"""What the commands of campaigns do for their organisers, and their options."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from . import commands
from .commands import say, show
from .errors import WrongOption
from .statuses import CONFLICT, DONE


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
        how: dict[str, Any] = {"name": args.name, "shift_days": args.shift_days, "collections": collections}
        made = hub.campaign(args.campaign).copy(args.slug, **how, **fields)
        show(args, made.phases().rows(), hub)
        say(f"{args.slug} is a draft; see it with evh campaign config get {args.slug}.")
    return DONE


def add_commands(made: Any, within: Any) -> None:
    """Add those of organisers to the commands of campaigns."""
    config = within(made("config", get_config, "a campaign as a file: get and put it"), None)
    one = config("get", get_config, "write what its organisers set")
    one.add_argument("campaign")
    one.add_argument("--as", dest="form", choices=("yaml", "json"), default="yaml")
    one.add_argument("--to", default="-", metavar="FILE", help="default: standard output")
    one = config("put", put_config, "make the campaign what a file says, all or nothing")
    one.add_argument("campaign")
    one.add_argument("file", metavar="FILE", help="of YAML or JSON; - is standard input")
    one.add_argument("--dry-run", action="store_true", help="only list what would change; status 9 if not all may")
    one = made("copy", copy, "make a draft of a campaign: its configuration, forms and agreements")
    one.add_argument("campaign")
    one.add_argument("slug", help="short name of the copy")
    one.add_argument("--name", default="", help="default: its short name")
    one.add_argument("--team", help="default: the configured one, or your own")
    one.add_argument("--shift-days", type=int, default=0, metavar="N", help="move all times, as by 365")
    one.add_argument("--collection", action="append", default=[], metavar="OLD=NEW",
                     help="another collection of a phase; may be repeated")  # fmt: skip
