"""Commands about the gate and labels."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from . import commands
from .errors import BadRule
from .gate import promote
from .statuses import DONE
from .verdicts import Verdict

WORSE, UNDECIDED = 10, 11


def gate(args: argparse.Namespace) -> int:
    """Check a run against a baseline; the exit status is the verdict."""
    if not 0 < args.alpha < 0.5:
        raise BadRule(
            f"--alpha {args.alpha:g} is not a level; it is between 0 and 0.5, usually 0.05"
        )

    with commands.hub_of(args) as hub:
        collection = hub.collection(args.collection)
        options = {
            "test": args.test,
            "alpha": args.alpha,
            "timeout": args.timeout,
            "no_baseline": args.no_baseline,
        }

        rules = args.rule or [f"{collection.info().measures[0]} no-significant-drop"]
        verdict = collection.gate(args.run, args.baseline, rules, **options)
        if args.junit:
            text = verdict.junit(undecided_fails=args.undecided == "fail")
            Path(args.junit).write_text(text, encoding="utf-8")

        if args.markdown == "-":
            sys.stdout.write(verdict.markdown())
        elif args.markdown:
            Path(args.markdown).write_text(verdict.markdown(), encoding="utf-8")

        format_text = args.format or hub.config.format
        if args.quiet:
            sys.stdout.write(f"{verdict.verdict}\n")
        elif format_text == "json":
            sys.stdout.write(json.dumps(verdict.raw, indent=2) + "\n")
        elif format_text:
            commands.show(args, verdict.rows(), hub)
        elif args.markdown != "-":
            sys.stdout.write("\n".join([*verdict.lines(), f"  {verdict.url}"]) + "\n")

        if args.promote and verdict.fine:
            promote(collection, verdict, args.promote, args.baseline)
            commands.say(f"label {args.promote} names {verdict.candidate['tag']} now")
        elif args.promote:
            commands.say(f"label {args.promote} is not moved: the run is {verdict.verdict}")

    return status_of(verdict, args.undecided)


def status_of(verdict: Verdict, undecided: str) -> int:
    """Return the exit status of a verdict; undecided is 0 unless it is to fail."""
    if verdict.worse:
        return WORSE
    return UNDECIDED if verdict.undecided and undecided == "fail" else DONE


def labels(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        rows = hub.collection(args.collection).labels().rows()
        commands.show(args, rows, hub)
        if not rows:
            commands.say(f"collection {args.collection} has no labels that you see")
    return DONE


def label(args: argparse.Namespace) -> int:
    """Let a label name a run, or delete it."""
    with commands.hub_of(args) as hub:
        collection = hub.collection(args.collection)
        if args.delete == bool(args.run):
            raise BadRule("name the run that the label is to name, or give --delete")

        if args.delete:
            collection.unlabel(args.name, args.team)
            return DONE

        expected = {}
        if args.expected is not None:
            expected["expected"] = None if args.expected == "none" else args.expected

        answer = collection.label(args.name, args.run, note=args.note, **expected)
        commands.show(args, answer.rows(), hub)

    return DONE
