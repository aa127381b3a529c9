"""Submit run files, or with --from the predictions that evaluation libraries wrote."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from . import commands
from .commands import dry_run, label_at_once, say, wait_and_report
from .errors import EvalHubError, QuotaExceeded, Unavailable, WrongOption
from .hub import Hub
from .predictions import Prediction, read_map, read_mteb, read_sentence_transformers
from .runs import Run
from .suites import match_files

# The name of a source, its collection, itself, and the options of its submission.
Candidate = tuple[str, Any, Any, dict[str, Any]]


def submit(args: argparse.Namespace) -> int:
    """Submit files or folders, those of a suite, or predictions of MTEB or sentence-transformers."""
    if args.suite:
        with commands.hub_of(args) as hub:
            return _submit_suite(args, hub, commands.submit_options(args))

    if args.library:
        with commands.hub_of(args) as hub:
            return _submit_predictions(args, hub, commands.submit_options(args))

    if args.collections:
        raise WrongOption("--collections is for predictions, with --from mteb")

    if args.values:
        return commands.submit_values(args)

    if not args.files:
        raise WrongOption("name the files or folders to submit: evh submit C FILE...")
    return commands.submit(args)


def _predictions_of(args: argparse.Namespace, hub: Hub) -> list[Prediction]:
    """Return the predictions to submit; for MTEB the argument COLLECTION is a folder."""
    if args.library == "mteb":
        if args.files or not args.collections:
            raise WrongOption("write evh submit --from mteb FOLDER --collections map.toml")

        predictions, unmapped = read_mteb(args.collection, read_map(args.collections), args.tag)
        if unmapped:
            say(f"Not in {args.collections}, so not sent: {', '.join(unmapped)}.")

        return predictions

    # With a configured collection the file may be the only argument.
    slug, path = hub.config.collection, args.collection
    if args.files:
        slug, path = args.collection, args.files[0]

    if len(args.files) > 1 or not slug or not args.tag:
        raise WrongOption(
            "write evh submit C --from st FILE --tag MODEL: the file does not say whose rankings "
            "it has"
        )
    return [Prediction(path, slug, args.tag, read_sentence_transformers(path), {})]


def _submit_predictions(args: argparse.Namespace, hub: Hub, common: dict[str, Any]) -> int:
    """Submit predictions with the options that all of them have."""
    if args.known or args.follow:
        raise WrongOption("--known and --follow are for run files, not for predictions")

    predictions = _predictions_of(args, hub)
    if args.label and len(predictions) > 1:
        raise WrongOption(f"--label is of one run, and these are {len(predictions)}")

    candidates: list[Candidate] = []
    for prediction in predictions:
        options = {**common, "tag": prediction.tag, "drop_identical": args.drop_identical}
        options["label"] = label_at_once(args)
        options["metadata"] = {**prediction.metadata, **common["metadata"]}
        collection = hub.collection(prediction.collection)
        candidates.append((prediction.name, collection, prediction.results, options))

    return _send(args, hub, candidates)


def _submit_suite(args: argparse.Namespace, hub: Hub, common: dict[str, Any]) -> int:
    """Submit the runs of a folder; the argument COLLECTION is the folder.

    A file that names its collection is named after its folder where no option names it: it is the
    same system in all collections.
    """
    for name in ("library", "collections", "known", "follow", "label"):
        if getattr(args, name):
            option = "from" if name == "library" else name
            raise WrongOption(f"leave --{option} out: --suite submits run files of one system")
    if args.files:
        raise WrongOption("name one folder: evh submit --suite SUITE FOLDER")

    names = [row["collection"] for row in hub.suite(args.suite).info().rows()]
    files = match_files(names, args.collection)
    if missing := [name for name in names if name not in {file.collection for file in files}]:
        say(f"Without a file, so that the system has no rank: {', '.join(missing)}.")

    tag = args.tag or (None if args.system else Path(args.collection).resolve().name)
    candidates: list[Candidate] = []
    for file in files:
        options = {**common, "system": args.system, "drop_identical": args.drop_identical}
        options["tag"] = args.tag if file.by_folder else tag
        candidates.append((str(file.path), hub.collection(file.collection), file.path, options))
    return _send(args, hub, candidates)


def _send(args: argparse.Namespace, hub: Hub, candidates: list[Candidate]) -> int:
    """Submit runs to their collections one by one, or only check them."""
    if args.dry_run:
        return dry_run(args, hub, candidates)

    runs: list[Run] = []
    errors: dict[str, EvalHubError] = {}
    for name, collection, results, options in candidates:
        try:
            runs.append(collection.submit(results, **options))
        except EvalHubError as error:
            errors[name] = error
            if args.stop or isinstance(error, QuotaExceeded | Unavailable):
                break

    return wait_and_report(args, hub, runs, errors)
