"""What each command of `evh` does: a function of its arguments that returns an exit status."""

from __future__ import annotations

import argparse
import getpass
import json
import sys
import time
import webbrowser
from pathlib import Path
from typing import Any

from .answers import Means
from .batches import files_of
from .config import Config, checked_url, read_config, write_profile
from .errors import BadFile, BadSource, Blind, EvalHubError, EvaluationFailed, QuotaExceeded, TimedOut, Unavailable
from .hub import Hub
from .output import rendered
from .runs import ON_THE_WAY, Run, run_id_in, wait_for

DONE, FAILED, REFUSED, LIMITED, NOT_EVALUATED, LATE = 0, 1, 5, 6, 7, 8
_JUDGED = "Judged@10"


def hub_of(args: argparse.Namespace) -> Hub:
    """Return the server that the options, the environment and the file of profiles name."""
    return Hub(read_config(url=args.url, profile=args.profile))


def show(args: argparse.Namespace, rows: list[dict[str, Any]], hub: Hub | None = None) -> None:
    """Write rows in the format that is asked for: a table on a terminal, columns with tabs in a pipe."""
    kept = hub.config.format if hub else ""
    sys.stdout.write(rendered(rows, args.format or kept or ("table" if sys.stdout.isatty() else "tsv")))


def say(text: str) -> None:
    """Tell a person something that is no result."""
    sys.stderr.write(f"{text}\n")


def login(args: argparse.Namespace) -> int:
    """Ask for a token without showing it, see whose it is, and keep it in the file of profiles."""
    url = checked_url(args.url, insecure=args.insecure) if args.url else read_config(profile=args.profile).url
    token = (getpass.getpass("Token: ") if sys.stdin.isatty() else sys.stdin.readline()).strip()
    profile = args.profile or "default"
    with Hub(Config(url, token, profile)) as hub:
        me = hub.me()
    values = {"url": url, "token": token, **({"insecure": "true"} if args.insecure else {})}
    path = write_profile(profile, values)
    teams = ", ".join(f"{team['slug']} ({team['role']})" for team in me.teams)
    scopes, expires = ", ".join(me.token["scopes"]), me.token["expires_at"] or "never"
    say(f"Logged in to {url} as {me.username}. Teams: {teams}. Scopes: {scopes}. Expires: {expires}. Kept in {path}.")
    return DONE


def logout(args: argparse.Namespace) -> int:
    profile = args.profile or "default"
    if args.revoke:
        with hub_of(args) as hub:
            hub.request("DELETE", f"tokens/{hub.me().token['key']}/")
    path = write_profile(profile, {"token": ""})
    say(f"The token of profile {profile} is gone from {path}.")
    return DONE


