"""A stage of a pipeline that submits its results."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas
import pyterrier as pt

from ..agreement import Agreement
from ..collection import Collection
from ..errors import BadSource, EvalHubError
from ..hub import Hub, connect
from ..runs import Run
from ..sources import GENERIC, by_topic, read_source, six_columns, tag_of_name

COLUMNS = ["qid", "docno", "score"]
_log = logging.getLogger("evalhub_client")
# Stages with results that are not submitted yet; pipelines often have no variable.
_unsent: list[Submit] = []


class Published(list[Run]):
    """The runs that were submitted, in the order of the systems.

    `unsent` has the errors of systems that were not submitted. `agreement` has the values of both
    PyTerrier and EvalHub, or None if they were not compared.
    """

    def __init__(self) -> None:
        super().__init__()
        self.unsent: dict[str, EvalHubError] = {}
        self.agreement: Agreement | None = None


class Submit(pt.Transformer):  # type: ignore[misc]
    """A stage that passes its input on unchanged, and submits it as one run.

    That happens on `close()`, at the end of `with`, or on `flush()`, not at the end of the program.
    Results for a topic replace earlier ones for it. Options such as `team`, `description`,
    `metadata` and `if_taken` are those of Collection.submit().
    """

    def __init__(
        self, collection: str | None, tag: str, *, hub: Hub | None = None, **options: Any
    ) -> None:
        (self.tag,) = tags_of([tag])
        self._target: Collection = (hub or connect()).collection(collection)
        self._options = options
        self._frames: list[Any] = []
        # The number of the last frame with a topic.
        self._latest: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"Submit({self._target.slug!r}, {self.tag!r})"

    def __enter__(self) -> Submit:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()

    def transform(self, inp: Any) -> Any:
        """Keep topics, documents and scores; return the same frame."""
        pt.validate.columns(inp, includes=COLUMNS)
        results = inp[COLUMNS].copy()
        results["qid"] = results["qid"].astype(str)
        topics = results["qid"].unique()

        repeated = [topic for topic in topics if topic in self._latest]
        if repeated and not self._same_results(repeated, results):
            more = ["..."] if len(repeated) > 3 else []
            _log.warning(
                "%s: topics came again with other results, which replace the first: %s",
                self,
                ", ".join([*repeated[:3], *more]),
            )

        if len(results):
            self._latest |= dict.fromkeys(topics, len(self._frames))
            self._frames.append(results)
            if self not in _unsent:
                _unsent.append(self)

        return inp

    def transform_outputs(self, input_columns: list[str]) -> list[str]:
        """Tell PyTerrier's inspection that columns stay as they are."""
        pt.validate.columns(input_columns, includes=COLUMNS)
        return input_columns

    def frame(self) -> Any:
        """Return the results: `qid`, `docno`, `score`."""
        frames = [
            frame[frame["qid"].map(self._latest) == number]
            for number, frame in enumerate(self._frames)
        ]
        return pandas.concat(frames) if frames else pandas.DataFrame(columns=COLUMNS)

    def close(self) -> Run | None:
        """Submit the results and return the run, or None without results, which are kept on errors."""
        if not self._frames:
            return None

        with tempfile.TemporaryFile() as file:
            # Topic by topic: runs of many topics do not fit into memory twice.
            for _, rows in self.frame().groupby("qid", sort=False):
                file.write("".join(six_columns(by_topic(rows), self.tag)).encode())
            file.seek(0)
            source = replace(read_source(file, self.tag), name=f"{self.tag}.run")

        run: Run = self._target.submit(source, **self._options)
        self.discard()
        return run

    def discard(self) -> None:
        """Forget the results."""
        self._frames, self._latest = [], {}
        if self in _unsent:
            _unsent.remove(self)

    def _same_results(self, topics: Iterable[str], results: Any) -> bool:
        earlier, later = (
            set(map(tuple, frame[frame["qid"].isin(topics)].to_numpy()))
            for frame in (self.frame(), results)
        )
        return earlier == later


def flush() -> list[Run]:
    """Submit the results of all stages; raise the first error after all were tried."""
    runs, errors = [], []
    for stage in _unsent.copy():
        try:
            runs.append(stage.close())
        except EvalHubError as error:
            errors.append(error)
            _log.warning("%s: %s", stage, error)

    if errors:
        raise errors[0]
    return [run for run in runs if run is not None]


def tags_of(names: Sequence[str]) -> list[str]:
    """Return the tags of systems; raise BadSource for generic names, and names with one tag."""
    tags: dict[str, str] = {}
    for name in names:
        tag = tag_of_name(str(name))
        if tag.lower() in GENERIC:
            raise BadSource(f"{name!r} does not say which run it is; give the systems other names")
        if tag in tags:
            raise BadSource(
                f"{tags[tag]!r} and {name!r} both become the tag {tag}; give the systems other "
                "names"
            )

        tags[tag] = str(name)

    return list(tags)


def submit_each(published: Published, senders: Mapping[str, Callable[[], Run | None]]) -> None:
    """Submit run by run; note and log errors of single runs."""
    for name, send in senders.items():
        try:
            run = send()
            if run is None:
                raise BadSource("the system returned no document")
            published.append(run)
        except EvalHubError as error:
            published.unsent[name] = error
            _log.warning("%s was not submitted: %s", name, error)
