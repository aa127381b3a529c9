"""Commands about runs: each is a function of its arguments that returns an exit status."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
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
    NoEvaluation,
    NotFound,
    TimedOut,
    Unavailable,
    WrongOption,
)
from .hub import Hub
from .metadata import gather_metadata
from .output import check_format, format_rows
from .progress import Table, progress
from .runs import (
    ON_THE_WAY,
    Run,
    Submission,
    is_stopped,
    no_evaluation,
    refresh_states,
    run_id_in,
    wait_for,
)
from .statuses import DONE, NOT_EVALUATED, REFUSED, status_of, worst_of

_JUDGED = "Judged@10"
_SLUG = re.compile(r"[A-Za-z0-9._-]+")
_NOT_EVALUATED = ("failed", "cancelled")
# The means of more runs are read from the leaderboard, in a few requests.
_MAX_SINGLE_READS = 3
# Seconds between two looks at states or folders.
_INTERVAL = 1.0


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
    """Write rows in the format of the options, by default a table on a terminal; or their ids."""
    if args.quiet:
        names = ("id", "slug", "version", "tag", "topic_id", "measure", "name", "path")
        for row in rows:
            sys.stdout.write(f"{next((row[name] for name in names if name in row), '')}\n")
        return

    format_text = args.format or (hub.config.format if hub else "")
    format_text = format_text or ("table" if sys.stdout.isatty() else "tsv")
    if not rows and check_format(format_text)[1] == "table":
        say("There is nothing to show.")

    sys.stdout.write(format_rows(rows, format_text, upright=upright))


def say(text: str) -> None:
    """Write a message for a person, which is not part of the result."""
    sys.stderr.write(f"{text}\n")


def metadata_in(pairs: list[str]) -> dict[str, Any]:
    """Return the metadata of `auto` and K=V; numbers and booleans are those of JSON."""
    metadata: dict[str, Any] = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if pair == "auto":
            metadata = {**gather_metadata(), **metadata}
            continue

        if not sign or not name:
            raise WrongOption(f"--meta {pair}: write it as K=V, or auto")

        try:
            value = json.loads(text)
        except ValueError:
            value = text
        metadata[name] = value if isinstance(value, int | float | bool) else text

    return metadata


def submit_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options that apply to every run that is submitted."""
    options = {"team": args.team, "description": args.description}
    options |= {"metadata": metadata_in(args.meta), "if_taken": args.if_taken}
    options["wait_for_quota"] = args.wait_for_quota
    if args.experiment:
        options["experiment"] = args.experiment
    if args.passages:
        options["passages"] = args.passages
    if args.replicate:
        options["replicate"] = args.replicate

    return options


def submit(args: argparse.Namespace) -> int:
    if args.format:
        check_format(args.format)

    with hub_of(args) as hub:
        collection = hub.collection(args.collection)
        options = submit_options(args)
        if args.follow:
            for name in ("tag", "known", "dry_run", "system", "drop_identical"):
                if getattr(args, name):
                    raise WrongOption(
                        f"--follow submits files as they appear; leave --{name.replace('_', '-')} "
                        "out"
                    )
            return _follow(args, hub, collection, options)

        files = files_of(args.files)
        for name in ("tag", "known", "label", "system", "drop_identical"):
            if getattr(args, name) and len(files) > 1:
                raise WrongOption(
                    f"--{name.replace('_', '-')} is of one run, and these are {len(files)} files"
                )

        single = {"tag": args.tag, "known": args.known, "system": args.system, "label": args.label}
        single["drop_identical"] = args.drop_identical
        if args.dry_run:
            if len(files) > 1:
                check_files(files, by_name=bool(args.replicate))
            options |= single
            return dry_run(args, hub, [(str(path), collection, path, options) for path in files])

        runs: list[Run] = []
        errors: dict[str, EvalHubError] = {}
        with progress(hub, len(files), args.quiet):
            if len(files) == 1:
                options |= {**single, "label": label_at_once(args)}
                runs.append(collection.submit(files[0], **options))
            else:
                options |= {"parallel": args.parallel, "journal": args.journal, "stop": args.stop}
                batch = collection.submit_all(files, **options, timeout=0.0)
                runs, errors = batch.runs, {**batch.refused, **batch.unsent}

        return wait_and_report(args, hub, runs, errors)


