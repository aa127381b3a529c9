"""A collection: its runs, judgements and topics, its leaderboard, its comparisons."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal, overload
from urllib.parse import quote, urlencode

from .answers import Answer, Board, Check, Comparison, Difference, Listed
from .batches import Batch, files_of, submit_batch
from .display import Chart
from .errors import BadRule, EvalHubError, TimedOut
from .experiments import ids_of
from .gate import evaluate_gate, question_of
from .metadata import Metadata, metadata_of
from .rules import Rule
from .runs import Run, find_run
from .sending import Call, Connection, parameters_of
from .sessions import Sessions
from .sources import Source, read_file, read_qrels
from .studies import CollectionStudies, as_list
from .submitting import lineage_of, submit_run
from .upload_warnings import warn, warn_of_report
from .verdicts import Verdict

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
# A label is moved whatever it names.
ANY: Any = object()
# More ids make an address that is too long.
_MAX_IDS_IN_ADDRESS = 100
_LISTS = ("measures", "tests", "runs")
_IF_TAKEN = ("fail", "skip", "suffix", "version")
# Parameters of a leaderboard that its chart of means has, too.
_CHART_PARAMETERS = ("measures", "sort", "order", "filter", "entries", "scores", "topics")
# Parameters of a comparison that its charts do not have.
_PAGING = ("run", "sort", "limit", "offset")


class Collection(CollectionStudies):
    """A test collection by its short name; nothing is sent before a method is called."""

    def __init__(self, hub: Connection, slug: str) -> None:
        self._hub, self.slug = hub, slug
        self.path = f"collections/{slug}/"
        self.sessions = Sessions(hub, slug)

    def __repr__(self) -> str:
        return f"Collection({self.slug})"

    def info(self) -> Answer:
        """Return its description."""
        return Answer(self._hub.read(self.path))

    @overload
    def submit(
        self,
        source: Any,
        *,
        tag: str | None = None,
        team: str | None = None,
        description: str = "",
        metadata: Metadata = None,
        system: str | None = None,
        replicate: str = "",
        label: str | None = None,
        lineage: dict[str, Any] | None = None,
        known: Any = None,
        passages: str = "",
        dry_run: Literal[False] = False,
        key: str | None = None,
        if_taken: str = "fail",
        wait_for_quota: bool = False,
        drop_identical: bool = False,
        experiment: str = "",
    ) -> Run: ...

    @overload
    def submit(
        self,
        source: Any,
        *,
        tag: str | None = None,
        team: str | None = None,
        description: str = "",
        metadata: Metadata = None,
        system: str | None = None,
        replicate: str = "",
        label: str | None = None,
        lineage: dict[str, Any] | None = None,
        known: Any = None,
        passages: str = "",
        dry_run: Literal[True],
        key: str | None = None,
        if_taken: str = "fail",
        wait_for_quota: bool = False,
        drop_identical: bool = False,
        experiment: str = "",
    ) -> Check: ...

    def submit(
        self,
        source: Any,
        *,
        tag: str | None = None,
        team: str | None = None,
        description: str = "",
        metadata: Metadata = None,
        system: str | None = None,
        replicate: str = "",
        label: str | None = None,
        lineage: dict[str, Any] | None = None,
        known: Any = None,
        passages: str = "",
        dry_run: bool = False,
        key: str | None = None,
        if_taken: str = "fail",
        wait_for_quota: bool = False,
        drop_identical: bool = False,
        experiment: str = "",
    ) -> Run | Check:
        """Submit a run and return it as it was received, or a Check with `dry_run`.

        - `source` is a path, bytes, a file, {topic: {document: score}}, a table, scored documents
          or a ranx Run; or None, with a tag, for a run without a ranking, which has values from
          tables alone.
        - `known` is a file of the documents that the user knew.
        - `passages` is the text between document and passage in ids such as D1#7, of a run that ranks
          passages where documents are judged: each document gets its best passage.
        - `metadata` is a dictionary, or "auto" for the git commit, the versions of Python and
          packages, and the command line.
        - `if_taken` says what to do if another run of the team has the tag: `fail` (Conflict),
          `skip` (return that run if it has the same file), `suffix` (bm25-2) or `version` (the next
          version of its system, bm25-v2).
        - `system`: the run becomes the next version of it.
        - `replicate`: the run is a replicate of the system of this name, such as a seed or a fold;
          leaderboards have one row for it, with the means over its replicates for each topic.
          Without a `tag` it is called after its file.
        - `experiment`, the short name or id of one of the team: the run is put into it.
        - `label`, a name of the team, is moved to the run at once.
        - `lineage` has the `parents` and `links` of the run.
        - `wait_for_quota` sleeps until midnight UTC if the team's quota is used up.
        - `drop_identical` leaves out documents that have the id of their topic, as BEIR does, and
          notes their number in the metadata; otherwise there is a warning.

        BadFile lists what is wrong with the file.
        """
        fields = {
            "description": description,
            "metadata": metadata_of(metadata),
            "dry_run": dry_run,
            "system": system,
            "replicate": replicate,
            "experiment": experiment,
            "label": label,
            "passages": passages,
            **lineage_of(lineage),
        }
        return submit_run(
            self,
            source,
            tag=tag,
            team=team,
            fields=fields,
            known=known,
            key=key,
            if_taken=_check_if_taken(if_taken),
            wait_for_quota=wait_for_quota,
            drop_identical=drop_identical,
        )

    def submit_all(
        self,
        sources: str | Path | Iterable[str | Path],
        *,
        team: str | None = None,
        description: str = "",
        metadata: Metadata = None,
        if_taken: str = "fail",
        parallel: int = 4,
        journal: str | Path | None = ".evh-journal.jsonl",
        timeout: float = 3600.0,
        stop: bool = False,
        wait_for_quota: bool = False,
        experiment: str = "",
        passages: str = "",
        replicate: str = "",
    ) -> Batch:
        """Submit a folder, a pattern such as `runs/*.gz`, or paths; wait unless `timeout` is 0.

        A file that is refused does not stop the others unless `stop`; what concerns them all does:
        a quota that is used up (`wait_for_quota` sleeps until it is not), a token that is not
        allowed, a server that cannot be reached. What was sent is in the journal: the same call
        after a crash goes on where it ended. With a `replicate` name all are replicates of one system,
        such as its seeds, and called after their files.
        """
        fields = {"description": description, "metadata": metadata_of(metadata)}
        # An empty field would change the identity of files in earlier journals.
        if experiment:
            fields["experiment"] = experiment
        if passages:
            fields["passages"] = passages
        if replicate:
            fields["replicate"] = replicate

        return submit_batch(
            self,
            files_of(sources),
            team=team or self._hub.config.team or None,
            fields=fields,
            if_taken=_check_if_taken(if_taken),
            wait_for_quota=wait_for_quota,
            parallel=parallel,
            journal=journal,
            timeout=timeout,
            stop=stop,
        )

    def run(self, name: str, team: str | None = None) -> Run:
        """Return a run by its id, address, `tag`, `team/tag` or `label:name`."""
        return find_run(self._hub, self.slug, name, team)

    def runs(self, **filters: Any) -> list[Run]:
        """Return the runs of all pages, newest first.

        Filters are `team`, `tag`, `status`, `sha256` and `submitted_after`.
        """
        listed = self._hub.pages(f"{self.path}runs/", filters)
        return [Run(self._hub, raw) for raw in listed["results"]]

    def leaderboard(self, *measures: Any, rows: int | None = None, **parameters: Any) -> Board:
        """Return the leaderboard: all rows, or the first `rows`.

        Parameters are `filter`, `statistics`, `baseline`, `sort`, ...
        """
        if measures:
            parameters["measures"] = ",".join(map(str, measures))
        if parameters.get("baseline"):
            parameters["baseline"] = self._baselines(parameters["baseline"])

        body = self._hub.pages(f"{self.path}leaderboard/", parameters, rows)
        question = {name: parameters[name] for name in _CHART_PARAMETERS if name in parameters}
        return Board(body, self.page, partial(self.chart, **question))

    def compare(self, *runs: str | Run, timeout: float = 600.0, **parameters: Any) -> Comparison:
        """Compare runs, or all of them; wait for a comparison that a worker computes.

        Parameters are `measures`, `tests`, `baseline`, `correction`, ...: lists, or text with
        commas.
        """
        question = {name: value for name, value in parameters.items() if value is not None}
        if runs:
            question["runs"] = self._ids(runs)
        if question.get("baseline"):
            question["baseline"] = self._baselines(question["baseline"])

        if len(runs) > _MAX_IDS_IN_ADDRESS:
            lists = {name: as_list(question[name]) for name in _LISTS if name in question}
            call = Call(
                "POST",
                f"{self.path}comparison/",
                json={**question, **lists},
                key=uuid.uuid4().hex,
            )
            body = self._hub.send(call).json()
        else:
            body = self._hub.read(f"{self.path}comparison/", question)

        # A worker computes a long comparison; until then there is only its state.
        waited = 0.0
        while "measures" not in body:
            status = body["comparison"]
            if status["state"] == "failed":
                raise EvalHubError(
                    f"the comparison failed: {status['error_code']}: {status['error_message']}"
                )

            if waited >= timeout:
                raise TimedOut(
                    [],
                    timeout,
                    f"the comparison is not made after {timeout:g} s; {status['url']} has it later",
                )

            if waited or status["state"] != "compared":
                time.sleep(1.0)
                waited += 1.0

            body = self._hub.read(f"comparisons/{status['id']}/")

        if stored := body.get("comparison"):
            # A comparison that a worker computed has its own page and charts.
            path = f"comparisons/{stored['id']}/"
            charts = partial(self._hub.draw, f"{path}charts/")
            return Comparison(body, f"{self._hub.url}/{path}", charts)

        query = {
            name: value for name, value in parameters_of(question).items() if name not in _PAGING
        }
        page = f"{self.page}comparison/?{urlencode(query)}"
        return Comparison(body, page, partial(self.chart, **query))

    def gate(
        self,
        run: str | Run,
        baseline: str | Run | None,
        rules: str | Rule | Iterable[str | Rule],
        *,
        test: str = "paired_t",
        alpha: float = 0.05,
        timeout: float = 600.0,
        no_baseline: str = "fail",
    ) -> Verdict:
        """Check a run against a baseline by rules, after both are evaluated.

        The baseline is an id, `tag`, `team/tag`, `label:main`, or `previous`, the one before it. A
        rule is `MEASURE no-worse-than MARGIN` (a number, or a share of the baseline's mean such as
        2%), `MEASURE no-significant-drop`, `MEASURE no-drop` or `MEASURE at-least X`. Raise NotFound
        without such a baseline, unless `no_baseline="pass"`.
        """
        question = question_of(rules, test, alpha, timeout)
        return evaluate_gate(self, run, baseline, question, no_baseline=no_baseline)

    def labels(self, **filters: Any) -> Listed:
        """Return the labels that you see: `team`, `name`, `run`."""
        return Listed(self._hub.pages(f"{self.path}labels/", filters))

    def label(
        self, name: str, run: str | Run, *, expected: str | None = ANY, note: str = ""
    ) -> Answer:
        """Let a label name a run of your team.

        `expected` is the id that the label should name now, or None for a new label; if it names
        another run, Conflict is raised with the code `label_moved`.
        """
        if not _LABEL.fullmatch(name):
            raise BadRule(
                f"{name!r} cannot be the name of a label, which has up to 40 letters, digits, "
                "'.', '_' and '-'"
            )

        (run_id,) = self._ids([run])
        body: dict[str, Any] = {"run": run_id, "note": note}
        if expected is not ANY:
            body["expected"] = expected

        return Answer(self._hub.send(Call("PUT", f"{self.path}labels/{name}/", json=body)).json())

    def unlabel(self, name: str, team: str | None = None) -> None:
        """Delete a label of your team."""
        params = {"team": team} if team else {}
        self._hub.send(Call("DELETE", f"{self.path}labels/{name}/", params))

    def difference(
        self, a: str | Run, b: str | Run, measure: Any = None, **parameters: Any
    ) -> Difference:
        """Return two runs topic by topic."""
        parameters = {"runs": ",".join(self._ids([a, b])), **parameters}
        if measure:
            parameters["measure"] = measure
        return Difference(self._hub.read(f"{self.path}difference/", parameters))

    def chart(self, name: str, form: str = "svg", **parameters: Any) -> Chart:
        """Return a chart, which a notebook shows.

        `name` is `means`, `what-if`, `significance`, `ranks`, `curves`, `orders`, ...; `form` is
        svg, png, pdf, csv for its table, or json for Vega-Lite. `runs` and `baseline` are named in
        any way.
        """
        if parameters.get("runs"):
            parameters["runs"] = self._ids(as_list(parameters["runs"]))
        if parameters.get("baseline"):
            (parameters["baseline"],) = self._ids([parameters["baseline"]])
        return self._hub.draw(f"{self.path}charts/", name, form, **parameters)

    def upload_qrels(
        self,
        source: Any,
        *,
        activate: bool = True,
        note: str = "",
        keyed_by: str | None = None,
        iteration: str | None = None,
        sampling: str | None = None,
        ignore_sampling: bool = False,
        scale: int | None = None,
        author_kind: str = "",
        author: str = "",
        model: str = "",
        prompt: str = "",
        prompt_sha256: str = "",
        parent: int | None = None,
        derivation: str = "",
        produced_at: str = "",
        dry_run: bool = False,
    ) -> Answer:
        """Upload a version of the judgements from a path, bytes or a file; `dry_run` only checks it.

        The second column is an iteration, or with `keyed_by="query"` the number of a session's
        query; `iteration` says what it means: subtopic, round or ignore. Judgements of BEIR, of
        NTCIR and in JSON are converted. `scale`, a whole number, multiplies every level, for levels
        with decimals: none is rounded.

        `sampling` says how the judged documents were drawn, strata or probabilities, which the
        lines then have; `ignore_sampling` admits all measures, with other documents as not
        relevant.

        `author_kind` says who judged: person, model, clicks or mixed; `model` and `prompt` are of a
        judging model. `derivation` says how the judgements were made from those of version
        `parent`: filled, replaced or sampled.
        """
        file = read_qrels(source, scale)
        if file.note:
            warn(file.note)
        if scale:
            note = "; ".join(filter(None, (note, f"levels times {scale}")))

        form = {
            "author_kind": author_kind,
            "author": author,
            "model": model,
            "prompt": prompt,
            "prompt_sha256": prompt_sha256,
            "parent": parent,
            "derivation": derivation,
            "produced_at": produced_at,
            "activate": activate,
            "note": note,
            "keyed_by": keyed_by,
            "iteration": iteration,
            "sampling": sampling,
            # A server that does not know the field would refuse it.
            "ignore_sampling": ignore_sampling or None,
            "dry_run": dry_run,
        }
        return self._upload("POST", "qrels/", file, form)

    def upload_topics(
        self, source: Any, *, format: str | None = None, dry_run: bool = False
    ) -> Answer:
        """Replace the topics by those of a file, a path or bytes; `dry_run` only checks it.

        `format` is recognised, or one of trec-sgml, trec-xml, jsonl, tsv.
        """
        return self._upload("PUT", "topics/", source, {"format": format, "dry_run": dry_run})

    def upload_parameters(self, source: Any, *, dry_run: bool = False) -> Answer:
        """Set parameters and costs by a CSV with a row for each run, a path or bytes: all or none."""
        return self._upload("POST", "parameters/csv/", source, {"dry_run": dry_run})

    def topics(self) -> Listed:
        """Return the topics of all pages."""
        return Listed(self._hub.pages(f"{self.path}topics/"))

    def upload_topic_attributes(self, source: Any, *, dry_run: bool = False) -> Answer:
        """Replace the attributes of topics by those of a file, a path or bytes.

        The first line names the columns, `topic` and the keys, with tabs between them; or each line
        is a JSON object. `dry_run` only checks the file.
        """
        return self._upload("PUT", "topic-attributes/", source, {"dry_run": dry_run})

    def topic_attributes(self) -> Listed:
        """Return the attributes of topics, of all pages."""
        return Listed(self._hub.pages(f"{self.path}topic-attributes/"))

    def delete_topic_attributes(self) -> None:
        """Delete the attributes of all topics."""
        self._hub.send(Call("DELETE", f"{self.path}topic-attributes/"))

    def upload_documents(self, source: Any, *, dry_run: bool = False) -> Answer:
        """Replace the titles of documents by those of a file, a path or bytes.

        A line is id, tab, title and perhaps another tab and a snippet, or a JSON object as in
        BEIR's corpus.jsonl. `dry_run` only checks the file.
        """
        return self._upload("PUT", "documents/", source, {"dry_run": dry_run})

    def documents(self) -> Listed:
        """Return the titles and snippets of documents, of all pages."""
        return Listed(self._hub.pages(f"{self.path}documents/"))

    def delete_documents(self) -> None:
        """Delete the titles of all documents."""
        self._hub.send(Call("DELETE", f"{self.path}documents/"))

    def declared_measures(self) -> Listed:
        """Return the measures that other programs compute, of all pages."""
        return Listed(self._hub.pages(f"{self.path}external-measures/"))

    def declare_measure(self, name: str, direction: str, **fields: Any) -> Answer:
        """Declare a measure that another program computes; others call it `x:name`.

        `direction` says which values are better, `higher` or `lower`. Fields are `low`, `high`,
        `unit`, `description`, `aggregate`, `missing` and `source`.
        """
        call = Call(
            "POST",
            f"{self.path}external-measures/",
            json={"name": name, "direction": direction, **fields},
            key=uuid.uuid4().hex,
        )
        return Answer(self._hub.send(call).json())

    def delete_measure(self, name: str) -> None:
        """Delete a declared measure with its values."""
        self._hub.send(Call("DELETE", f"{self.path}external-measures/{quote(name, safe='')}/"))

    def tables(self) -> Listed:
        """Return the uploaded tables of values, of all pages."""
        return Listed(self._hub.pages(f"{self.path}value-tables/"))

    def upload_values(
        self,
        source: Any,
        *,
        note: str = "",
        tool: str = "",
        tool_version: str = "",
        provenance: dict[str, Any] | None = None,
        dry_run: bool = False,
    ) -> Answer:
        """Upload values of declared measures from a file, a path or bytes; `dry_run` checks them.

        A line is run, topic, measure and value, with tabs or blanks between them, or a JSON object
        with these keys. Values replace those of earlier tables; null removes one.
        """
        form = {
            "note": note,
            "tool": tool,
            "tool_version": tool_version,
            "provenance": json.dumps(provenance) if provenance else "",
            "dry_run": dry_run,
        }
        return self._upload("POST", "value-tables/", source, form)

    def values_file(self, measure: str) -> bytes:
        """Return the present values of a declared measure as a table."""
        name = quote(measure, safe="")
        return self._hub.download(f"{self.path}external-measures/{name}/values/")

    @overload
    def qrels(self) -> Listed: ...

    @overload
    def qrels(self, version: int) -> Qrels: ...

    def qrels(self, version: int | None = None) -> Listed | Qrels:
        """Return the versions of the judgements, or one of them, as in `qrels(2).file()`."""
        if version is not None:
            return Qrels(self._hub, self.path, version)
        return Listed(self._hub.pages(f"{self.path}qrels/"))

    def qrels_file(self, version: int) -> bytes:
        """Return a version of the judgements as a TREC file."""
        return self._hub.download(f"{self.path}qrels/{version}/file/")

    def _ids(self, runs: Iterable[str | Run]) -> list[str]:
        return ids_of(self._hub, runs, self.slug)

    def _baselines(self, names: str | Run | Iterable[str | Run]) -> str | list[str]:
        """Return the id of a baseline, or a list of ids of several."""
        ids = self._ids([names] if isinstance(names, Run) else as_list(names))
        return ids if len(ids) > 1 else ids[0]

    def _upload(self, method: str, address: str, source: Any, form: dict[str, Any]) -> Answer:
        fields = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in form.items()
        }
        file = source if isinstance(source, Source) else read_file(source)
        call = Call(
            method,
            self.path + address,
            fields={name: value for name, value in fields.items() if value},
            files={"file": file},
            key=uuid.uuid4().hex if method == "POST" else "",
        )
        answer = Answer(self._hub.send(call).json())
        warn_of_report(file.name, answer.raw)
        return answer


class Qrels:
    """A version of the judgements; nothing is sent before a method is called."""

    def __init__(self, hub: Connection, collection: str, version: int) -> None:
        self._hub, self.version = hub, version
        self._path = f"{collection}qrels/{version}/"

    def info(self) -> Answer:
        """Return its description."""
        return Answer(self._hub.read(self._path))

    def file(self) -> bytes:
        """Return it as a TREC file."""
        return self._hub.download(f"{self._path}file/")

    def agreement(self, other: int | None = None, **parameters: Any) -> Answer:
        """Return how far it agrees with another version, by default its parent.

        Parameters are `measure`, `uses_model`, `family`, `k`, `test`, `alpha`, `confidence`, ...
        """
        return Answer(self._hub.read(f"{self._path}agreement/", {"with": other, **parameters}))

    def activate(self) -> Answer:
        """Activate it: every run is evaluated again."""
        call = Call("POST", f"{self._path}activate/", key=uuid.uuid4().hex)
        return Answer(self._hub.send(call).json())


def _check_if_taken(if_taken: str) -> str:
    if if_taken not in _IF_TAKEN:
        raise ValueError(f"if_taken is one of {', '.join(_IF_TAKEN)}, not {if_taken!r}")
    return if_taken
