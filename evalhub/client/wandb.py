"""Weights & Biases: the means of a run in the summary of the active W&B run.

import wandb, evalhub_client as evh, evalhub_client.wandb

with wandb.init(project="search"):
    run = evh.connect().collection("robust04").submit("bm25.run").wait()
    evalhub_client.wandb.log(run, measures=["nDCG@10", "AP"])
"""

from __future__ import annotations

from collections.abc import Sequence

import wandb

from .errors import BadSource
from .runs import Run
from .tracking import read_metrics


def log(run: Run, measures: Sequence[str] = (), prefix: str = "") -> dict[str, float]:
    """Write means, coverage and Judged@10 into the summary, and their origin into the configuration.

    Names are those of the measures. A measure without a mean is not written. Return the summary's
    numbers.
    """
    active = wandb.run
    if active is None:
        raise BadSource("no W&B run is active; call wandb.init() first")

    metrics = read_metrics(run, measures)
    values = {f"{prefix}{name}": value for name, value in metrics.values.items()}
    tags = {f"{prefix}{name}": text for name, text in metrics.tags.items()}
    active.summary.update(values)
    active.config.update(tags, allow_val_change=True)
    return values