def submit_values(args: argparse.Namespace) -> int:
    """Submit a run without a ranking."""
    if args.files or not args.tag:
        raise WrongOption("write evh submit C --values --tag NAME, without a file")
    for name in ("known", "passages", "follow", "drop_identical"):
        if getattr(args, name):
            option = name.replace("_", "-")
            raise WrongOption(f"--{option} is for rankings, and --values sends a run without one")

    with hub_of(args) as hub:
        collection, options = hub.collection(args.collection), submit_options(args)
        options |= {"tag": args.tag, "system": args.system}
        if args.dry_run:
            return dry_run(args, hub, [(args.tag, collection, None, options)])
        run = collection.submit(None, **options, label=label_at_once(args))
        return wait_and_report(args, hub, [run], {})


def wait_and_report(
    args: argparse.Namespace, hub: Hub, runs: list[Run], errors: dict[str, EvalHubError]
) -> int:
    """Wait for submitted runs if the options say so, and report them."""
    # If the server is away, what was sent is only listed.
    waits = args.wait and not any(isinstance(error, Unavailable) for error in errors.values())
    late = DONE
    if waits:
        try:
            wait_for(hub, runs, args.timeout)
        except (TimedOut, NoEvaluation) as error:
            say(f"evh: {error}")
            late = status_of(error)

    if waits and not late:
        _label(args, hub, runs)

    return _report(args, hub, runs, errors, means=waits) or late


def label_at_once(args: argparse.Namespace) -> str | None:
    """Return the label that the server moves as it receives the run, unless evaluation comes first."""
    return None if args.wait else args.label


def _label(args: argparse.Namespace, hub: Hub, runs: list[Run]) -> None:
    """Let the label of the options name each of these runs in turn, except for failed ones."""
    for run in runs if args.label else []:
        if run.state not in _NOT_EVALUATED:
            hub.collection(run.collection).label(args.label, run)


def dry_run(
    args: argparse.Namespace, hub: Hub, candidates: list[tuple[str, Any, Any, dict[str, Any]]]
) -> int:
    """Check runs, each a name, a collection, a source and options, and write a row for each."""
    rows, errors = [], []
    for name, collection, source, options in candidates:
        names = ("tag", "lines", "topics", "documents")
        row: dict[str, Any] = {"file": name, **dict.fromkeys((*names, "warnings", "error"))}
        try:
            check = collection.submit(source, dry_run=True, **options)
        except (BadFile, BadSource) as error:
            errors.append(error)
            row["error"] = str(error)
        else:
            row |= {field: check.raw[field] for field in names}
            row["warnings"] = " ".join(sorted(check.warnings["counts"]))

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
    """Write a row for each run, with its means if it is evaluated; return the worst status."""
    summaries = _summaries(hub, runs) if means and not args.quiet else {}
    rows = []
    for run in runs:
        row = {"tag": run.tag, "state": run.state, **summaries.get(run.id, {})}
        if run.status["code"]:
            row["code"] = run.status["code"]
        rows.append({**row, "id": run.id, "page": run.page})

    show(args, rows, hub)
    say_teams(args, runs)
    for run in runs:
        if run.state in _NOT_EVALUATED and means:
            say(f"evh: {EvaluationFailed(run)}")

    for path, error in errors.items():
        text = str(error)
        say(text if text.startswith(f"{Path(path).name}:") else f"{path}: {text}")

    if len(runs) + len(errors) > 1 and not args.quiet:
        existed = sum(run.existed for run in runs)
        counts = {"sent": len(runs) - existed, "already there": existed}
        counts["refused or not sent"] = len(errors)
        for run in runs:
            counts[run.state] = counts.get(run.state, 0) + 1

        parts = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        say(f"{len(runs) + len(errors)} files: {parts}.")

    if errors:
        return worst_of(errors.values())
    return NOT_EVALUATED if any(run.state in _NOT_EVALUATED for run in runs) else DONE


def say_teams(args: argparse.Namespace, submissions: Sequence[Submission]) -> None:
    """Say to which team the server gave runs or session sets, where no option names it."""
    if submissions and not args.team and not args.quiet:
        teams = sorted({submission.raw["team"] for submission in submissions})
        say(f"Submitted for team {', '.join(teams)}.")


