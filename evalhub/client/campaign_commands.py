"""Commands about campaigns for participants, and their options."""

from __future__ import annotations

import argparse
import json
from typing import Any

from . import commands, organiser_commands
from .commands import metadata_in, say, show
from .errors import BadFile, BadSource, WrongOption
from .statuses import DONE, REFUSED

_CAMPAIGN_FIELDS = (
    "slug", "name", "team", "state", "registration", "registration_closes_at", "your_team",
    "organiser",
)  # fmt: skip
_CAMPAIGN_DETAILS = (
    "summary", "guidelines_sha256", "contact", "max_team_size", "tag_scope", "created_at"
)  # fmt: skip
_TEAM_FIELDS = ("team", "name", "affiliation", "state", "members", "requested_at", "accepted_at")
_AGREEMENT_FIELDS = ("sha256", "title", "required_of", "signed_at")
_CHECK_FIELDS = ("tag", "lines", "topics", "documents")
_EXTENSION = "Extended from {old} to {new}: {reason}"


def list_campaigns(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        rows = hub.campaigns().rows()
        show(args, [{name: row[name] for name in _CAMPAIGN_FIELDS} for row in rows], hub)

    return DONE


def show_campaign(args: argparse.Namespace) -> int:
    """Show a campaign; its guidelines go to standard error."""
    with commands.hub_of(args) as hub:
        info = hub.campaign(args.campaign).info()
        row = {name: info.raw[name] for name in (*_CAMPAIGN_FIELDS, *_CAMPAIGN_DETAILS)}
        row["phases"] = [phase["phase"] for phase in info.phases]
        show(args, [row], hub, upright=True)
        if info.guidelines and not args.quiet:
            say(info.guidelines)

    return DONE


def list_phases(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        phases = hub.campaign(args.campaign).phases()
        show(args, phases.rows(), hub)

        for phase in phases.raw["results"] if not args.quiet else []:
            for extension in phase["extensions"]:
                text = f"{phase['phase']}: {_EXTENSION.format(**extension)}"
                if extension["notice"]:
                    text += f" ({extension['notice']})"
                if values_seen_since := extension.get("values_seen_since"):
                    text += f"; organisers had read values since {values_seen_since}"
                say(text)

    return DONE


def list_agreements(args: argparse.Namespace) -> int:
    """List agreements; their texts go to standard error."""
    with commands.hub_of(args) as hub:
        rows = hub.campaign(args.campaign).agreements().rows()
        show(args, [{name: row[name] for name in _AGREEMENT_FIELDS} for row in rows], hub)
        for row in rows if not args.quiet else []:
            say(f"\n{row['title']} ({row['sha256'][:12]})\n\n{row['text']}")
    return DONE


def sign(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        campaign = hub.campaign(args.campaign)
        signed = [campaign.sign(digest, args.typed_name).raw for digest in args.agreements]
        show(args, [{name: row[name] for name in _AGREEMENT_FIELDS} for row in signed], hub)
    return DONE


def register(args: argparse.Namespace) -> int:
    if args.agreement and not args.typed_name:
        raise WrongOption("--agreement signs it under --typed-name NAME; give your name")

    with commands.hub_of(args) as hub:
        fields = {name: getattr(args, name) for name in ("name", "affiliation", "typed_name")}
        campaign = hub.campaign(args.campaign)
        team = campaign.register(args.team, agreements=args.agreement, **fields)
        show(args, [{name: team.raw[name] for name in _TEAM_FIELDS}], hub)

        for row in campaign.agreements().rows():
            if row["signed_at"] is None:
                command = f"evh campaign sign {args.campaign} {row['sha256'][:12]}"
                say(f"Not signed yet: {row['title']}; {command} --typed-name NAME")
        if team.state == "requested":
            say("The organisers accept or decline the team.")

    return DONE


def join(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        membership = hub.campaign(args.campaign).join(args.team)
        show(args, [{"team": args.team, **membership.raw}], hub)
    return DONE


def list_teams(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        rows = hub.campaign(args.campaign).teams().rows()
        show(args, [{name: row[name] for name in _TEAM_FIELDS} for row in rows], hub)
    return DONE


def enter(args: argparse.Namespace) -> int:
    """Say how much time there is, enter a run and write its receipt."""
    names = (
        "tag",
        "run_type",
        "priority",
        "description",
        "on_behalf_of",
        "reason",
        "role",
        "label",
    )
    options: dict[str, Any] = {name: getattr(args, name) for name in names}
    options |= {"answers": _answers_in(args.answer), "metadata": metadata_in(args.meta)}
    with commands.hub_of(args) as hub:
        phase = hub.campaign(args.campaign).phase(args.phase)
        if args.dry_run:
            return _check(args, hub, phase, options)

        if not args.quiet:
            countdown = phase.info().countdown()
            say(f"{countdown[0].upper()}{countdown[1:]}")

        entry = phase.enter(args.file, **options)
        show(args, entry.rows(), hub, upright=True)
        counts = entry.warnings["counts"]
        if counts and not args.quiet:
            warnings = ", ".join(f"{count} {code}" for code, count in sorted(counts.items()))
            say(f"Warnings: {warnings}")

    return DONE


def _check(args: argparse.Namespace, hub: Any, phase: Any, options: dict[str, Any]) -> int:
    row: dict[str, Any] = {"file": args.file}
    row |= dict.fromkeys((*_CHECK_FIELDS, "warnings", "error"))
    try:
        check = phase.enter(args.file, dry_run=True, **options)
    except (BadFile, BadSource) as error:
        show(args, [{**row, "error": str(error)}], hub)
        return REFUSED

    row |= {name: check.raw[name] for name in _CHECK_FIELDS}
    row["warnings"] = " ".join(sorted(check.warnings["counts"]))
    show(args, [row], hub)
    if (refusal := check.raw.get("refusal")) and not args.quiet:
        say(f"The file fits, but the phase does not take it now: {refusal['detail']}")

    return DONE


def _answers_in(pairs: list[str]) -> dict[str, Any]:
    """Return the answers of K=V; numbers, booleans and lists are those of JSON."""
    answers: dict[str, Any] = {}
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
        answers[name] = value if isinstance(value, int | float | bool | list) else text

    return answers


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
        entry = hub.campaign(args.campaign).phase(args.phase).withdraw(args.entry, args.reason)
        show(args, entry.rows(), hub)
    return DONE


def set_paper(args: argparse.Namespace) -> int:
    """Link an entry to the paper about its run, and show the entry."""
    with commands.hub_of(args) as hub:
        phase = hub.campaign(args.campaign).phase(args.phase)
        show(args, phase.set_paper(args.entry, args.paper).rows(), hub)
    return DONE


def publish_entry(args: argparse.Namespace) -> int:
    """Publish an entry of a phase of kind afterwards, and show it."""
    with commands.hub_of(args) as hub:
        show(args, hub.campaign(args.campaign).phase(args.phase).publish(args.entry).rows(), hub)
    return DONE


def priorities(args: argparse.Namespace) -> int:
    """Order the entries of the caller's team, and list them in this order."""
    with commands.hub_of(args) as hub:
        order = hub.campaign(args.campaign).phase(args.phase).prioritise(args.tags).order
        show(args, [{"priority": number, "tag": tag} for number, tag in enumerate(order, 1)], hub)
    return DONE


def board(args: argparse.Namespace) -> int:
    """Show the leaderboard of a phase."""
    names = ("view", "run_type", "role", "filter", "sort", "statistics")
    parameters = {name: getattr(args, name) for name in names}
    with commands.hub_of(args) as hub:
        phase = hub.campaign(args.campaign).phase(args.phase)
        answer = phase.leaderboard(*args.measure, rows=args.limit, **parameters)
        show(args, answer.rows(), hub)
        if answer.provisional:
            say("Some runs are still to be evaluated; ranks may change.")

    return DONE


def add_commands(add: Any, add_actions: Any) -> None:
    """Add `evh campaign ...` to the parser."""
    command = add("campaign", list_campaigns, "campaigns: take part in them and enter runs")
    add_action = add_actions(command, list_campaigns)
    add_action("list", list_campaigns, "list those that you see")

    for name, function, help_text in (
        ("show", show_campaign, "what a campaign says"),
        ("phases", list_phases, "its phases, with the end that holds for your team"),
        ("agreements", list_agreements, "its agreements, and when you signed them"),
        ("teams", list_teams, "the teams that take part: yours, as an organiser all"),
    ):
        add_action(name, function, help_text).add_argument("campaign")
    organiser_commands.add_commands(add_action, add_actions)
    _add_teams(add_action)
    _add_entries(add_action)


def _add_teams(add_action: Any) -> None:
    action = add_action("register", register, "register a team that you own")
    action.add_argument("campaign")
    action.add_argument("--team", help="default: the configured one, or your own")
    action.add_argument("--name", default="", help="as it is shown; default: the team's")
    action.add_argument("--affiliation", default="")
    action.add_argument("--agreement", action="append", default=[], metavar="SHA256",
                     help="one that you sign, or the first 8 characters of it; may be repeated")  # fmt: skip
    action.add_argument(
        "--typed-name", default="", metavar="NAME", help="your name, under the agreements"
    )

    action = add_action("join", join, "take part in a team of which you are a member")
    action.add_argument("campaign")
    action.add_argument("team")

    action = add_action("sign", sign, "sign agreements")
    action.add_argument("campaign")
    action.add_argument(
        "agreements", nargs="+", metavar="SHA256", help="or the first 8 characters of it"
    )
    action.add_argument(
        "--typed-name", "--name", required=True, metavar="NAME", help="your name, as you would sign"
    )


def _add_entries(add_action: Any) -> None:
    action = add_action("enter", enter, "enter a run into a phase, and print the receipt")
    action.add_argument("campaign")
    action.add_argument("phase")
    action.add_argument("file", metavar="FILE")
    action.add_argument("--tag", help="default: that of the file, or the file's name")
    action.add_argument("--run-type", default="", help="one of the phase's, such as automatic")
    action.add_argument(
        "--answer", action="append", default=[], metavar="K=V", help="to the form; may be repeated"
    )
    action.add_argument("--priority", type=int, help="default: the next one")
    action.add_argument("--description", default="")
    action.add_argument(
        "--meta",
        action="append",
        default=[],
        metavar="K=V",
        help="metadata, or auto; may be repeated",
    )
    action.add_argument("--dry-run", action="store_true", help="only check the file")
    action.add_argument(
        "--on-behalf-of", metavar="TEAM", help="for organisers, with --reason; also after the end"
    )
    action.add_argument("--reason", default="", help="why organisers enter for a team")
    action.add_argument("--role", default="", choices=("", "competing", "baseline", "out_of_competition"),
                     help="others than competing are for organisers")  # fmt: skip
    action.add_argument("--label", default="", help="of a baseline")

    for name, function, help_text in (
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
        ("paper", set_paper, "link an entry to the paper about its run"),
        ("priorities", priorities, "order the entries of your team"),
    ):
        action = add_action(name, function, help_text)
        action.add_argument("campaign")
        action.add_argument("phase")
        if name == "allowance":
            action.add_argument("--team", help="for organisers")
        elif name == "withdraw":
            action.add_argument("entry", metavar="TAG", help="or its id")
            action.add_argument("--reason", default="")
        elif name == "publish-entry":
            action.add_argument("entry", metavar="TAG", help="or its id")
        elif name == "paper":
            action.add_argument("entry", metavar="TAG", help="or its id")
            action.add_argument("paper", help="its address or DOI; empty: none")
        elif name == "priorities":
            action.add_argument(
                "tags", nargs="+", metavar="TAG", help="all tags, the most wanted first"
            )

    action = add_action("board", board, "the leaderboard of a phase")
    action.add_argument("campaign")
    action.add_argument("phase")
    action.add_argument(
        "-m", "--measure", action="append", default=[], help="a measure; may be repeated"
    )
    action.add_argument(
        "--view", choices=("official", "all", "late", "afterwards"), help="default: official"
    )
    action.add_argument("--run-type", help="rows of this type alone")
    action.add_argument(
        "--role",
        choices=("competing", "baseline", "out_of_competition"),
        help="rows of this role alone",
    )
    action.add_argument("--filter", help="rows that it selects alone, once you see the runs")
    action.add_argument("--sort", help="the measure that ranks")
    action.add_argument("--statistics", help="tiers, intervals, ranks or all")
    action.add_argument("--limit", type=int, help="rows; default: all")
