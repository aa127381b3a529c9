"""What the commands of campaigns do for those who take part, and their options."""

from __future__ import annotations

import argparse
import json
from typing import Any

from . import commands, organiser_commands
from .commands import metadata_in, say, show
from .errors import BadFile, BadSource, WrongOption
from .statuses import DONE, REFUSED

_LISTED = (
    "slug",
    "name",
    "team",
    "state",
    "registration",
    "registration_closes_at",
    "your_team",
    "organiser",
)
_TEAM = ("team", "name", "affiliation", "state", "members", "requested_at", "accepted_at")
_AGREEMENT = ("sha256", "title", "required_of", "signed_at")
_CHECKED = ("tag", "lines", "topics", "documents")
_LAST_EXTENSION = "Extended from {old} to {new}: {reason}"


def list_campaigns(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        show(args, [{name: row[name] for name in _LISTED} for row in hub.campaigns().rows()], hub)
    return DONE


def show_campaign(args: argparse.Namespace) -> int:
    """Show a campaign; its guidelines are for people."""
    with commands.hub_of(args) as hub:
        found = hub.campaign(args.campaign).info()
        names = (
            *_LISTED,
            "summary",
            "guidelines_sha256",
            "contact",
            "max_team_size",
            "tag_scope",
            "created_at",
        )
        phases = [one["phase"] for one in found.phases]
        show(
            args,
            [{**{name: found.raw[name] for name in names}, "phases": phases}],
            hub,
            upright=True,
        )
        if found.guidelines and not args.quiet:
            say(found.guidelines)
    return DONE


def list_phases(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        found = hub.campaign(args.campaign).phases()
        show(args, found.rows(), hub)
        for one in found.raw["results"] if not args.quiet else []:
            for extension in one["extensions"]:
                notice = f" ({extension['notice']})" if extension["notice"] else ""
                seen = extension.get("values_seen_since")
                after = f"; organisers had read values since {seen}" if seen else ""
                say(f"{one['phase']}: {_LAST_EXTENSION.format(**extension)}{notice}{after}")
    return DONE


def list_agreements(args: argparse.Namespace) -> int:
    """List agreements; their texts are written beside, for whoever has to read them."""
    with commands.hub_of(args) as hub:
        rows = hub.campaign(args.campaign).agreements().rows()
        show(args, [{name: row[name] for name in _AGREEMENT} for row in rows], hub)
        for row in rows if not args.quiet else []:
            say(f"\n{row['title']} ({row['sha256'][:12]})\n\n{row['text']}")
    return DONE


def sign(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        campaign = hub.campaign(args.campaign)
        signed = [campaign.sign(digest, args.typed_name).raw for digest in args.agreements]
        show(args, [{name: row[name] for name in _AGREEMENT} for row in signed], hub)
    return DONE


def register(args: argparse.Namespace) -> int:
    if args.agreement and not args.typed_name:
        raise WrongOption("--agreement signs it under --typed-name NAME; give your name")
    with commands.hub_of(args) as hub:
        asked = {"name": args.name, "affiliation": args.affiliation, "typed_name": args.typed_name}
        campaign = hub.campaign(args.campaign)
        made = campaign.register(args.team, agreements=args.agreement, **asked)
        show(args, [{name: made.raw[name] for name in _TEAM}], hub)
        for row in campaign.agreements().rows():
            if row["signed_at"] is None:
                command = (
                    f"evh campaign sign {args.campaign} {row['sha256'][:12]} --typed-name NAME"
                )
                say(f"Not signed yet: {row['title']}; {command}")
        if made.state == "requested":
            say("The organisers accept or decline the team.")
    return DONE


def join(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        made = hub.campaign(args.campaign).join(args.team)
        show(args, [{"team": args.team, **made.raw}], hub)
    return DONE


def list_teams(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        rows = hub.campaign(args.campaign).teams().rows()
        show(args, [{name: row[name] for name in _TEAM} for row in rows], hub)
    return DONE


def enter(args: argparse.Namespace) -> int:
    """Say how much time there is, enter a run and write its receipt."""
    how: dict[str, Any] = {"tag": args.tag, "run_type": args.run_type, "priority": args.priority}
    how |= {
        "answers": _answers_in(args.answer),
        "description": args.description,
        "metadata": metadata_in(args.meta),
    }
    how |= {
        "on_behalf_of": args.on_behalf_of,
        "reason": args.reason,
        "role": args.role,
        "label": args.label,
    }
    with commands.hub_of(args) as hub:
        phase = hub.campaign(args.campaign).phase(args.phase)
        if args.dry_run:
            return _check(args, hub, phase, how)
        if not args.quiet:
            countdown = phase.info().countdown()
            say(f"{countdown[0].upper()}{countdown[1:]}")
        made = phase.enter(args.file, **how)
        show(args, made.rows(), hub, upright=True)
        counts = made.warnings["counts"]
        if counts and not args.quiet:
            say(
                "Warnings: "
                + ", ".join(f"{count} {code}" for code, count in sorted(counts.items()))
            )
    return DONE


def _check(args: argparse.Namespace, hub: Any, phase: Any, how: dict[str, Any]) -> int:
    row: dict[str, Any] = {
        "file": args.file,
        **dict.fromkeys(_CHECKED),
        "warnings": None,
        "error": None,
    }
    try:
        found = phase.enter(args.file, dry_run=True, **how)
    except (BadFile, BadSource) as error:
        show(args, [{**row, "error": str(error)}], hub)
        return REFUSED
    row |= {name: found.raw[name] for name in _CHECKED}
    show(args, [{**row, "warnings": " ".join(sorted(found.warnings["counts"]))}], hub)
    if (refusal := found.raw.get("refusal")) and not args.quiet:
        say(f"The file fits, but the phase does not take it now: {refusal['detail']}")
    return DONE


def _answers_in(pairs: list[str]) -> dict[str, Any]:
    """Return the answers of K=V; numbers, truth and lists are what they look like in JSON, all else is text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign or not name:
            raise WrongOption(
                f"--answer {pair}: write it as K=V, where K is a field of the phase's form"
            )
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        found[name] = value if isinstance(value, int | float | bool | list) else text
    return found


def list_entries(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        show(args, hub.campaign(args.campaign).phase(args.phase).entries().rows(), hub)
    return DONE


def allowance(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        show(args, hub.campaign(args.campaign).phase(args.phase).allowance(args.team).rows(), hub)
    return DONE


def withdraw(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        ended = hub.campaign(args.campaign).phase(args.phase).withdraw(args.entry, args.reason)
        show(args, ended.rows(), hub)
    return DONE


def publish_entry(args: argparse.Namespace) -> int:
    """Show an entry that came afterwards to others, and print it."""
    with commands.hub_of(args) as hub:
        show(args, hub.campaign(args.campaign).phase(args.phase).publish(args.entry).rows(), hub)
    return DONE


def priorities(args: argparse.Namespace) -> int:
    """Order the entries of the caller's team, and list them as they are ordered then."""
    with commands.hub_of(args) as hub:
        order = hub.campaign(args.campaign).phase(args.phase).prioritise(args.tags).order
        show(args, [{"priority": place, "tag": tag} for place, tag in enumerate(order, 1)], hub)
    return DONE


def board(args: argparse.Namespace) -> int:
    """Show the leaderboard of a phase."""
    names = ("view", "run_type", "role", "filter", "sort")
    asked = {name: getattr(args, name) for name in names}
    with commands.hub_of(args) as hub:
        phase = hub.campaign(args.campaign).phase(args.phase)
        found = phase.leaderboard(
            *args.measure, rows=args.limit, statistics=args.statistics, **asked
        )
        show(args, found.rows(), hub)
        if found.provisional:
            say("Some runs are still to be evaluated; ranks may change.")
    return DONE


def add_commands(add: Any, within: Any) -> None:
    """Add `evh campaign ...` to the parser."""
    made = within(
        add("campaign", list_campaigns, "campaigns: take part in them and enter runs"),
        list_campaigns,
    )
    made("list", list_campaigns, "list those that you see")
    for name, function, does in (
        ("show", show_campaign, "what a campaign says"),
        ("phases", list_phases, "its phases, with the end that holds for your team"),
        ("agreements", list_agreements, "its agreements, and when you signed them"),
        ("teams", list_teams, "the teams that take part: yours, as an organiser all"),
    ):
        made(name, function, does).add_argument("campaign")
    organiser_commands.add_commands(made, within)
    _add_people(made)
    _add_entries(made)


def _add_people(made: Any) -> None:
    one = made("register", register, "register a team that you own")
    one.add_argument("campaign")
    one.add_argument("--team", help="default: the configured one, or your own")
    one.add_argument("--name", default="", help="as it is shown; default: the team's")
    one.add_argument("--affiliation", default="")
    one.add_argument("--agreement", action="append", default=[], metavar="SHA256",
                     help="one that you sign, or the first 8 characters of it; may be repeated")  # fmt: skip
    one.add_argument(
        "--typed-name", default="", metavar="NAME", help="your name, under the agreements"
    )
    one = made("join", join, "take part in a team of which you are a member")
    one.add_argument("campaign")
    one.add_argument("team")
    one = made("sign", sign, "sign agreements")
    one.add_argument("campaign")
    one.add_argument(
        "agreements", nargs="+", metavar="SHA256", help="or the first 8 characters of it"
    )
    one.add_argument(
        "--typed-name", "--name", required=True, metavar="NAME", help="your name, as you would sign"
    )


def _add_entries(made: Any) -> None:
    one = made("enter", enter, "enter a run into a phase, and print the receipt")
    one.add_argument("campaign")
    one.add_argument("phase")
    one.add_argument("file", metavar="FILE")
    one.add_argument("--tag", help="default: that of the file, or the file's name")
    one.add_argument("--run-type", default="", help="one of the phase's, such as automatic")
    one.add_argument(
        "--answer", action="append", default=[], metavar="K=V", help="to the form; may be repeated"
    )
    one.add_argument("--priority", type=int, help="default: the next one")
    one.add_argument("--description", default="")
    one.add_argument(
        "--meta",
        action="append",
        default=[],
        metavar="K=V",
        help="metadata, or auto; may be repeated",
    )
    one.add_argument("--dry-run", action="store_true", help="only check the file")
    one.add_argument(
        "--on-behalf-of", metavar="TEAM", help="for organisers, with --reason; also after the end"
    )
    one.add_argument("--reason", default="", help="why organisers enter for a team")
    one.add_argument("--role", default="", choices=("", "competing", "baseline", "out_of_competition"),
                     help="others than competing are for organisers")  # fmt: skip
    one.add_argument("--label", default="", help="of a baseline")
    for name, function, does in (
        ("entries", list_entries, "the entries of your team, as an organiser all"),
        ("allowance", allowance, "what your team may still enter"),
        (
            "withdraw",
            withdraw,
            "withdraw an entry: its slot is free again, its attempt stays counted",
        ),
        (
            "publish-entry",
            publish_entry,
            "show an entry of a phase of kind afterwards to others, permanently",
        ),
        ("priorities", priorities, "order the entries of your team"),
    ):
        one = made(name, function, does)
        one.add_argument("campaign")
        one.add_argument("phase")
        if name == "allowance":
            one.add_argument("--team", help="for organisers")
        elif name == "withdraw":
            one.add_argument("entry", metavar="TAG", help="or its id")
            one.add_argument("--reason", default="")
        elif name == "publish-entry":
            one.add_argument("entry", metavar="TAG", help="or its id")
        elif name == "priorities":
            one.add_argument(
                "tags", nargs="+", metavar="TAG", help="all tags, the most wanted first"
            )
    one = made("board", board, "the leaderboard of a phase")
    one.add_argument("campaign")
    one.add_argument("phase")
    one.add_argument(
        "-m", "--measure", action="append", default=[], help="a measure; may be repeated"
    )
    one.add_argument(
        "--view", choices=("official", "all", "late", "afterwards"), help="default: official"
    )
    one.add_argument("--run-type", help="rows of this type alone")
    one.add_argument(
        "--role",
        choices=("competing", "baseline", "out_of_competition"),
        help="rows of this role alone",
    )
    one.add_argument("--filter", help="rows that it selects alone, once you see the runs")
    one.add_argument("--sort", help="the measure that ranks")
    one.add_argument("--statistics", help="tiers, intervals, ranks or all")
    one.add_argument("--limit", type=int, help="rows; default: all")
