"""Submit run files, or with --from the predictions that evaluation libraries wrote."""

from __future__ import annotations

import argparse
from typing import Any

from . import commands
from .commands import dry_run, label_at_once, say, wait_and_report
from .errors import EvalHubError, QuotaExceeded, Unavailable, WrongOption
from .hub import Hub
from .predictions import Prediction, read_map, read_mteb, read_sentence_transformers
from .runs import Run


def submit(args: argparse.Namespace) -> int:
    """Submit files or folders, or predictions of MTEB or sentence-transformers."""
    if args.library:
        with commands.hub_of(args) as hub:
            return _submit_predictions(args, hub, commands.submit_options(args))

    if args.collections:
        raise WrongOption("--collections is for predictions, with --from mteb")

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

    candidates = []
    for prediction in predictions:
        options = {**common, "tag": prediction.tag, "drop_identical": args.drop_identical}
        options["label"] = label_at_once(args)
        options["metadata"] = {**prediction.metadata, **common["metadata"]}
        collection = hub.collection(prediction.collection)
        candidates.append((prediction.name, collection, prediction.results, options))

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
