"""Submit a run, also if its tag is taken or the quota is used up."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .answers import Check
from .errors import Conflict, NotAllowed, NotFound, QuotaExceeded
from .runs import Run
from .sending import Call
from .sources import Source, read_file, read_source, tag_of_name
from .upload_warnings import warn, warn_of_report

if TYPE_CHECKING:
    from .collection import Collection

_MAX_SUFFIX = 100
# The server answers the same file under the same tag with the existing run.
_EXISTING = 200
# Clocks differ by seconds.
_AFTER_MIDNIGHT = 5.0
_LINEAGE = ("parents", "links")
_log = logging.getLogger("evalhub_client")


def submit_run(
    collection: Collection,
    run: Any,
    *,
    tag: str | None,
    team: str | None,
    fields: dict[str, Any],
    known: Any,
    key: str | None,
    if_taken: str,
    wait_for_quota: bool,
    drop_identical: bool,
) -> Run | Check:
    """Submit a run to a collection, with the parameters of Collection.submit.

    Without a `run`, it has no ranking: its file is empty.

    Return the run as it was received, or a Check for a dry run.
    """
    hub = collection._hub
    replicate = fields.get("replicate") or None
    source = _source_of(run, tag or replicate, drop_identical=drop_identical)
    fields = {
        **_warn_of_source(collection, fields, source),
        "kind": "values" if run is None else "",
    }
    files = {"file": source}
    if known is not None:
        files["known"] = read_file(known)

    team = team or hub.config.team or None
    stem = source.tag if tag else _tag_of(run, source, fields)
    if if_taken == "version":
        fields = {**fields, "if_taken": if_taken}

    # An existing run with the same file need not be sent. Without a team, only the server can find
    # it; and only the server puts it into an experiment, moves a label to it or reads passages.
    names = ("experiment", "label", "passages", "replicate")
    changes = any(fields.get(name) for name in names)
    if if_taken == "skip" and stem and source.sha256 and team and not changes:
        for existing in collection.runs(sha256=source.sha256, team=team):
            if existing.tag == stem:
                existing.existed = True
                return existing

    number, key = 1, key or uuid.uuid4().hex
    while True:
        name = f"{stem[:60]}-{number}" if stem and number > 1 else stem
        form = _form(name, team, fields)
        try:
            path = f"{collection.path}runs/"
            response = hub.send(Call("POST", path, fields=form, files=files, key=key))
        except Conflict as error:
            can_add_suffix = if_taken == "suffix" and stem is not None and number < _MAX_SUFFIX
            if error.code != "tag_taken" or not can_add_suffix:
                raise
            number, key = number + 1, uuid.uuid4().hex
        except QuotaExceeded as error:
            if not wait_for_quota or not error.wait:
                raise
            _log.warning("%s Waiting for it.", error)
            time.sleep(error.wait + _AFTER_MIDNIGHT)
        else:
            answer = response.json()
            # Whoever names a tag, or replicates, knows that it replaces the one in the file.
            named = ("tag_differs",) if tag or replicate else ()
            warn_of_report(source.name, answer, without=named)
            warn_of_report("known documents", answer, field="known_warnings")
            if fields.get("dry_run"):
                return Check(answer)

            submission = Run(hub, answer)
            submission.existed = response.status_code == _EXISTING
            return submission


def _source_of(run: Any, tag: str | None, *, drop_identical: bool) -> Source:
    """Return the file of a run, an empty one for None. Raise ValueError if that has no tag."""
    if run is not None:
        return read_source(run, tag, drop_identical=drop_identical)
    if not tag:
        raise ValueError("a run without a ranking needs a tag")
    return Source(f"{tag}.run", io.BytesIO(), tag, hashlib.sha256().hexdigest())


def _tag_of(run: Any, source: Source, fields: dict[str, Any]) -> str | None:
    """Return the tag of a run for which none was given, None if the server names it."""
    if fields.get("system"):
        # It is called after its version.
        return None

    replicate = fields.get("replicate")
    if not replicate:
        return source.tag

    # Files of one system often have one tag: their names tell its replicates apart.
    named = isinstance(run, str | Path | Source)
    name = tag_of_name(Path(source.name).name) if named else replicate
    return None if name == replicate else name


def lineage_of(lineage: dict[str, Any] | None) -> dict[str, Any]:
    """Return the parents and links of a lineage. Raise ValueError for anything else."""
    if others := (lineage or {}).keys() - set(_LINEAGE):
        raise ValueError(
            f"lineage has {' and '.join(_LINEAGE)}, not {', '.join(sorted(map(str, others)))}"
        )
    return dict(lineage or {})


def _form(tag: str | None, team: str | None, fields: dict[str, Any]) -> dict[str, str]:
    """Return the fields of the form that submits a run."""
    names = (
        "description", "experiment", "system", "replicate", "label", "if_taken", "passages", "kind",
    )  # fmt: skip
    values = {"tag": tag, "team": team, **{name: fields.get(name) for name in names}}
    form = {name: str(value) for name, value in values.items() if value}

    for name in ("metadata", *_LINEAGE):
        if fields.get(name):
            form[name] = json.dumps(fields[name])
    if fields.get("dry_run"):
        form["dry_run"] = "true"

    return form


def _warn_of_source(
    collection: Collection, fields: dict[str, Any], source: Source
) -> dict[str, Any]:
    """Return the fields with the number of dropped documents that had the id of their topic.

    Warn of such documents that were not dropped, of relevant ones that were, and where the file was
    converted.
    """
    if source.note:
        warn(source.note)

    if source.dropped:
        _warn_of_dropped(collection, source.identical)
        number = len(source.identical)
        metadata = {**(fields.get("metadata") or {}), "dropped_identical": number}
        return {**fields, "metadata": metadata}

    if source.identical:
        number = len(source.identical)
        topics, their = ("topic retrieves", "its") if number == 1 else ("topics retrieve", "their")
        warn(
            f"{source.name}: {number:,} {topics} the document of {their} own id, such as "
            f"{source.identical[0]}: BEIR leaves these documents out of its values, and so does "
            "submit(..., drop_identical=True), on the command line --drop-identical"
        )

    return fields


def _warn_of_dropped(collection: Collection, topics: tuple[str, ...]) -> None:
    """Warn of relevant documents that were left out, if the judgements may be read."""
    if not topics:
        return

    version = collection.info().raw.get("active_qrels")
    if version is None:
        return

    try:
        judgements = collection.qrels_file(version)
    except (NotAllowed, NotFound):
        return

    dropped = set(topics)
    columns = (line.split() for line in judgements.decode().splitlines())
    relevant = {
        topic
        for topic, _, document, level, *_ in filter(None, columns)
        if topic == document and topic in dropped and int(level) > 0
    }
    if relevant:
        documents, them = ("document", "it") if len(relevant) == 1 else ("documents", "them")
        warn(
            f"drop_identical left out {len(relevant):,} relevant {documents}, such as that of topic "
            f"{min(relevant)}: without {them} each value is lower than what was retrieved deserves"
        )
