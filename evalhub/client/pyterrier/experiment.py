"""Submit the runs of an experiment, or of one that was saved."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas
import pyterrier as pt

from ..errors import BadSource
from ..hub import Hub, connect
from .stage import Published, Submit, submit_each, tags_of
from .values import compare_values, evaluate_results, read_saved_values

_RESULTS = ".res.gz"
_log = logging.getLogger("evalhub_client")


def Experiment(  # noqa: N802
    *args: Any,
    collection: str | None = None,
    hub: Hub | None = None,
    team: str | None = None,
    description: str = "",
    metadata: dict[str, Any] | None = None,
    if_taken: str = "fail",
    check: bool = True,
    timeout: float = 600.0,
    **options: Any,
) -> Any:
    """Run pt.Experiment, with its arguments and its result, and submit the run of every system.

    A run's tag is the system's name, with `-` for what a tag cannot have; names that become the
    same tag are refused. If the result can have it, it gets an attribute `evalhub`, the Published
    runs. With `check` this waits for the evaluation (`timeout` seconds) and compares its values with
    PyTerrier's, which evaluates the results a second time for it; differences are logged with their
    reason. Once the systems have run, errors of the server are logged and the result is returned:
    `flush()` tries again.
    """
    call = inspect.signature(pt.Experiment).bind(*args, **options)
    systems, names = call.arguments["retr_systems"], call.arguments.get("names")
    if not isinstance(systems, list | dict) or (names is not None and len(names) != len(systems)):
        # PyTerrier raises the error.
        return pt.Experiment(*args, **options)

    system_names = list(systems if isinstance(systems, dict) else names or map(str, systems))
    system_list = list(systems.values()) if isinstance(systems, dict) else systems

    # Errors such as a missing right or an unknown name must come before the systems run.
    hub = hub or connect()
    hub.collection(collection).info()

    submit_options = {
        "team": team,
        "description": description,
        "metadata": metadata,
        "if_taken": if_taken,
    }
    tags = dict(zip(system_names, tags_of(system_names), strict=True))
    by_name = dict(zip(system_names, system_list, strict=True))
    stages, pipelines = {}, {}
    for name, system in by_name.items():
        stages[name] = Submit(collection, tags[name], hub=hub, **submit_options)
        is_transformer = isinstance(system, pt.Transformer)
        pipelines[name] = system >> stages[name] if is_transformer else system

    if isinstance(systems, dict):
        call.arguments["retr_systems"] = pipelines
    else:
        call.arguments |= {"retr_systems": list(pipelines.values()), "names": list(pipelines)}

    try:
        result = pt.Experiment(*call.args, **call.kwargs)
    except BaseException:
        for stage in stages.values():
            stage.discard()
        raise

    published = Published()
    try:
        _publish(published, hub, call.arguments, by_name, stages, check, timeout)
    except Exception:
        # An experiment may have taken hours: its result is returned in any case.
        _log.exception("the experiment is done; its runs were not all submitted or compared")

    # Dictionaries and tuples have no attributes; pandas warns of lists that are set as usual.
    with suppress(AttributeError):
        object.__setattr__(result, "evalhub", published)

    return result


def _publish(
    published: Published,
    hub: Hub,
    arguments: Mapping[str, Any],
    systems: Mapping[str, Any],
    stages: Mapping[str, Submit],
    check: bool,
    timeout: float,
) -> None:
    """Submit the results in the stages, and compare PyTerrier's values with EvalHub's."""
    for name, stage in stages.items():
        if isinstance(systems[name], pandas.DataFrame):
            stage.transform(systems[name])
        elif not len(stage.frame()) and arguments.get("save_dir"):
            # With save_mode='reuse' the system does not run.
            path = Path(arguments["save_dir"]) / f"{name}{_RESULTS}"
            if path.exists():
                stage.transform(pt.io.read_results(str(path)))

    frames = {name: stage.frame() for name, stage in stages.items()}
    submit_each(published, {name: stage.close for name, stage in stages.items()})
    if check:
        names = [name for name in stages if name not in published.unsent]
        theirs = evaluate_results(arguments, {name: frames[name] for name in names})
        published.agreement = compare_values(
            hub, published, names, theirs, frames.__getitem__, arguments["qrels"], timeout
        )


def publish(
    folder: str | Path,
    collection: str | None = None,
    *,
    hub: Hub | None = None,
    qrels: Any = None,
    check: bool = True,
    timeout: float = 600.0,
    **options: Any,
) -> Published:
    """Submit the results that pt.Experiment(save_dir=folder) has written, and compare values.

    PyTerrier writes no results of systems that are DataFrames, and those of another `save_format`
    than `trec` are not read. With the `qrels` of the experiment, different judgements are found.
    Further options are those of Collection.submit().
    """
    folder, hub = Path(folder), hub or connect()
    files = {path.name.removesuffix(_RESULTS): path for path in sorted(folder.glob(f"*{_RESULTS}"))}
    if not files:
        raise BadSource(
            f"{folder} has no *{_RESULTS}, which pt.Experiment writes with save_dir and "
            "save_format='trec'"
        )

    target = hub.collection(collection)
    target.info()
    tags = dict(zip(files, tags_of(list(files)), strict=True))
    published = Published()
    senders = {
        name: partial(target.submit, path, tag=tags[name], **options)
        for name, path in files.items()
    }
    submit_each(published, senders)

    if check:
        theirs = read_saved_values(folder)
        for name in sorted(set(theirs) - set(files)):
            _log.warning("%s: %s has its values, and no %s%s of it", name, folder, name, _RESULTS)

        names = [name for name in files if name not in published.unsent]
        read = cache(lambda name: pt.io.read_results(str(files[name])))
        published.agreement = compare_values(hub, published, names, theirs, read, qrels, timeout)

    return published
