"""Import topics and judgements of ir_datasets as a collection; documents are never read."""

from __future__ import annotations

import hashlib
import json
import re
from html import unescape
from importlib import metadata
from typing import Any

from .errors import BadSource, NotFound
from .hub import Hub

# Datasets whose second column is the round in which a document was judged. Datasets with subtopics
# have their own type of judgements; in all others the column means nothing.
_ROUNDS = ("cord19/trec-covid", "cord19/fulltext/trec-covid")
# Each import rewrites the description of the collection from here on.
_MARK = "Imported from ir_datasets"
_MAX_TEXT = 5000


def import_collection(
    hub: Hub, slug: str, dataset_id: str, *, team: str | None = None, visibility: str | None = None
) -> dict[str, Any]:
    """Make or complete a collection from a dataset of ir_datasets; return a row about the upload.

    Nothing is uploaded twice: topics and judgements are compared by the SHA-256 of their files.
    Raise BadSource if ir_datasets is not installed, has no such dataset or cannot read it, or if
    EvalHub does not evaluate its kind of judgements.
    """
    dataset = _load(dataset_id)
    try:
        topics = _topics_of(dataset) if dataset.has_queries() else b""
        qrels, iteration = _qrels_of(dataset, dataset_id) if dataset.has_qrels() else (b"", "")
        levels = dataset.qrels_defs() if qrels else {}
        labels = {str(level): str(text) for level, text in levels.items()}
    except BadSource:
        raise
    except Exception as error:  # a failed download, a file to provide, a licence to agree to
        raise BadSource(f"ir_datasets cannot read {dataset_id}: {error}") from error

    if not topics and not qrels:
        raise BadSource(
            f"{dataset_id} has neither topics nor judgements; one of the datasets below it may "
            "have them"
        )

    collection = hub.collection(slug)
    try:
        info = collection.info().raw
    except NotFound:
        fields = {"team": team, "visibility": visibility}
        fields = {name: value for name, value in fields.items() if value}
        hub.create_collection(slug, name=dataset_id, **fields)
        info = {"description": "", "level_labels": {}}

    topics_sha256, uploaded = hashlib.sha256(topics).hexdigest(), []
    if topics and topics_sha256 not in info["description"]:
        collection.upload_topics(topics)
        uploaded.append("topics")

    qrels_sha256 = hashlib.sha256(qrels).hexdigest()
    versions = collection.qrels().rows()
    if qrels and not any(version["sha256"] == qrels_sha256 for version in versions):
        collection.upload_qrels(qrels, note=f"ir_datasets {dataset_id}"[:500], iteration=iteration)
        uploaded.append("judgements")

    # The description comes last: after a crash, another call uploads the topics once more.
    own_text = info["description"].partition(_MARK)[0]
    source = _describe(dataset, dataset_id, topics_sha256 if topics else "")
    changes: dict[str, Any] = {"description": own_text + source}
    if labels and not info["level_labels"]:
        changes["level_labels"] = labels
    if any(info[name] != value for name, value in changes.items()):
        hub.request("PATCH", collection.path, json=changes)

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


def _describe(dataset: Any, dataset_id: str, topics_sha256: str) -> str:
    """Describe the source of a collection: dataset, description, citations, SHA-256 of topics."""
    fields = dataset.documentation() if hasattr(dataset, "documentation") else {}
    description = unescape(re.sub(r"<[^<>]*>", " ", str(fields.get("desc", ""))))
    citations = ", ".join(fields.get("bibtex_ids", ()))

    parts = [f"{_MARK} {metadata.version('ir_datasets')}, {dataset_id}."]
    parts.append(" ".join(description.split())[:_MAX_TEXT])
    if citations:
        parts.append(f"To be cited: {citations} of ir_datasets' bibliography.")
    if topics_sha256:
        parts.append(f"SHA-256 of its topics: {topics_sha256}")

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
    """Return the queries as lines of JSON, with the default text of ir_datasets as title."""
    lines = []
    for query in dataset.queries_iter():
        fields = _plain(query)
        topic_id = fields.pop("query_id")
        if hasattr(query, "default_text"):
            title = query.default_text()
        else:
            title = next((value for value in fields.values() if isinstance(value, str)), "")

        rest = {name: value for name, value in fields.items() if value not in (None, title, "", [])}
        topic = {"_id": topic_id, "title": title, **rest}
        lines.append(json.dumps(topic, ensure_ascii=False) + "\n")

    return "".join(lines).encode()


def _plain(value: Any) -> Any:
    """Return a record of ir_datasets, with all records in it, as dictionaries and lists."""
    if hasattr(value, "_asdict"):
        return {name: _plain(inner) for name, inner in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _qrels_of(dataset: Any, dataset_id: str) -> tuple[bytes, str]:
    """Return the judgements in the four columns of trec_eval, and what the second column means."""
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
            place = f"query {judgement.query_id}, document {judgement.doc_id}"
            raise BadSource(f"{dataset_id}, {place}: level {level} is not a whole number")

        second = str(getattr(judgement, column)) if column else "0"
        lines.append(f"{judgement.query_id} {second or 0} {judgement.doc_id} {int(level)}\n")

    return "".join(lines).encode(), iteration
