"""An experiment whose runs are submitted, and one that was saved."""

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
from .values import compared, evaluated, saved

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
    """Do what pt.Experiment does, with its arguments and its result, and submit the run of every system.

    A run's tag is the system's name, with `-` for what a tag cannot have; names that become the
    same tag are refused. Where the result can have it, it gets an attribute `evalhub`, the
    Published runs. With `check` the evaluation is waited for (`timeout` seconds) and its values are
    compared with PyTerrier's, which evaluates the results a second time for it; differences are
    logged with their reason. Once the systems have run, errors of the server are logged and the
    result is returned: `flush()` tries again.
    """
    asked = inspect.signature(pt.Experiment).bind(*args, **options)
    systems, names = asked.arguments["retr_systems"], asked.arguments.get("names")
    if not isinstance(systems, list | dict) or (names is not None and len(names) != len(systems)):
        return pt.Experiment(*args, **options)  # which says what is wrong

    listed = list(systems.values()) if isinstance(systems, dict) else systems
    named = list(systems) if isinstance(systems, dict) else list(names or map(str, systems))
    hub = hub or connect()
    # A token that may not read, or a name that nothing has, is better known before the systems run.
    hub.collection(collection).info()
    told = {"team": team, "description": description, "metadata": metadata, "if_taken": if_taken}
    stages = {
        name: Submit(collection, tag, hub=hub, **told)
        for name, tag in zip(named, tags_of(named), strict=True)
    }
    ending = [
        system >> stage if isinstance(system, pt.Transformer) else system
        for system, stage in zip(listed, stages.values(), strict=True)
    ]

    if isinstance(systems, dict):
        asked.arguments["retr_systems"] = dict(zip(named, ending, strict=True))
    else:
        asked.arguments |= {"retr_systems": ending, "names": named}

    try:
        result = pt.Experiment(*asked.args, **asked.kwargs)
    except BaseException:
        for stage in stages.values():
            stage.discard()
        raise

    published = Published()
    try:
        _publish(
            published,
            hub,
            asked.arguments,
            dict(zip(named, listed, strict=True)),
            stages,
            check,
            timeout,
        )
    except Exception:
        # What took hours is not lost to what comes after it.
        _log.exception("the experiment is done; its runs were not all submitted or compared")

    # A dictionary or a tuple has no attributes of its own; pandas warns of lists that are set in
    # its own way.
    with suppress(AttributeError):
        object.__setattr__(result, "evalhub", published)

    return result


def _publish(
    published: Published,
    hub: Hub,
    asked: Mapping[str, Any],
    systems: Mapping[str, Any],
    stages: Mapping[str, Submit],
    check: bool,
    timeout: float,
) -> None:
    """Submit what the stages have kept, and compare PyTerrier's values of it with EvalHub's."""
    for name, stage in stages.items():
        if isinstance(systems[name], pandas.DataFrame):
            stage.transform(systems[name])
        elif not len(stage.frame()) and asked.get("save_dir"):
            # With save_mode='reuse' the system does not run.
            path = Path(asked["save_dir"]) / f"{name}{_RESULTS}"
            if path.exists():
                stage.transform(pt.io.read_results(str(path)))

    frames = {name: stage.frame() for name, stage in stages.items()}
    submit_each(published, {name: stage.close for name, stage in stages.items()})
    if check:
        sent = [name for name in stages if name not in published.unsent]
        theirs = evaluated(asked, {name: frames[name] for name in sent})
        published.agreement = compared(
            hub, published, sent, theirs, frames.__getitem__, asked["qrels"], timeout
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
    """Submit the results that pt.Experiment(save_dir=folder) has written, and compare its values with EvalHub's.

    PyTerrier writes no results of systems that are DataFrames, and those of another `save_format`
    than `trec` are not read. `qrels`, those of the experiment, make it possible to tell that
    judgements differ. Further options are those of Collection.submit().
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
    submit_each(
        published,
        {
            name: partial(target.submit, path, tag=tags[name], **options)
            for name, path in files.items()
        },
    )

    if check:
        theirs = saved(folder)
        for name in sorted(set(theirs) - set(files)):
            _log.warning("%s: %s has its values, and no %s%s of it", name, folder, name, _RESULTS)

        sent = [name for name in files if name not in published.unsent]
        read = cache(lambda name: pt.io.read_results(str(files[name])))
        published.agreement = compared(hub, published, sent, theirs, read, qrels, timeout)

    return published
