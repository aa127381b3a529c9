"""A collection: what is submitted to it, its leaderboard, its comparisons."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .answers import Answer, Board, Check, Comparison, Difference, Listed
from .batches import Batch, files_of, submit_batch
from .errors import BadSource, Conflict, EvalHubError
from .runs import Run, find_run
from .sending import Call, Pause, Steps
from .sources import Source, read_source

_MOST_SUFFIXES = 100
_IF_TAKEN = ("fail", "skip", "suffix")


class Collection:
    """A test collection by its short name; nothing is asked for before a method is called."""

    def __init__(self, hub: Any, slug: str) -> None:
        self._hub, self.slug = hub, slug
        self.path = f"collections/{slug}/"

    def __repr__(self) -> str:
        return f"Collection({self.slug})"

    @property
    def page(self) -> str:
        """The address of its page."""
        return f"{self._hub.url}/collections/{self.slug}/"

    def info(self) -> Answer:
        """Return its description."""
        return self._hub._run(self._hub._answer(self.path))  # type: ignore[no-any-return]

    def submit(
        self,
        source: Any,
        *,
        tag: str | None = None,
        team: str | None = None,
        description: str = "",
        metadata: dict[str, Any] | None = None,
        known: Any = None,
        dry_run: bool = False,
        key: str | None = None,
        if_taken: str = "fail",
    ) -> Any:
        """Submit a run and return it as it was received, or a Check with `dry_run`.

        `source` is a path, bytes, a file, {topic: {document: score}}, a table, scored documents or a ranx Run. `known`
        is a file of the documents that the user knew. Where the team has another run of the tag, `if_taken` is `fail`
        (Conflict), `skip` (return that run where it is of the same file) or `suffix` (bm25-2). BadFile lists what is
        wrong with the file.
        """
        if if_taken not in _IF_TAKEN:
            raise ValueError(f"if_taken is one of {', '.join(_IF_TAKEN)}, not {if_taken!r}")
        fields = {"description": description, "metadata": metadata, "dry_run": dry_run}
        how: dict[str, Any] = {"team": team, "fields": fields, "key": key, "if_taken": if_taken}
        return self._hub._run(self._submitted(source, tag=tag, known=known, **how))

    def submit_all(
        self,
        sources: str | Path | Iterable[str | Path],
        *,
        team: str | None = None,
        description: str = "",
        metadata: dict[str, Any] | None = None,
        if_taken: str = "fail",
        parallel: int = 4,
        journal: str | Path | None = ".evh-journal.jsonl",
        timeout: float = 3600.0,
        stop: bool = False,
    ) -> Batch:
        """Submit many files: a folder, a pattern such as `runs/*.gz`, or paths. Wait for them unless `timeout` is 0.

        A file that is refused does not stop the others unless `stop`; a quota that is used up, or a server that cannot
        be reached, does. What was sent is in the journal: the same call after a crash goes on where it ended.
        """
        fields = {"description": description, "metadata": metadata}
        how = {"team": team or self._hub.config.team or None, "fields": fields, "if_taken": if_taken}
        options: dict[str, Any] = {"parallel": parallel, "journal": journal, "wait": timeout, "stop": stop}
        return self._hub._run(submit_batch(self, files_of(sources), how, **options))  # type: ignore[no-any-return]

    def run(self, name: str, team: str | None = None) -> Run:
        """Return a run by its id, address, `tag` or `team/tag`."""
        return self._hub._run(find_run(self._hub, self.slug, name, team))  # type: ignore[no-any-return]

    def runs(self, **filters: Any) -> list[Run]:
        """Return the runs of all pages, newest first: `team`, `tag`, `status`, `sha256`, `submitted_after`."""
        return self._hub._run(self._runs(filters))  # type: ignore[no-any-return]

    def leaderboard(self, *measures: str, rows: int | None = None, **parameters: Any) -> Board:
        """Return the leaderboard: all rows, or the first `rows`. `filter`, `statistics`, `baseline`, `sort`, ..."""
        return self._hub._run(self._leaderboard(measures, rows, parameters))  # type: ignore[no-any-return]

    def compare(self, *runs: str | Run, timeout: float = 600.0, **parameters: Any) -> Comparison:
        """Compare runs, or all of them: `measures`, `tests`, `baseline`, `correction`, ...; lists or text with commas.

        A comparison that takes long is made by a worker and waited for.
        """
        return self._hub._run(self._compared(runs, parameters, timeout))  # type: ignore[no-any-return]

    def difference(self, a: str | Run, b: str | Run, measure: str | None = None, **parameters: Any) -> Difference:
        """Return two runs topic by topic."""
        return self._hub._run(self._difference([a, b], measure, parameters))  # type: ignore[no-any-return]

    def upload_qrels(self, path: str | Path, *, activate: bool = True, note: str = "", dry_run: bool = False) -> Answer:
        """Upload a version of the judgements."""
        return self._hub._run(self._qrels(path, activate, note, dry_run))  # type: ignore[no-any-return]

    def upload_topics(self, path: str | Path) -> Answer:
        """Replace the topics by those of a file."""
        return self._hub._run(self._topics(path))  # type: ignore[no-any-return]

    def qrels(self) -> Listed:
        """Return the versions of the judgements."""
        return self._hub._run(self._listed(f"{self.path}qrels/"))  # type: ignore[no-any-return]

    def qrels_file(self, version: int) -> bytes:
        """Return a version of the judgements as a TREC file."""
        return self._hub._run(self._hub._bytes(f"{self.path}qrels/{version}/file/"))  # type: ignore[no-any-return]

    def _submitted(
        self,
        given: Any,
        *,
        tag: str | None = None,
        team: str | None,
        fields: dict[str, Any],
        known: Any = None,
        key: str | None,
        if_taken: str,
    ) -> Steps[Any]:
        source = read_source(given, tag)
        files = {"file": source}
        if known is not None:
            files["known"] = read_source(known)
        base, team = source.tag, team or self._hub.config.team or None
        if if_taken == "skip" and source.sha256:
            asked = {"sha256": source.sha256, **({"team": team} if team else {})}
            for run in (yield from self._runs(asked)):
                if run.tag == base:
                    return run
        number = 1
        while True:
            named = base if number == 1 else f"{base[:60]}-{number}"
            call = self.submission(files, named, team, fields, key or uuid.uuid4().hex)
            try:
                response = yield from self._hub._ask(call)
            except Conflict as error:
                if error.code != "tag_taken" or if_taken != "suffix" or number >= _MOST_SUFFIXES:
                    raise
                number, key = number + 1, None
            else:
                return Check(response.json()) if fields.get("dry_run") else Run(self._hub, response.json())

    def submission(
        self, files: dict[str, Source], tag: str, team: str | None, fields: dict[str, Any], key: str
    ) -> Call:
        """Describe the request that submits a run."""
        form = {"tag": tag, "team": team, "description": fields.get("description")}
        sent = {name: str(value) for name, value in form.items() if value}
        if fields.get("metadata"):
            sent["metadata"] = json.dumps(fields["metadata"])
        if fields.get("dry_run"):
            sent["dry_run"] = "true"
        return Call("POST", f"{self.path}runs/", fields=sent, files=files, key=key)

    def _runs(self, filters: dict[str, Any]) -> Steps[list[Run]]:
        listed = yield from self._hub._pages(f"{self.path}runs/", {"limit": 200, **filters})
        return [Run(self._hub, raw) for raw in listed["results"]]

    def _leaderboard(self, measures: Sequence[str], rows: int | None, parameters: dict[str, Any]) -> Steps[Board]:
        asked = {"limit": min(rows or 200, 200), **parameters}
        if measures:
            asked["measures"] = ",".join(measures)
        if asked.get("baseline"):
            asked["baseline"] = (yield from self._ids([asked["baseline"]]))[0]
        return Board((yield from self._hub._pages(f"{self.path}leaderboard/", asked, rows)))

    def _ids(self, runs: Iterable[str | Run]) -> Steps[list[str]]:
        """Return the ids of runs that are named in any way."""
        found = []
        for run in runs:
            named = run if isinstance(run, Run) else (yield from find_run(self._hub, self.slug, run))
            found.append(str(named.id))
        return found

    def _compared(self, runs: Sequence[str | Run], parameters: dict[str, Any], timeout: float) -> Steps[Comparison]:
        asked = dict(parameters)
        if runs:
            asked["runs"] = ",".join((yield from self._ids(runs)))
        if asked.get("baseline"):
            asked["baseline"] = (yield from self._ids([asked["baseline"]]))[0]
        body = yield from self._hub._json(f"{self.path}comparison/", asked)
        waited = 0.0
        while "measures" not in body:
            status = body["comparison"]
            if status["state"] == "failed":
                raise EvalHubError(f"the comparison failed: {status['error_code']}: {status['error_message']}")
            if waited >= timeout:
                raise EvalHubError(f"the comparison is not made after {timeout:g} s; {status['url']} has it later")
            yield Pause(1.0)
            waited += 1.0
            body = yield from self._hub._json(f"comparisons/{status['id']}/")
        return Comparison(body)

    def _difference(
        self, runs: Sequence[str | Run], measure: str | None, parameters: dict[str, Any]
    ) -> Steps[Difference]:
        asked = {"runs": ",".join((yield from self._ids(runs))), **parameters}
        if measure:
            asked["measure"] = measure
        return Difference((yield from self._hub._json(f"{self.path}difference/", asked)))

    def _qrels(self, path: str | Path, activate: bool, note: str, dry_run: bool) -> Steps[Answer]:
        fields = {"activate": str(activate).lower(), "note": note, "dry_run": str(dry_run).lower()}
        call = Call("POST", f"{self.path}qrels/", fields=fields, files={"file": _file(path)}, key=uuid.uuid4().hex)
        return Answer((yield from self._hub._ask(call)).json())

    def _topics(self, path: str | Path) -> Steps[Answer]:
        return Answer(
            (yield from self._hub._ask(Call("PUT", f"{self.path}topics/", files={"file": _file(path)}))).json()
        )

    def _listed(self, path: str) -> Steps[Listed]:
        return Listed((yield from self._hub._pages(path, {"limit": 200})))


def _file(path: str | Path) -> Source:
    if not Path(path).is_file():
        raise BadSource(f"{path}: there is no such file")
    return read_source(Path(path))
