"""Topics and judgements of ir_datasets as a collection, for `evh collections import`. Documents are never read."""

from __future__ import annotations

import hashlib
import json
import re
from html import unescape
from importlib import metadata
from typing import Any

from .errors import BadSource, NotFound
from .hub import Hub

# Their second column is the round in which a document was judged. Datasets with subtopics have a
# type of judgements of their own: in all the rest the column means nothing.
_ROUNDS = ("cord19/trec-covid", "cord19/fulltext/trec-covid")
# What follows this in the description of a collection is rewritten by each import.
_MARK = "Imported from ir_datasets"
_LONGEST = 5000


def import_collection(
    hub: Hub, slug: str, dataset_id: str, *, team: str | None = None, visibility: str | None = None
) -> dict[str, Any]:
    """Make or complete a collection from a dataset of ir_datasets; return what was found, and what was uploaded of it.

    Nothing is uploaded twice: topics and judgements are compared by the SHA-256 of what would be
    sent. Raise BadSource where ir_datasets is not installed, has no such dataset or cannot read it,
    or where EvalHub does not evaluate its kind of judgements.
    """
    dataset = _load(dataset_id)
    try:
        topics = _topics_of(dataset) if dataset.has_queries() else b""
        qrels, iteration = _qrels_of(dataset, dataset_id) if dataset.has_qrels() else (b"", "")
        labels = {
            str(level): str(text) for level, text in (dataset.qrels_defs() if qrels else {}).items()
        }
    except BadSource:
        raise
    except Exception as error:  # a download that fails, a file that its user is to provide, a licence not agreed to
        raise BadSource(f"ir_datasets cannot read {dataset_id}: {error}") from error

    if not topics and not qrels:
        raise BadSource(
            f"{dataset_id} has neither topics nor judgements; one of the datasets below it may "
            "have them"
        )

    collection = hub.collection(slug)
    try:
        known = collection.info().raw
    except NotFound:
        fields = {"team": team, "visibility": visibility}
        hub.create_collection(
            slug, name=dataset_id, **{name: value for name, value in fields.items() if value}
        )
        known = {"description": "", "level_labels": {}}

    digest, uploaded = hashlib.sha256(topics).hexdigest(), []
    if topics and digest not in known["description"]:
        collection.upload_topics(topics)
        uploaded.append("topics")

    same = hashlib.sha256(qrels).hexdigest()
    if qrels and not any(version["sha256"] == same for version in collection.qrels().rows()):
        collection.upload_qrels(qrels, note=f"ir_datasets {dataset_id}"[:500], iteration=iteration)
        uploaded.append("judgements")

    # Written last: a call that was cut off uploads the topics once more.
    own = known["description"].partition(_MARK)[0]
    changed = {"description": own + _about(dataset, dataset_id, digest if topics else "")}
    changed |= {"level_labels": labels} if labels and not known["level_labels"] else {}
    if any(known[name] != value for name, value in changed.items()):
        hub.request("PATCH", collection.path, json=changed)

    counts = {
        "topics": topics.count(b"\n"),
        "judgements": qrels.count(b"\n"),
        "iteration": iteration,
    }
    return {
        "collection": slug,
        "ir_datasets": dataset_id,
        **counts,
        "uploaded": " and ".join(uploaded) or "nothing",
    }


def _about(dataset: Any, dataset_id: str, digest: str) -> str:
    """Say where a collection comes from: the dataset with its description and citations, and the topics' SHA-256."""
    told = dataset.documentation() if hasattr(dataset, "documentation") else {}
    version = metadata.version("ir_datasets")
    text = " ".join(unescape(re.sub(r"<[^<>]*>", " ", str(told.get("desc", "")))).split())
    cited = ", ".join(told.get("bibtex_ids", ()))
    parts = [f"{_MARK} {version}, {dataset_id}.", text[:_LONGEST]]
    parts += [f"To be cited: {cited} of ir_datasets' bibliography."] if cited else []
    parts += [f"SHA-256 of its topics: {digest}"] if digest else []

    return "\n\n".join(part for part in parts if part)


def _load(dataset_id: str) -> Any:
    try:
        import ir_datasets
    except ImportError as error:
        raise BadSource(
            f"install ir_datasets to import from it: pip install ir-datasets ({error})"
        ) from error

    try:
        return ir_datasets.load(dataset_id)
    except KeyError as error:
        raise BadSource(
            f"ir_datasets has no dataset {dataset_id!r}; ir_datasets list shows their names"
        ) from error


def _topics_of(dataset: Any) -> bytes:
    """Return the queries as lines of JSON: the text that ir_datasets takes for the query is the title."""
    lines = []
    for query in dataset.queries_iter():
        record = _plain(query)
        topic_id = record.pop("query_id")
        texts = [value for value in record.values() if isinstance(value, str)]
        title = query.default_text() if hasattr(query, "default_text") else next(iter(texts), "")
        rest = {name: value for name, value in record.items() if value not in (None, title, "", [])}
        lines.append(
            json.dumps({"_id": topic_id, "title": title, **rest}, ensure_ascii=False) + "\n"
        )

    return "".join(lines).encode()


def _plain(value: Any) -> Any:
    """Return a record of ir_datasets, with all records in it, as dictionaries and lists."""
    if hasattr(value, "_asdict"):
        return {name: _plain(inner) for name, inner in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _qrels_of(dataset: Any, dataset_id: str) -> tuple[bytes, str]:
    """Return the judgements in the four columns of trec_eval, and what the second is."""
    kind = dataset.qrels_cls()
    fields = kind._fields
    if "iprob" in fields:
        raise BadSource(
            f"the judgements of {dataset_id} are a sample with probabilities, which EvalHub does "
            "not evaluate"
        )

    if "relevance" not in fields:
        raise BadSource(
            f"the judgements of {dataset_id} have no relevance; they have {', '.join(fields)}"
        )

    column = next((name for name in ("subtopic_id", "iteration") if name in fields), "")
    iteration = "subtopic" if column == "subtopic_id" else "ignore"
    if column == "iteration" and dataset_id.startswith(_ROUNDS):
        iteration = "round"

    lines = []
    for judgement in dataset.qrels_iter():
        level = judgement.relevance
        if int(level) != level:
            where = f"query {judgement.query_id}, document {judgement.doc_id}"
            raise BadSource(f"{dataset_id}, {where}: level {level} is not a whole number")

        second = str(getattr(judgement, column)) if column else "0"
        lines.append(f"{judgement.query_id} {second or 0} {judgement.doc_id} {int(level)}\n")

    return "".join(lines).encode(), iteration
