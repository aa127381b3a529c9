"""A stage of a pipeline that submits what went by."""

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
# What has kept something that is not submitted yet; pipelines are often used without being named.
_unsent: list[Submit] = []


class Published(list[Run]):
    """The runs that were submitted, in the order of the systems.

    `unsent` has the error of every system whose run was not. `agreement` has the values of
    PyTerrier beside EvalHub's; None where they were not compared.
    """

    def __init__(self) -> None:
        super().__init__()
        self.unsent: dict[str, EvalHubError] = {}
        self.agreement: Agreement | None = None


class Submit(pt.Transformer):  # type: ignore[misc]
    """A stage that passes its input on unchanged, and submits it as one run on `close()`, at the end of `with`, or on
    `flush()`. Nothing is sent at the end of the program.

    A topic that comes again replaces what was kept of it. What is known of a run (`team`,
    `description`, `metadata`, `if_taken`) is given as to Collection.submit().
    """

    def __init__(
        self, collection: str | None, tag: str, *, hub: Hub | None = None, **options: Any
    ) -> None:
        (self.tag,) = tags_of([tag])
        self._target: Collection = (hub or connect()).collection(collection)
        self._options = options
        self._frames: list[Any] = []
        # The last frame in which a topic was.
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
        kept = inp[COLUMNS].copy()
        kept["qid"] = kept["qid"].astype(str)

        again = [topic for topic in kept["qid"].unique() if topic in self._latest]
        if again and not self._same(again, kept):
            named = ", ".join([*again[:3], *(["..."] if len(again) > 3 else [])])
            _log.warning(
                "%s: topics came again with other results, which replace the first: %s", self, named
            )

        if len(kept):
            self._latest |= dict.fromkeys(kept["qid"].unique(), len(self._frames))
            self._frames.append(kept)
            if self not in _unsent:
                _unsent.append(self)

        return inp

    def transform_outputs(self, input_columns: list[str]) -> list[str]:
        """Tell PyTerrier's inspection that columns stay as they are."""
        pt.validate.columns(input_columns, includes=COLUMNS)
        return input_columns

    def frame(self) -> Any:
        """Return what is kept: `qid`, `docno`, `score`."""
        frames = [
            frame[frame["qid"].map(self._latest) == number]
            for number, frame in enumerate(self._frames)
        ]
        return pandas.concat(frames) if frames else pandas.DataFrame(columns=COLUMNS)

    def close(self) -> Run | None:
        """Submit what is kept and return the run; None where nothing is. If that fails, it is still kept."""
        if not self._frames:
            return None

        with tempfile.TemporaryFile() as file:
            # A topic at a time: runs of many topics do not fit into memory twice.
            for _, rows in self.frame().groupby("qid", sort=False):
                file.write("".join(six_columns(by_topic(rows), self.tag)).encode())
            file.seek(0)
            source = replace(read_source(file, self.tag), name=f"{self.tag}.run")

        run: Run = self._target.submit(source, **self._options)
        self.discard()
        return run

    def discard(self) -> None:
        """Forget what is kept."""
        self._frames, self._latest = [], {}
        if self in _unsent:
            _unsent.remove(self)

    def _same(self, topics: Iterable[str], new: Any) -> bool:
        old = self.frame()
        rows = [
            set(map(tuple, frame[frame["qid"].isin(topics)].to_numpy())) for frame in (old, new)
        ]
        return rows[0] == rows[1]


def flush() -> list[Run]:
    """Submit what every Submit has kept; one that fails does not stop the others, and the first error is raised."""
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
    """Return the tags of systems: their names of letters, digits, `.`, `_` and `-`; BadSource where they tell none."""
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
    """Submit run by run: an error concerns one run, and is kept and logged."""
    for name, send in senders.items():
        try:
            run = send()
            if run is None:
                raise BadSource("the system returned no document")
            published.append(run)
        except EvalHubError as error:
            published.unsent[name] = error
            _log.warning("%s was not submitted: %s", name, error)
