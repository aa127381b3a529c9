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
from .tracking import tracked


def log(run: Run, measures: Sequence[str] = (), prefix: str = "") -> dict[str, float]:
    """Write the means, the coverage and Judged@10 into the summary, and what identifies them into the configuration.

    Names are those of the measures. A measure without a mean is not written. Returns what was
    written.
    """
    active = wandb.run
    if active is None:
        raise BadSource("no W&B run is active; call wandb.init() first")

    found = tracked(run, measures)
    numbers = {f"{prefix}{name}": value for name, value in found.numbers.items()}
    active.summary.update(numbers)
    active.config.update(
        {f"{prefix}{name}": value for name, value in found.about.items()}, allow_val_change=True
    )

    return numbers
