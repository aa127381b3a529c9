"""What the commands of runs do: each is a function of its arguments that returns an exit status."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from .answers import Means
from .batches import check_files, files_of
from .config import read_config
from .errors import (
    BadFile,
    BadSource,
    EvalHubError,
    EvaluationFailed,
    NotFound,
    TimedOut,
    Unavailable,
    WrongOption,
)
from .hub import Hub
from .metadata import gather_metadata
from .output import check_format, rendered
from .progress import Table, progress
from .runs import ON_THE_WAY, Run, refresh_states, run_id_in, wait_for
from .statuses import DONE, LATE, NOT_EVALUATED, REFUSED, worst_of

_JUDGED = "Judged@10"
_ENDED_BADLY = ("failed", "cancelled")
# Beyond so many runs their means are read from the leaderboard, in a few requests.
_ONE_BY_ONE = 3
_LOOKS = 1.0


def hub_of(args: argparse.Namespace) -> Hub:
    """Return the server that the options, the environment and the file of profiles name."""
    return Hub(read_config(url=args.url, profile=args.profile, token_file=args.token_file))


def show(
    args: argparse.Namespace,
    rows: list[dict[str, Any]],
    hub: Hub | None = None,
    *,
    upright: bool = False,
) -> None:
    """Write rows in the format that is asked for: a table on a terminal, columns with tabs in a pipe; or their ids."""
    if args.quiet:
        names = ("id", "slug", "version", "tag", "topic_id", "measure", "name", "path")
        sys.stdout.write(
            "".join(f"{next((row[name] for name in names if name in row), '')}\n" for row in rows)
        )
        return

    asked = args.format or (hub.config.format if hub else "")
    asked = asked or ("table" if sys.stdout.isatty() else "tsv")
    if not rows and check_format(asked)[1] == "table":
        say("There is nothing to show.")

    sys.stdout.write(rendered(rows, asked, upright=upright))


def say(text: str) -> None:
    """Tell a person something that is no result."""
    sys.stderr.write(f"{text}\n")


def metadata_in(pairs: list[str]) -> dict[str, Any]:
    """Return metadata of `auto` and K=V; numbers and truth are what they look like in JSON."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if pair == "auto":
            found = {**gather_metadata(), **found}
            continue

        if not sign or not name:
            raise WrongOption(f"--meta {pair}: write it as K=V, or auto")

        try:
            value = json.loads(text)
        except ValueError:
            value = text

        found[name] = value if isinstance(value, int | float | bool) else text

    return found


