"""Collections as datasets of PyTerrier: pt.get_dataset("evalhub:robust04")."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pandas
import pyterrier as pt

from ..answers import Answer
from ..collection import Collection
from ..errors import EvalHubError, NotFound
from ..hub import connect

# Lists of datasets are asked of every provider: one that is away must not hold them up.
_PATIENCE: dict[str, Any] = {"timeout": 5.0, "retry_for": 0.0}
_log = logging.getLogger("evalhub_client")


def judgements_in(file: bytes) -> dict[str, dict[str, int]]:
    """Return the level of every document by topic, the highest where it is judged for several subtopics."""
    found: dict[str, dict[str, int]] = {}
    for topic, _, document, level in _columns(file, 4):
        levels = found.setdefault(topic, {})
        levels[document] = max(int(level), levels.get(document, int(level)))
    return found


def _columns(file: bytes, number: int) -> Iterator[list[str]]:
    """Yield the first columns of every line that has as many and is no comment.

    Only ASCII white space separates: other spaces belong to ids.
    """
    for line in file.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        columns = line.split()[:number]
        if len(columns) == number and not columns[0].startswith(b"#"):
            yield [column.decode(errors="replace") for column in columns]


class CollectionDatasets(pt.datasets.DatasetProvider):  # type: ignore[misc]
    """What `evalhub:` stands for: the collections of the configured server."""

    def get_dataset(self, name: str) -> CollectionDataset:
        """Return a collection by its short name; KeyError where there is none."""
        collection = connect().collection(name)
        try:
            return CollectionDataset(collection, collection.info())
        except NotFound as error:
            raise KeyError(f"{collection.page}: {error}") from error

    def list_dataset_names(self) -> Iterable[str]:
        """Return the short names of the collections that may be seen; none without a server."""
        try:
            with connect(**_PATIENCE) as hub:
                return [row["slug"] for row in hub.collections().rows()]
        except EvalHubError as error:
            _log.info("the collections of EvalHub are not listed: %s", error)
            return []


class CollectionDataset(pt.datasets.Dataset):  # type: ignore[misc]
    """Topics, judgements and runs of a collection as tables; it has no documents."""

    def __init__(self, collection: Collection, info: Answer) -> None:
        self._collection, self._info = collection, info

    def __repr__(self) -> str:
        return f"CollectionDataset({self._collection.slug!r})"

    def get_topics(self, variant: str | None = None) -> Any:
        """Return `qid` and `query`: the title, or the section of the topics that `variant` names."""
        topics = self._collection.topics().rows()
        if not topics:
            raise NotImplementedError(f"{self!r} has no topics, only judgements")

        texts = [topic["fields"].get(variant) if variant else topic["title"] for topic in topics]
        if all(text is None for text in texts):
            known = sorted({name for topic in topics for name in topic["fields"]})
            raise ValueError(
                f"{self!r} has no topics {variant!r}; there are "
                f"{', '.join(known) or 'titles alone'}"
            )

        rows = [(topic["topic_id"], text or "") for topic, text in zip(topics, texts, strict=True)]
        return pandas.DataFrame(rows, columns=["qid", "query"])

    def get_qrels(self, variant: str | int | None = None) -> Any:
        """Return `qid`, `docno` and `label` of the active judgements, or of the version that `variant` names.

        Blind while the judgements are not released.
        """
        version = variant or self._info.active_qrels
        if not version:
            # The server says in its words that they are blind.
            self._collection.qrels()
            raise NotImplementedError(f"{self!r} has no active judgements")

        judged = judgements_in(self._collection.qrels_file(int(version)))
        rows = [
            (topic, document, level)
            for topic, levels in judged.items()
            for document, level in levels.items()
        ]
        return pandas.DataFrame(rows, columns=["qid", "docno", "label"])

    def get_results(self, variant: str | None = None) -> Any:
        """Return the run of a tag, or of `team/tag`: `qid`, `docno`, `score`, `rank`; `query` where there are topics.

        Ranks are those by which EvalHub evaluates.
        """
        if not variant:
            raise ValueError(f"name a run of {self!r}: get_results('team/tag')")

        file = self._collection.run(variant).file()
        ranked = [
            (topic, document, float(score)) for topic, _, document, _, score in _columns(file, 5)
        ]
        ranked.sort(key=lambda row: (row[2], row[1].encode()), reverse=True)
        found = pandas.DataFrame(ranked, columns=["qid", "docno", "score"]).sort_values(
            "qid", kind="stable"
        )
        found = pt.model.add_ranks(found.reset_index(drop=True))
        has_topics = self._collection.topics().rows()

        return found.merge(self.get_topics(), on="qid", how="left") if has_topics else found

    def info_url(self) -> str:
        """Return the address of its page."""
        return self._collection.page

    def _describe_component(self, component: str) -> bool | None:
        has = {"topics": self._info.raw.get("topics"), "qrels": self._info.raw.get("active_qrels")}
        return True if has.get(component) else None
