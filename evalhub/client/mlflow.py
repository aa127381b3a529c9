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
from .tracking import read_metrics

# Characters that MLflow does not allow in names of metrics on every system.
_REFUSED = re.compile(r"[^\w.\-/ ]+", re.ASCII)
_MAX_NAME = 250


def log(
    run: Run, measures: Sequence[str] = (), prefix: str = "", *, step: int | None = None
) -> dict[str, float]:
    """Log means, coverage and Judged@10 as metrics, and their origin as tags; return the metrics.

    MLflow refuses `@`, `(` and `=` in names: nDCG@10 becomes nDCG_at_10, and the tag
    `evalhub.measure.nDCG_at_10` has the measure's own name. Two measures that would get one name
    are refused. A measure without a mean is not logged; the tag `evalhub.undefined` names it.
    """
    metrics = read_metrics(run, measures)
    measure_of: dict[str, str] = {}
    for measure in metrics.values:
        name = metric_name(measure, prefix)
        if name in measure_of:
            raise BadSource(
                f"{measure_of[name]} and {measure} would both be {name} in MLflow; log them with two "
                "prefixes"
            )

        measure_of[name] = measure

    tags = dict(metrics.tags)
    tags |= {f"evalhub.measure.{name}": measure for name, measure in measure_of.items()}
    if metrics.undefined:
        tags["evalhub.undefined"] = ", ".join(metrics.undefined)

    values = {name: metrics.values[measure] for name, measure in measure_of.items()}
    mlflow.log_metrics(values, step=step)
    mlflow.set_tags(tags)
    return values


def metric_name(measure: str, prefix: str = "") -> str:
    """Return the name of a measure in MLflow; raise BadSource if MLflow would refuse it."""
    # Several characters in a row, as in "=2)@5", become one "_".
    name = prefix + re.sub("__+", "_", _REFUSED.sub("_", measure.replace("@", "_at_"))).strip("_")
    bad_part = any(part in ("", ".", "..") for part in name.split("/"))
    if len(name) > _MAX_NAME or name.startswith("/") or bad_part:
        raise BadSource(f"MLflow takes no metric {name!r}; use another prefix")
    return name