def said_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return what the options say of every run that is submitted."""
    how = {"team": args.team, "description": args.description, "metadata": metadata_in(args.meta)}
    how |= {"experiment": args.experiment} if args.experiment else {}
    return {**how, "if_taken": args.if_taken, "wait_for_quota": args.wait_for_quota}


def submit(args: argparse.Namespace) -> int:
    if args.format:
        check_format(args.format)

    with hub_of(args) as hub:
        collection = hub.collection(args.collection)
        how = said_of(args)
        if args.follow:
            for name in ("tag", "known", "dry_run", "system"):
                if getattr(args, name):
                    raise WrongOption(
                        f"--follow submits files as they appear; leave --{name.replace('_', '-')} "
                        "out"
                    )
            return _follow(args, hub, collection, how)

        files = files_of(args.files)
        for name in ("tag", "known", "label", "system"):
            if getattr(args, name) and len(files) > 1:
                raise WrongOption(f"--{name} is of one run, and these are {len(files)} files")

        if args.dry_run:
            if len(files) > 1:
                check_files(files)

            how |= {
                "tag": args.tag,
                "known": args.known,
                "system": args.system,
                "label": args.label,
            }
            return dry_run(args, hub, [(str(path), collection, path, how) for path in files])

        runs: list[Run] = []
        errors: dict[str, EvalHubError] = {}

        with progress(hub, len(files), args.quiet):
            if len(files) == 1:
                how |= {
                    "tag": args.tag,
                    "known": args.known,
                    "system": args.system,
                    "label": label_at_once(args),
                }
                runs.append(collection.submit(files[0], **how))
            else:
                sending: dict[str, Any] = {
                    "parallel": args.parallel,
                    "journal": args.journal,
                    "stop": args.stop,
                }
                batch = collection.submit_all(files, **how, **sending, timeout=0.0)
                runs, errors = batch.runs, {**batch.refused, **batch.unsent}

        return wait_and_report(args, hub, runs, errors)


def wait_and_report(
    args: argparse.Namespace, hub: Hub, runs: list[Run], errors: dict[str, EvalHubError]
) -> int:
    """Wait for what was submitted if that is asked for, and write what came of it."""
    # Of a server that is away nothing more is asked: what was sent is listed.
    waits = args.wait and not any(isinstance(error, Unavailable) for error in errors.values())
    late = DONE
    if waits:
        try:
            wait_for(hub, runs, args.timeout)
        except TimedOut as error:
            say(f"evh: {error}")
            late = LATE

    if waits and not late:
        _label(args, hub, runs)

    return _report(args, hub, runs, errors, means=waits) or late


def label_at_once(args: argparse.Namespace) -> str | None:
    """Return the label that moves with the submission: one for which nobody waits until the run is evaluated."""
    return None if args.wait else args.label


def _label(args: argparse.Namespace, hub: Hub, runs: list[Run]) -> None:
    """Let the label that is given name each of these runs in turn, but those that failed."""
    for run in runs if args.label else []:
        if run.state not in _ENDED_BADLY:
            hub.collection(run.collection).label(args.label, run)


def dry_run(
    args: argparse.Namespace, hub: Hub, sending: list[tuple[str, Any, Any, dict[str, Any]]]
) -> int:
    """Check runs, each a name, a collection, a source and options, and write a row for each."""
    rows, errors = [], []
    for name, collection, source, how in sending:
        names = ("tag", "lines", "topics", "documents")
        row: dict[str, Any] = {
            "file": name,
            **dict.fromkeys(names),
            "warnings": None,
            "error": None,
        }
        try:
            found = collection.submit(source, dry_run=True, **how)
        except (BadFile, BadSource) as error:
            errors.append(error)
            row["error"] = str(error)
        else:
            row |= {field: found.raw[field] for field in names}
            row["warnings"] = " ".join(sorted(found.warnings["counts"]))

        rows.append(row)

    show(args, rows, hub)
    return REFUSED if errors else DONE


def _report(
    args: argparse.Namespace,
    hub: Hub,
    runs: list[Run],
    errors: dict[str, EvalHubError],
    *,
    means: bool,
) -> int:
    """Write a row for each run, with its means where it is evaluated; the worst that happened is the status."""
    figures = _figures(hub, runs) if means and not args.quiet else {}
    rows = []
    for run in runs:
        row = {"tag": run.tag, "state": run.state, **figures.get(run.id, {})}
        if run.status["code"]:
            row["code"] = run.status["code"]
        rows.append({**row, "id": run.id, "page": run.page})

    show(args, rows, hub)
    for path, error in errors.items():
        text = str(error)
        say(text if text.startswith(f"{Path(path).name}:") else f"{path}: {text}")

    if len(runs) + len(errors) > 1 and not args.quiet:
        there = sum(run.there for run in runs)
        counts = {
            "sent": len(runs) - there,
            "already there": there,
            "refused or not sent": len(errors),
        }

        states = {
            state: sum(run.state == state for run in runs)
            for state in dict.fromkeys(run.state for run in runs)
        }
        counted = ", ".join(
            f"{count} {what}" for what, count in {**counts, **states}.items() if count
        )
        say(f"{len(runs) + len(errors)} files: {counted}.")

    if errors:
        return worst_of(errors.values())
    return NOT_EVALUATED if any(run.state in _ENDED_BADLY for run in runs) else DONE


def _figures(hub: Hub, runs: list[Run]) -> dict[str, dict[str, Any]]:
    """Return the means of evaluated runs by id, with their coverage: what explains most differences from other
    programs."""
    done = [run for run in runs if run.state == "evaluated"]
    if len(done) > _ONE_BY_ONE:
        board = hub.collection(done[0].collection).leaderboard()
        found = {row["run"]["id"]: row for row in board.results}
        return {
            run.id: _figure(
                {measure: value["mean"] for measure, value in found[run.id]["values"].items()},
                found[run.id]["coverage"],
                found[run.id]["judged_at_10"],
            )
            for run in done
            if run.id in found
        }

    figures = {}
    for run in done:
        means: Means = run.means()
        if means.coverage["answered"] < means.coverage["judged"]:
            say(str(run.coverage(*means)).partition("\n")[0])
        figures[run.id] = _figure(dict(means), means.coverage, run.means(_JUDGED)[_JUDGED])

    return figures


def _figure(means: dict[str, Any], covered: dict[str, int], judged: float | None) -> dict[str, Any]:
    return {**means, "topics": f"{covered['answered']}/{covered['judged']}", _JUDGED: judged}


def _follow(args: argparse.Namespace, hub: Hub, collection: Any, how: dict[str, Any]) -> int:
    """Submit what appears in the folders, each file when its size stands still between two looks."""
    sizes: dict[Path, int] = {}
    done: set[Path] = set()
    say("Waiting for files; Ctrl-C ends this.")

    while True:
        found = [
            path for one in args.files for path in (files_of(one) if Path(one).exists() else [])
        ]
        now = {path: path.stat().st_size for path in found if path not in done}
        for path in [path for path, size in now.items() if size and sizes.get(path) == size]:
            done.add(path)
            try:
                batch = collection.submit_all([path], **how, journal=args.journal, timeout=0.0)
            except BadSource as error:
                row = {"tag": str(path), "state": "refused", "id": "", "error": str(error)}
            else:
                # The quota is used up, or the server is away: no other file would be taken either.
                for reason in batch.unsent.values():
                    raise reason

                (row,) = batch.rows()
                if args.wait and args.label:
                    try:
                        wait_for(hub, batch.runs, args.timeout)
                    except TimedOut as error:
                        # The label stays with the run before it, and the next file is waited for.
                        say(f"evh: {error}")
                        batch.runs.clear()

                # What the journal knows was labelled before.
                _label(args, hub, [run for run in batch.runs if not run.there])

            sys.stdout.write(f"{row['state']}\t{row['tag']}\t{row['id'] or row['error']}\n")
            sys.stdout.flush()

        sizes = now
        time.sleep(_LOOKS)


def _runs_of(args: argparse.Namespace, hub: Hub) -> list[Run]:
    """Return the runs that are named, or all of the collection; a single name may be that of a collection."""
    filters = {"team": args.team} if args.team else {}
    if not args.runs:
        slug = args.collection or hub.config.collection
        if not slug:
            raise WrongOption("name runs, or a collection")
        return hub.collection(slug).runs(**filters)

    name = args.runs[0]
    if len(args.runs) == 1 and not args.collection and not run_id_in(name) and "/" not in name:
        if hub.config.collection:
            try:
                return [hub.run(name)]
            except NotFound:
                pass
        return hub.collection(name).runs(**filters)

    return [hub.run(name, args.collection) for name in args.runs]


def status(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        show(args, [row for run in _runs_of(args, hub) for row in run.rows()], hub)
    return DONE


def watch(args: argparse.Namespace) -> int:
    """Show states until no run is on its way: a table drawn anew on a terminal, else a line where they change."""
    with hub_of(args) as hub:
        runs, table = _runs_of(args, hub), Table()
        deadline = time.monotonic() + args.timeout
        while True:
            counts: dict[str, int] = {}
            for run in runs:
                counts[run.state] = counts.get(run.state, 0) + 1

            summary = (
                ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
                or "no runs"
            )
            rows = [
                {name: run.rows()[0][name] for name in ("team", "tag", "state", "position")}
                for run in runs
            ]
            # What is on its way comes first: a screen may be too small for all.
            rows.sort(key=lambda row: row["state"] not in ON_THE_WAY)
            table.show(rendered(rows, "table"), summary)

            waiting = [run for run in runs if run.state in ON_THE_WAY]
            if not waiting:
                table.clear()
                show(args, [row for run in runs for row in run.rows()], hub)
                return NOT_EVALUATED if any(run.state in _ENDED_BADLY for run in runs) else DONE

            if time.monotonic() >= deadline:
                raise TimedOut(waiting, args.timeout)

            time.sleep(_LOOKS)
            refresh_states(hub, waiting)


def wait(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        runs = [hub.run(name, args.collection) for name in args.runs]
        wait_for(hub, runs, args.timeout)

        for run in runs:
            if run.state in _ENDED_BADLY:
                raise EvaluationFailed(run)

    return DONE


def values(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        found = hub.run(args.run, args.collection).values(*args.measure)
        show(args, found.rows() if args.per_topic else Means(found.raw).rows(), hub)
    return DONE


def leaderboard(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        asked = {
            "filter": args.filter,
            "baseline": args.baseline,
            "statistics": args.statistics,
            "sort": args.sort,
            "entries": args.entries,
        }

        board = hub.collection(args.collection).leaderboard(*args.measure, rows=args.limit, **asked)
        show(args, board.rows(), hub)
        if board.provisional:
            say("Some runs are still to be evaluated; ranks may change.")

        entries = board.raw.get("entries")
        if entries and entries["shown"] == "official" and entries["others"]:
            say(
                f"{entries['official']:,} official; --entries all shows {entries['others']:,} "
                "others."
            )

    return DONE


def compare(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        asked = {
            "measures": args.measure,
            "tests": args.test,
            "baseline": args.baseline,
            "correction": args.correction,
        }

        kept = {name: value for name, value in asked.items() if value}
        found = hub.collection(args.collection).compare(*args.runs, timeout=args.timeout, **kept)
        show(args, found.rows(), hub)
        for caution in found.cautions:
            say(f"{caution['code']}: {caution['message']}")

        for measure in found.measures:
            for caution in measure["cautions"]:
                say(f"{measure['measure']}: {caution['code']}: {caution['message']}")

    return DONE


def diff(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        found = hub.collection(args.collection).difference(
            args.a, args.b, args.measure, order=args.order
        )
        show(args, found.rows(), hub)
        say(
            f"{args.a}: {found.wins} wins, {found.ties} ties, {found.losses} losses against "
            f"{args.b}"
        )

    return DONE