def _summaries(hub: Hub, runs: list[Run]) -> dict[str, dict[str, Any]]:
    """Return the means of evaluated runs by id, with their coverage.

    Coverage explains most differences from other programs.
    """
    summaries = {}
    evaluated = [run for run in runs if run.state == "evaluated"]
    if len(evaluated) > _MAX_SINGLE_READS:
        board = hub.collection(evaluated[0].collection).leaderboard()
        rows = {row["run"]["id"]: row for row in board.results}
        for run in evaluated:
            if row := rows.get(run.id):
                means = {measure: value["mean"] for measure, value in row["values"].items()}
                summaries[run.id] = _summary(means, row["coverage"], row["judged_at_10"])

        return summaries

    cautions: dict[str, None] = {}
    for run in evaluated:
        run_means: Means = run.means()
        cautions |= dict.fromkeys(_cautions_of(run_means))
        if run_means.coverage["answered"] < run_means.coverage["judged"]:
            say(str(run.coverage(*run_means)).partition("\n")[0])
        judged = run.means(_JUDGED)[_JUDGED]
        if judged == 0:
            say(
                f"{run.tag}: nothing is judged of its first 10 documents of any topic, so that its "
                "values measure nothing; are its ids those of the judgements?"
            )
        summaries[run.id] = _summary(dict(run_means), run_means.coverage, judged)

    for caution in cautions:
        say(caution)
    return summaries


def _cautions_of(answer: Any) -> list[str]:
    """Return the cautions of an answer; older servers send none."""
    cautions = answer.raw.get("cautions", [])
    return [f"{caution['code']}: {caution['message']}" for caution in cautions]


def _say_cautions(answer: Any) -> None:
    for caution in _cautions_of(answer):
        say(caution)


def _summary(
    means: dict[str, Any], coverage: dict[str, int], judged: float | None
) -> dict[str, Any]:
    return {**means, "topics": f"{coverage['answered']}/{coverage['judged']}", _JUDGED: judged}


def _follow(args: argparse.Namespace, hub: Hub, collection: Any, options: dict[str, Any]) -> int:
    """Submit files that appear in the folders, each when it has stopped growing."""
    sizes: dict[Path, int] = {}
    submitted: set[Path] = set()
    say("Waiting for files; Ctrl-C ends this.")

    while True:
        sources = [source for source in args.files if Path(source).exists()]
        paths = [path for source in sources for path in files_of(source)]
        last_sizes = sizes
        sizes = {path: path.stat().st_size for path in paths if path not in submitted}
        for path, size in sizes.items():
            if not size or last_sizes.get(path) != size:
                continue

            submitted.add(path)
            try:
                batch = collection.submit_all([path], **options, journal=args.journal, timeout=0.0)
            except BadSource as error:
                row = {"tag": str(path), "state": "refused", "id": "", "error": str(error)}
                submitted_runs: list[Run] = []
            else:
                # The quota is used up, or the server is away: no other file would be taken either.
                for reason in batch.unsent.values():
                    raise reason

                (row,), submitted_runs = batch.rows(), list(batch.runs)
                if args.wait and args.label:
                    try:
                        wait_for(hub, batch.runs, args.timeout)
                    except (TimedOut, NoEvaluation) as error:
                        # The label stays where it is, and the next file is waited for.
                        say(f"evh: {error}")
                        batch.runs.clear()

                # Runs that the journal knows were labelled before.
                _label(args, hub, [run for run in batch.runs if not run.existed])

            sys.stdout.write(f"{row['state']}\t{row['tag']}\t{row['id'] or row['error']}\n")
            sys.stdout.flush()
            say_teams(args, submitted_runs)

        time.sleep(_INTERVAL)


def names_of(args: argparse.Namespace, hub: Hub, *, single: bool = False) -> tuple[str, list[str]]:
    """Return the collection and the names of runs of a command: [COLLECTION] RUN...

    The first of several names is the collection, unless -c or the configuration name it, or it can
    only be a run. A command with a `single` run takes two names whatever is configured.
    """
    names: list[str] = args.runs
    slug = args.collection
    is_known = bool(slug or (hub.config.collection and not single))
    if not is_known and len(names) > 1 and _SLUG.fullmatch(names[0]) and not run_id_in(names[0]):
        slug, *names = names

    if single and len(names) != 1:
        raise WrongOption(f"one run is named after its collection, not {' '.join(args.runs)}")
    return slug, names


def _runs_of(args: argparse.Namespace, hub: Hub) -> list[Run]:
    """Return the named runs, or all of a collection; a single name may be that of a collection."""
    filters = {"team": args.team} if args.team else {}
    slug, names = names_of(args, hub)
    if not names:
        slug = slug or hub.config.collection
        if not slug:
            raise WrongOption("name runs, or a collection")
        return hub.collection(slug).runs(**filters)

    name = names[0]
    if len(names) == 1 and not slug and not run_id_in(name) and "/" not in name:
        if hub.config.collection:
            try:
                return [hub.run(name)]
            except NotFound:
                pass
        return hub.collection(name).runs(**filters)

    return [hub.run(name, slug) for name in names]