def whoami(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        me = hub.me()
        token = me.token or {}
        teams = " ".join(f"{team['slug']}:{team['role']}" for team in me.teams)
        scopes = " ".join(token.get("scopes", []))
        row = {"url": hub.url, "user": me.username, "teams": teams, "token": token.get("key"), "scopes": scopes}
        show(args, [{**row, "expires_at": token.get("expires_at")}], hub)
    return DONE


def collections(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        if args.collection:
            show(args, hub.collection(args.collection).info().rows(), hub)
        else:
            fields = ("slug", "name", "team", "visibility", "blind", "active_qrels", "topics", "runs")
            show(args, [{name: row[name] for name in fields} for row in hub.collections().rows()], hub)
    return DONE


def submit(args: argparse.Namespace) -> int:
    metadata = dict(pair.partition("=")[::2] for pair in args.meta)
    with hub_of(args) as hub:
        collection = hub.collection(args.collection)
        how: dict[str, Any] = {"team": args.team, "description": args.description, "metadata": metadata}
        how["if_taken"] = args.if_taken
        if args.follow:
            return _follow(args, collection, how)
        files = files_of(args.files)
        if args.tag and len(files) > 1:
            raise BadSource(f"--tag names one run, and these are {len(files)} files")
        if args.dry_run:
            return _dry_run(args, collection, files, how)
        runs: list[Run] = []
        errors: dict[str, EvalHubError] = {}
        if len(files) == 1:
            runs.append(collection.submit(files[0], tag=args.tag, **how))
        else:
            sending: dict[str, Any] = {"parallel": args.parallel, "journal": args.journal, "stop": args.stop}
            batch = collection.submit_all(files, **how, **sending, timeout=0.0)
            runs, errors = batch.runs, {**batch.refused, **batch.unsent}
        # Of a server that is away nothing more is asked: what was sent is listed.
        waits = args.wait and not any(isinstance(error, Unavailable) for error in errors.values())
        late = 0
        if waits:
            try:
                hub._run(wait_for(hub, runs, args.timeout))
            except TimedOut as error:
                say(f"evh: {error}")
                late = LATE
        return _report(args, hub, runs, errors, means=waits) or late


def _dry_run(args: argparse.Namespace, collection: Any, files: list[Path], how: dict[str, Any]) -> int:
    rows, status = [], DONE
    for path in files:
        try:
            checked = collection.submit(path, tag=args.tag, dry_run=True, **how)
        except (BadFile, BadSource) as error:
            say(str(error))
            status = REFUSED
        else:
            warned = " ".join(sorted(checked.warnings["counts"])) if isinstance(checked.warnings, dict) else ""
            fields = ("tag", "lines", "topics", "documents")
            rows.append({"file": str(path), **{name: checked.raw[name] for name in fields}, "warnings": warned})
    show(args, rows)
    return status


def _report(
    args: argparse.Namespace, hub: Hub, runs: list[Run], errors: dict[str, EvalHubError], *, means: bool
) -> int:
    """Write a row for each run, with its means where it is evaluated; the worst that happened is the status."""
    rows = []
    for run in runs:
        row = {"tag": run.tag, "state": run.state, **(_figures(run) if means else {})}
        rows.append({**row, "id": run.id, "page": run.page})
    if args.quiet:
        sys.stdout.write("".join(f"{run.id}\n" for run in runs))
    else:
        show(args, rows, hub)
    for path, error in errors.items():
        say(f"{path}: {error}")
    if any(isinstance(error, QuotaExceeded) for error in errors.values()):
        return LIMITED
    if any(isinstance(error, Unavailable) for error in errors.values()):
        return FAILED
    if errors:
        return REFUSED
    return NOT_EVALUATED if any(run.state in ("failed", "cancelled") for run in runs) else DONE


def _figures(run: Run) -> dict[str, Any]:
    """Return the means of an evaluated run, with its coverage: what explains most differences from other programs."""
    if run.state != "evaluated":
        return {"code": run.status["code"]} if run.status["code"] else {}
    means: Means = run.means()
    covered = means.coverage
    judged = run.means(_JUDGED)
    return {**dict(means), "topics": f"{covered['answered']}/{covered['judged']}", _JUDGED: judged[_JUDGED]}


def _follow(args: argparse.Namespace, collection: Any, how: dict[str, Any]) -> int:
    """Submit what appears in the folders, each file when its size stands still between two looks."""
    sizes: dict[Path, int] = {}
    done: set[Path] = set()
    say("Waiting for files; Ctrl-C ends this.")
    while True:
        found = [path for one in args.files for path in (files_of(one) if Path(one).exists() else [])]
        now = {path: path.stat().st_size for path in found if path not in done}
        ready = [path for path, size in now.items() if size and sizes.get(path) == size]
        sizes = now
        if ready:
            batch = collection.submit_all(ready, **how, journal=args.journal, timeout=0.0)
            done.update(ready)
            for row in batch.rows():
                sys.stdout.write(f"{row['state']}\t{row['tag']}\t{row['id'] or row['error']}\n")
            sys.stdout.flush()
        time.sleep(1.0)


def _runs_of(args: argparse.Namespace, hub: Hub) -> list[Run]:
    """Return the runs that are named, or all of the collection."""
    if args.runs:
        return [hub.run(name, args.collection) for name in args.runs]
    slug = args.collection or hub.config.collection
    if not slug:
        raise BadSource("name runs, or a collection with -c")
    return hub.collection(slug).runs(**({"team": args.team} if args.team else {}))


def status(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        show(args, [row for run in _runs_of(args, hub) for row in run.rows()], hub)
    return DONE


def watch(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        runs, before = _runs_of(args, hub), ""
        while True:
            counts: dict[str, int] = {}
            for run in runs:
                counts[run.state] = counts.get(run.state, 0) + 1
            line = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
            if line != before:
                say(line)
            before = line
            waiting = [run for run in runs if run.state in ON_THE_WAY]
            if not waiting:
                show(args, [row for run in runs for row in run.rows()], hub)
                return NOT_EVALUATED if any(run.state == "failed" for run in runs) else DONE
            time.sleep(1.0)
            known = {run.id: run for run in waiting}
            for first in range(0, len(waiting), 200):
                asked = ",".join(run.id for run in waiting[first : first + 200])
                for state in hub.request("GET", "runs/", params={"id": asked}).json()["runs"]:
                    known[state["id"]].raw["status"] = state


def wait(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        runs = [hub.run(name, args.collection) for name in args.runs]
        hub._run(wait_for(hub, runs, args.timeout))
        for run in runs:
            if run.state in ("failed", "cancelled"):
                raise EvaluationFailed(run)
    return DONE


def values(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        found = hub.run(args.run, args.collection).values(*args.measure)
        show(args, found.rows() if args.per_topic else Means(found.raw).rows(), hub)
    return DONE


def leaderboard(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        asked = {"filter": args.filter, "baseline": args.baseline, "statistics": args.statistics, "sort": args.sort}
        board = hub.collection(args.collection).leaderboard(*args.measure, rows=args.limit, **asked)
        show(args, board.rows(), hub)
        if board.provisional:
            say("Some runs are still to be evaluated; ranks may change.")
    return DONE


def compare(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        asked = {"measures": args.measure, "tests": args.test, "baseline": args.baseline, "correction": args.correction}
        kept = {name: value for name, value in asked.items() if value}
        found = hub.collection(args.collection).compare(*args.runs, timeout=args.timeout, **kept)
        show(args, found.rows(), hub)
        for caution in found.cautions:
            say(f"{caution['code']}: {caution['message']}")
    return DONE


def diff(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        found = hub.collection(args.collection).difference(args.a, args.b, args.measure, order=args.order)
        show(args, found.rows(), hub)
        say(f"{args.a}: {found.wins} wins, {found.ties} ties, {found.losses} losses against {args.b}")
    return DONE


def pull(args: argparse.Namespace) -> int:
    """Write the run files with their values into a folder, the judgements where they may be read, and a manifest."""
    folder = Path(args.to)
    folder.mkdir(parents=True, exist_ok=True)
    with hub_of(args) as hub:
        collection = hub.collection(args.collection)
        manifest: dict[str, Any] = {"url": hub.url, "collection": collection.info().raw, "runs": []}
        for run in [collection.run(name) for name in args.runs] or collection.runs():
            name = f"{run.team}-{run.tag}"
            (folder / f"{name}.run").write_bytes(run.file())
            if run.state == "evaluated":
                try:
                    (folder / f"{name}.values.json").write_text(json.dumps(run.values().raw), encoding="utf-8")
                except Blind as error:
                    say(f"{name}: {error}")
            manifest["runs"].append({"file": f"{name}.run", **run.raw})
        version = manifest["collection"]["active_qrels"]
        if version:
            (folder / f"{collection.slug}-v{version}.qrels").write_bytes(collection.qrels_file(version))
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    say(f"{len(manifest['runs'])} runs are in {folder}.")
    return DONE


def open_page(args: argparse.Namespace) -> int:
    with hub_of(args) as hub:
        page = hub.collection(args.name).page
        if run_id_in(args.name) or args.collection:
            page = hub.run(args.name, args.collection).page
    sys.stdout.write(f"{page}\n")
    webbrowser.open(page)
    return DONE


def api(args: argparse.Namespace) -> int:
    """Send any request, with the token and the retries of all others, and write what it is answered."""
    fields = dict(pair.partition("=")[::2] for pair in args.field)
    reading = args.method.upper() in ("GET", "HEAD", "DELETE")
    path = args.path.partition("/api/v1/")[2] or args.path
    with hub_of(args) as hub:
        response = hub.request(args.method, path, params=fields if reading else None, json=None if reading else fields)
    sys.stdout.buffer.write(response.content + (b"" if response.content.endswith(b"\n") else b"\n"))
    return DONE
