"""Read predictions that MTEB and sentence-transformers write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import BadSource
from .sources import tag_of_name

_SUFFIX = "_predictions.json"
_META = "mteb_model_meta"
# MTEB writes these for a model without a revision or a name.
_NO_REVISION = ("", "no_revision_available")
_NO_NAME = "no_model_name/available"
_REVISION_LETTERS = 7

Results = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Prediction:
    """Predictions to submit as a run: their name, and collection, tag, results and metadata."""

    name: str
    collection: str
    tag: str
    results: Results
    metadata: dict[str, Any]


def read_sentence_transformers(path: str | Path) -> Results:
    """Return the results that an InformationRetrievalEvaluator wrote with `write_predictions`.

    Raise BadSource for other files.
    """
    results: Results = {}
    for number, line in enumerate(_text_of(path).splitlines(), 1):
        try:
            record = json.loads(line)
            topic = str(record["query_id"])
            ranking = {str(result["corpus_id"]): result["score"] for result in record["results"]}
        except (ValueError, KeyError, TypeError) as error:
            shape = "query_id and results, each with corpus_id and score"
            raise BadSource(
                f"{path}:{number}: a line of predictions has {shape}: {error!r}"
            ) from error

        if topic in results:
            raise BadSource(f"{path}:{number}: query {topic} is there twice")

        results[topic] = ranking

    return results


def read_map(path: str | Path) -> dict[str, str]:
    """Return the collections of tasks in a TOML file with lines such as `SciFact = "scifact"`."""
    try:
        import tomllib as toml
    except ImportError:
        try:
            import tomli as toml  # type: ignore[no-redef]
        except ImportError as error:
            raise BadSource(
                f"{path} can be read with Python 3.11, or where tomli is installed"
            ) from error

    try:
        collections: dict[str, str] = toml.loads(_text_of(path))
    except ValueError as error:
        raise BadSource(f"{path} is not TOML: {error}") from error

    for task, collection in collections.items():
        if not isinstance(collection, str):
            raise BadSource(
                f'{path}: {task} is not the name of a collection; write {task} = "collection"'
            )

    return collections


def read_mteb(
    folder: str | Path, collections: dict[str, str], tag: str | None = None
) -> tuple[list[Prediction], list[str]]:
    """Return the predictions of MTEB for each task of `collections`, and the names of other ones.

    `collections` has the tasks by `task` if there is one subset and one split, otherwise by
    `task/subset` or `task/subset/split`. The files may be in several folders, one for each model.
    The tag of a run is the model's name with the beginning of its revision, unless `tag` is given.
    Raise BadSource for a name that matches several runs or none, and for a model without a name.
    """
    predictions: list[Prediction] = []
    names: dict[Path, list[str]] = {}

    used: set[str] = set()
    for path in sorted(Path(folder).rglob(f"*{_SUFFIX}")):
        task = path.name.removesuffix(_SUFFIX)
        for part in _read_parts(path):
            part_name = f"{task}/{part.subset}/{part.split}"
            names.setdefault(path.parent, []).append(part_name)

            for name, collection in collections.items():
                if not f"{part_name}/".startswith(f"{name}/"):
                    continue

                metadata = {"model": part.model, "revision": part.revision, "mteb_task": task}
                metadata |= {"mteb_subset": part.subset, "mteb_split": part.split}
                part_tag = tag or _tag_of(part, path)
                predictions.append(Prediction(name, collection, part_tag, part.results, metadata))
                used.add(part_name)

    if not names:
        raise BadSource(
            f"{folder} has no file *{_SUFFIX}; mteb.evaluate(..., prediction_folder=...) writes "
            "them"
        )

    for inner, parts in names.items():
        for name in collections:
            matches = [part for part in parts if f"{part}/".startswith(f"{name}/")]
            if len(matches) > 1:
                raise BadSource(
                    f"{name} means several runs in {inner}: {', '.join(matches)}; name each of them"
                )

    all_names = {part for parts in names.values() for part in parts}
    if missing := sorted(set(collections) - {prediction.name for prediction in predictions}):
        raise BadSource(
            f"{folder} has no predictions of {', '.join(missing)}; it has "
            f"{', '.join(sorted(all_names))}"
        )

    return predictions, sorted(all_names - used)


@dataclass(frozen=True)
class _Part:
    """One subset and split of a task, as MTEB writes it."""

    subset: str
    split: str
    model: str
    revision: str
    results: Results


def _read_parts(path: Path) -> Iterator[_Part]:
    """Yield the parts of a file of MTEB."""
    try:
        content = json.loads(_text_of(path))
        meta = content.pop(_META)
        model, revision = str(meta["model_name"]), str(meta["revision"] or "")
        for subset, splits in content.items():
            for split, results in splits.items():
                yield _Part(subset, split, model, revision, results)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadSource(
            f"{path} is not a file of predictions as MTEB 2 writes them: {error!r}"
        ) from error


def _tag_of(part: _Part, path: Path) -> str:
    if part.model == _NO_NAME:
        raise BadSource(f"{path} does not say which model it is of: MTEB found no name; give a tag")

    suffix = "" if part.revision in _NO_REVISION else f"-{part.revision[:_REVISION_LETTERS]}"
    return tag_of_name(part.model)[: 64 - len(suffix)] + suffix


def _text_of(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSource(f"{path} cannot be read: {error}") from error
