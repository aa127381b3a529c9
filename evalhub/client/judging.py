"""Judgements by a model: the pairs of query and document to judge, and a model's answers as qrels."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .collection import Collection
from .errors import WrongOption

HOLES, JUDGED, ALL = WHICH = ("holes", "judged", "all")
_MAX_LEVEL = 1_000_000
# Levels by topic and document.
Levels = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Answers:
    """A model's levels by topic and document, in the order of its file."""

    levels: Levels

    @property
    def pairs(self) -> int:
        return sum(map(len, self.levels.values()))

    def lines(self) -> Iterator[str]:
        """Yield the answers as lines of a qrels file."""
        for topic, documents in self.levels.items():
            for document, level in documents.items():
                yield f"{topic} 0 {document} {level}\n"


def pairs_to_judge(
    collection: Collection,
    version: int,
    *,
    runs: Iterable[str] = (),
    depth: int = 10,
    which: str = HOLES,
    texts: Iterable[str] | None = None,
) -> Iterator[dict[str, str]]:
    """Yield the pairs of a query and a document that are to be judged.

    `holes` are the documents among the first `depth` of a topic of any of the runs, by default all,
    that the version does not judge; `judged` are those that it judges, and `all` are both. Topics
    are those of the version. `texts` are lines of JSON with the id (`_id`, `doc_id` or `id`),
    `title` and `text` of documents; without them the titles and snippets of the collection are
    used.
    """
    judged = levels_of(collection.qrels(version).file().decode())
    pairs: dict[str, dict[str, None]] = {topic: {} for topic in judged}
    if which in (JUDGED, ALL):
        pairs = {topic: dict.fromkeys(documents) for topic, documents in judged.items()}

    if which in (HOLES, ALL):
        single = collection.info().raw["scores"] == "float32"
        chosen = [collection.run(name) for name in runs] or collection.runs()
        for run in chosen:
            rankings = first_documents(run.file().decode().splitlines(), depth, single=single)
            for topic, ranked in rankings.items():
                if topic in pairs:
                    holes = (doc for doc in ranked if doc not in judged[topic])
                    pairs[topic].update(dict.fromkeys(holes))

    queries = {row["topic_id"]: row["title"] for row in collection.topics().rows()}
    wanted = {document for documents in pairs.values() for document in documents}
    if texts is None:
        described = {
            row["doc_id"]: (row["title"], row["snippet"])
            for row in collection.documents().rows()
            if row["doc_id"] in wanted
        }
    else:
        described = texts_of(texts, wanted)

    for topic, documents in pairs.items():
        for document in documents:
            title, text = described.get(document, ("", ""))
            query = queries.get(topic, "")
            yield {"topic": topic, "query": query, "doc": document, "title": title, "text": text}


def first_documents(
    lines: Iterable[str], depth: int, *, single: bool = False
) -> dict[str, list[str]]:
    """Return the first documents of each topic of a run: by score, then by id, both descending.

    `single` compares scores as float32, as the collection does.
    """
    rows: dict[str, list[tuple[float, bytes]]] = {}
    for line in lines:
        words = line.split()
        if len(words) < 5 or line.startswith("#"):
            continue
        score = float(words[4])
        if single:
            (score,) = struct.unpack("f", struct.pack("f", score))
        rows.setdefault(words[0], []).append((score, words[2].encode()))

    return {
        topic: [document.decode() for _, document in sorted(scored, reverse=True)[:depth]]
        for topic, scored in rows.items()
    }


def levels_of(qrels: str) -> Levels:
    """Return the levels of a qrels file; the highest one of a document with several."""
    levels: Levels = {}
    for line in qrels.splitlines():
        words = line.split()
        if len(words) >= 4:
            documents = levels.setdefault(words[0], {})
            documents[words[2]] = max(int(words[3]), documents.get(words[2], -_MAX_LEVEL))

    return levels


def texts_of(lines: Iterable[str], wanted: set[str]) -> dict[str, tuple[str, str]]:
    """Return title and text of the wanted documents from lines of JSON."""
    texts = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = _object(line, number, "texts")
        document = next((row[name] for name in ("_id", "doc_id", "id") if name in row), None)
        if document is None:
            raise WrongOption(f"texts, line {number}: there is no _id, doc_id or id")
        if str(document) in wanted:
            texts[str(document)] = (str(row.get("title") or ""), str(row.get("text") or ""))

    return texts


def read_answers(lines: Iterable[str]) -> Answers:
    """Read a model's answers: lines of JSON with `topic`, `doc` and `level`.

    Raise WrongOption, which names the line, for one that is no judgement, and for a document with
    two levels.
    """
    levels: Levels = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue

        row = _object(line, number, "answers")
        topic, document, level = (row.get(name) for name in ("topic", "doc", "level"))
        for name, text in (("topic", topic), ("doc", document)):
            if not isinstance(text, str) or not text or text.split() != [text]:
                raise WrongOption(f"answers, line {number}: {name} is an id without blanks")
        if type(level) is not int or abs(level) > _MAX_LEVEL:
            raise WrongOption(f"answers, line {number}: level is a whole number, not {level!r}")

        documents = levels.setdefault(str(topic), {})
        if documents.setdefault(str(document), level) != level:
            raise WrongOption(
                f"answers, line {number}: document {document!r} of topic {topic!r} has level "
                f"{level} here and {documents[str(document)]} before"
            )

    if not levels:
        raise WrongOption("answers: the file is empty; write a line of JSON for each pair")
    return Answers(levels)


def filled(parent: bytes, answers: Answers) -> bytes:
    """Return the judgements of the parent, and the answers behind them.

    Raise WrongOption for an answer about a document that the parent judges.
    """
    judged = levels_of(parent.decode())
    for topic, documents in answers.levels.items():
        for document in documents:
            if document in judged.get(topic, {}):
                raise WrongOption(
                    f"document {document!r} of topic {topic!r} is judged by the parent; send the "
                    "answers with --derivation replaced if all are judged again"
                )

    ending = b"" if not parent or parent.endswith(b"\n") else b"\n"
    return parent + ending + "".join(answers.lines()).encode()


def author_kind_of(parent: Mapping[str, Any] | None, derivation: str, model: str) -> str:
    """Return who judged a version: mixed, where the parent of a filled one has other authors."""
    if parent is None or derivation != "filled":
        return "model"
    return "model" if (parent["author_kind"], parent["model"]) == ("model", model) else "mixed"


def _object(line: str, number: int, file: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise WrongOption(f"{file}, line {number}: this is not JSON: {error}") from error
    if not isinstance(row, dict):
        raise WrongOption(f"{file}, line {number}: write a JSON object")
    return row