def status(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        show(args, [row for run in _runs_of(args, hub) for row in run.rows()], hub)
    return DONE


def watch(args: argparse.Namespace) -> int:
    """Show states until no run is on its way: a table on a terminal, otherwise lines."""
    with hub_of(args) as hub:
        runs, table = _runs_of(args, hub), Table()
        start = time.monotonic()
        while True:
            counts: dict[str, int] = {}
            for run in runs:
                counts[run.state] = counts.get(run.state, 0) + 1

            summary = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
            names = ("team", "tag", "state", "position")
            rows = [{name: run.rows()[0][name] for name in names} for run in runs]
            # Runs on their way come first: a screen may be too small for all.
            rows.sort(key=lambda row: row["state"] not in ON_THE_WAY)
            table.show(format_rows(rows, "table"), summary or "no runs")

            waiting = [run for run in runs if run.state in ON_THE_WAY]
            if not waiting:
                table.clear()
                show(args, [row for run in runs for row in run.rows()], hub)
                return NOT_EVALUATED if any(run.state in _NOT_EVALUATED for run in runs) else DONE

            waited = time.monotonic() - start
            if all(is_stopped(run, waited) for run in waiting):
                raise no_evaluation(waiting)
            if waited >= args.timeout:
                raise TimedOut(waiting, args.timeout)

            time.sleep(_INTERVAL)
            refresh_states(hub, waiting)


def wait(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        slug, names = names_of(args, hub)
        runs = [hub.run(name, slug) for name in names]
        wait_for(hub, runs, args.timeout)

        for run in runs:
            if run.state in _NOT_EVALUATED:
                raise EvaluationFailed(run)

    return DONE


def replicate(args: argparse.Namespace) -> int:
    """Make runs replicates of one system, or single runs again."""
    with hub_of(args) as hub:
        runs = [hub.run(name, args.collection) for name in args.runs]
        names = ("id", "team", "tag", "replicate_of")
        # One after the other: the first one may make the row of all.
        changed = [run.make_replicate(args.of).raw for run in runs]
        show(args, [{name: raw[name] for name in names} for raw in changed], hub)
    return DONE


def values(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        slug, (name,) = names_of(args, hub, single=True)
        run_values = hub.run(name, slug).values(*args.measure)
        _say_cautions(run_values)
        rows = run_values.rows() if args.per_topic else Means(run_values.raw).rows()
        show(args, rows, hub)
    return DONE


def leaderboard(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        parameters = {
            "filter": args.filter,
            "baseline": args.baseline,
            "statistics": args.statistics,
            "sort": args.sort,
            "entries": args.entries,
            "topics": args.topics,
            "by": args.by,
        }

        collection = hub.collection(args.collection)
        board = collection.leaderboard(*args.measure, rows=args.limit, **parameters)
        show(args, board.rows(), hub)
        _say_cautions(board)
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
        parameters = {
            "measures": args.measure,
            "tests": args.test,
            "baseline": args.baseline,
            "correction": args.correction,
            "topics": args.topics,
            "by": args.by,
            "weights": args.weights,
        }
        parameters = {name: value for name, value in parameters.items() if value}

        collection = hub.collection(args.collection)
        comparison = collection.compare(*args.runs, timeout=args.timeout, **parameters)
        show(args, comparison.groups() if args.by else comparison.rows(), hub)

        for caution in comparison.cautions:
            say(f"{caution['code']}: {caution['message']}")
        for measure in comparison.measures:
            if groups := measure.get("topic_groups"):
                say(f"{measure['measure']}: {groups['sentence']}")
            if weighted := measure.get("weighted"):
                say(f"{measure['measure']}: {weighted['sentence']}")
            for caution in measure["cautions"]:
                say(f"{measure['measure']}: {caution['code']}: {caution['message']}")

    return DONE


def diff(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        collection = hub.collection(args.collection)
        topics = {"topics": args.topics} if args.topics else {}
        difference = collection.difference(args.a, args.b, args.measure, order=args.order, **topics)
        show(args, difference.rows(), hub)
        counts = f"{difference.wins} wins, {difference.ties} ties, {difference.losses} losses"
        say(f"{args.a}: {counts} against {args.b}")

    return DONE
