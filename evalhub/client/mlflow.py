"""MLflow: the means of a run as metrics of the active MLflow run.

import mlflow, evalhub_client as evh, evalhub_client.mlflow

with mlflow.start_run():
    run = evh.connect().collection("robust04").submit("bm25.run").wait()
    evalhub_client.mlflow.log(run, measures=["nDCG@10", "AP"])
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import mlflow

from .errors import BadSource
from .runs import Run
from .tracking import tracked

# What MLflow takes in the name of a metric on every system it runs on.
_REFUSED = re.compile(r"[^\w.\-/ ]+", re.ASCII)
_LONGEST = 250


def log(
    run: Run, measures: Sequence[str] = (), prefix: str = "", *, step: int | None = None
) -> dict[str, float]:
    """Log the means, the coverage and Judged@10 as metrics, and what identifies them as tags; return the metrics.

    MLflow refuses `@`, `(` and `=` in names: nDCG@10 becomes nDCG_at_10, and the tag
    `evalhub.measure.nDCG_at_10` has the measure's own name. Two measures that would get one name
    are refused. A measure without a mean is no metric; the tag `evalhub.undefined` names it.
    """
    found = tracked(run, measures)
    named: dict[str, str] = {}
    for measure in found.numbers:
        name = metric_name(measure, prefix)
        if name in named:
            raise BadSource(
                f"{named[name]} and {measure} would both be {name} in MLflow; log them with two "
                "prefixes"
            )

        named[name] = measure

    metrics = {name: found.numbers[measure] for name, measure in named.items()}
    tags = found.about | {f"evalhub.measure.{name}": measure for name, measure in named.items()}
    if found.undefined:
        tags["evalhub.undefined"] = ", ".join(found.undefined)

    mlflow.log_metrics(metrics, step=step)
    mlflow.set_tags(tags)
    return metrics


def metric_name(measure: str, prefix: str = "") -> str:
    """Return the name that a measure has in MLflow; BadSource for one that MLflow would refuse."""
    # Several letters that follow each other, as in "=2)@5", become one "_".
    name = prefix + re.sub("__+", "_", _REFUSED.sub("_", measure.replace("@", "_at_"))).strip("_")
    if (
        len(name) > _LONGEST
        or name.startswith("/")
        or any(part in ("", ".", "..") for part in name.split("/"))
    ):
        raise BadSource(f"MLflow takes no metric {name!r}; use another prefix")
    return name
