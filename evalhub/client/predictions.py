"""Predictions that evaluation libraries leave on the disk: those of MTEB and of sentence-transformers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import BadSource
from .sources import tag_of_name

_OF_MTEB = "_predictions.json"
_META = "mteb_model_meta"
# What MTEB calls the revision of a model that has none, and a model without a name.
_NO_REVISION = ("", "no_revision_available")
_NO_NAME = "no_model_name/available"
_REVISION_LETTERS = 7

Results = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Prediction:
    """A run to be made of predictions: its name among them, its collection, tag, results and metadata."""

    name: str
    collection: str
    tag: str
    results: Results
    metadata: dict[str, Any]


def read_sentence_transformers(path: str | Path) -> Results:
    """Return the results that an InformationRetrievalEvaluator wrote with `write_predictions`; BadSource for others."""
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
    """Return the collections of tasks in a TOML file, such as `SciFact = "scifact"` or `"MIRACL/de" = "miracl-de"`."""
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
        found: dict[str, str] = toml.loads(_text_of(path))
    except ValueError as error:
        raise BadSource(f"{path} is not TOML: {error}") from error

    for task, collection in found.items():
        if not isinstance(collection, str):
            raise BadSource(
                f'{path}: {task} is not the name of a collection; write {task} = "collection"'
            )

    return found


def read_mteb(
    folder: str | Path, collections: dict[str, str], tag: str | None = None
) -> tuple[list[Prediction], list[str]]:
    """Return a run for each task of `collections` that MTEB has left predictions of, and the names of the others.

    `collections` has the tasks by `task`, where it has one subset and one split, else by
    `task/subset` or `task/subset/split`. The files may be in folders of their own, one for each
    model. The tag of a run is the model's name with the beginning of its revision, unless another
    is given. Raise BadSource for a name that means several runs or none, and for a model without a
    name.
    """
    made: list[Prediction] = []
    names: dict[Path, list[str]] = {}

    met: set[str] = set()
    for path in sorted(Path(folder).rglob(f"*{_OF_MTEB}")):
        task = path.name.removesuffix(_OF_MTEB)
        for subset, split, about, results in _parts_of(path):
            part = f"{task}/{subset}/{split}"
            names.setdefault(path.parent, []).append(part)

            for name in (name for name in collections if f"{part}/".startswith(f"{name}/")):
                about |= {"mteb_task": task, "mteb_subset": subset, "mteb_split": split}
                made.append(
                    Prediction(name, collections[name], tag or _tag_of(about, path), results, about)
                )
                met.add(part)

    if not names:
        raise BadSource(
            f"{folder} has no file *{_OF_MTEB}; mteb.evaluate(..., prediction_folder=...) writes "
            "them"
        )

    for inner, parts in names.items():
        for name in collections:
            meant = [part for part in parts if f"{part}/".startswith(f"{name}/")]
            if len(meant) > 1:
                raise BadSource(
                    f"{name} means several runs in {inner}: {', '.join(meant)}; name each of them"
                )

    if missing := sorted(set(collections) - {prediction.name for prediction in made}):
        known = ", ".join(sorted({part for parts in names.values() for part in parts}))
        raise BadSource(f"{folder} has no predictions of {', '.join(missing)}; it has {known}")

    return made, sorted({part for parts in names.values() for part in parts} - met)


def _parts_of(path: Path) -> Iterator[tuple[str, str, dict[str, Any], Results]]:
    """Yield subset, split, model and results of each part of a file of MTEB's."""
    try:
        content = json.loads(_text_of(path))
        meta = content.pop(_META)

        about = {"model": str(meta["model_name"]), "revision": str(meta["revision"] or "")}
        for subset, splits in content.items():
            for split, results in splits.items():
                yield subset, split, dict(about), results
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadSource(
            f"{path} is not a file of predictions as MTEB 2 writes them: {error!r}"
        ) from error


def _tag_of(about: dict[str, Any], path: Path) -> str:
    revision = about["revision"]
    if about["model"] == _NO_NAME:
        raise BadSource(f"{path} does not say which model it is of: MTEB found no name; give a tag")
    known = "" if revision in _NO_REVISION else f"-{revision[:_REVISION_LETTERS]}"

    return tag_of_name(about["model"])[: 64 - len(known)] + known


def _text_of(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSource(f"{path} cannot be read: {error}") from error
