"""The statistics of a comparison, beside what pingouin, baycomp and scikit-posthocs make of the same values."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import baycomp
import evalhub_client as evh
import numpy as np
import pandas as pd
import pingouin
import pytest
import scikit_posthocs

TOPICS, RUNS, MEASURE = 30, 5, "nDCG@10"
Values = pd.DataFrame


@pytest.fixture(scope="module")
def files() -> dict[str, dict[str, dict[str, float]]]:
    """Runs of five qualities over thirty topics of ten documents, of which every third is relevant."""
    rng = random.Random(7)
    runs: dict[str, dict[str, dict[str, float]]] = {}
    for number in range(RUNS):
        help_of_run = 0.4 * number
        runs[f"r{number}"] = {
            str(topic): {
                f"d{doc}": rng.gauss(help_of_run * (doc % 3 == 0), 1 + 0.3 * number)
                for doc in range(12)
            }
            for topic in range(TOPICS)
        }
    return runs


@pytest.fixture
def collection(collection_of: Callable[..., evh.Collection], files: Any) -> evh.Collection:
    collection = collection_of(
        {str(topic): {f"d{doc}": int(doc % 3 == 0) for doc in range(12)} for topic in range(TOPICS)}
    )
    for tag, run in files.items():
        collection.submit(run, tag=tag).wait(60)
    return collection


@pytest.fixture
def values(collection: evh.Collection) -> Values:
    """The value of each topic (a row) and run (a column), as the service stores it."""
    runs = {f"r{number}": collection.run(f"r{number}") for number in range(RUNS)}
    return pd.DataFrame({tag: run.values(MEASURE).of(MEASURE) for tag, run in runs.items()})


def compared(hub: evh.Hub, collection: evh.Collection, **query: Any) -> dict[str, Any]:
    path = f"collections/{collection.slug}/comparison/"
    answer: dict[str, Any] = hub.request(
        "GET", path, params={"measures": MEASURE, "correction": "none", **query}
    ).json()
    (measure,) = answer["measures"]
    return {**measure, "tags": {run["id"]: run["tag"] for run in answer["runs"]}}


def columns_of(values: Values) -> dict[str, Any]:
    """The values as pingouin takes them: a row for each topic and run."""
    long = (
        values.rename_axis("topic").reset_index().melt("topic", var_name="run", value_name="value")
    )
    return {"data": long, "dv": "value", "within": "run", "subject": "topic"}


def by_name(table: pd.DataFrame) -> dict[str, Any]:
    """The first row of a table of pingouin, whose versions write their columns `p-val`, `p_val` or `pval`."""
    row = {name.replace("-", "_").lower(): value for name, value in table.iloc[0].items()}
    return {**row, "p_val": row.get("p_val", row.get("pval"))}


def test_anova_is_that_of_pingouin(
    hub: evh.Hub, collection: evh.Collection, values: Values
) -> None:
    result = compared(hub, collection)["omnibus"]["anova"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = by_name(pingouin.rm_anova(**columns_of(values), correction=True))
    huynh_feldt = pingouin.epsilon(values, correction="hf")
    assert result["statistic"] == pytest.approx(theirs["f"], rel=1e-9)
    assert result["sphericity"]["greenhouse_geisser"] == pytest.approx(
        pingouin.epsilon(values, correction="gg"), rel=1e-9
    )
    assert result["sphericity"]["huynh_feldt"] == pytest.approx(huynh_feldt, rel=1e-9)
    assert result["sphericity"]["p_uncorrected"] == pytest.approx(theirs["p_unc"], rel=1e-9)
    assert result["p_value"] == pytest.approx(theirs["p_gg_corr"], rel=1e-9)


def test_friedman_is_that_of_pingouin(
    hub: evh.Hub, collection: evh.Collection, values: Values
) -> None:
    result = compared(hub, collection)["omnibus"]["friedman"]
    theirs = by_name(pingouin.friedman(**columns_of(values)))
    assert (result["statistic"], result["effect"]) == pytest.approx(
        (theirs["q"], theirs["w"]), rel=1e-9
    )


def test_effect_sizes_are_those_of_pingouin(
    hub: evh.Hub, collection: evh.Collection, values: Values
) -> None:
    result = compared(hub, collection, tests="paired_t")
    for pair in result["pairs"]:
        a, b = (values[result["tags"][pair[name]]] for name in "ab")
        # Its d of paired values has both spreads in it; d of the differences is that of one sample
        # against 0.
        against_0 = pingouin.compute_effsize(a - b, 0, eftype="cohen")
        assert pair["cohen_d"]["value"] == pytest.approx(against_0, rel=1e-9)
        assert pair["deviation"] == pytest.approx((a - b).std(), rel=1e-9)
        theirs = by_name(pingouin.ttest(a, b, paired=True))
        assert pair["tests"]["paired_t"]["statistic"] == pytest.approx(theirs["t"], rel=1e-9)
        assert pair["tests"]["paired_t"]["p_value"] == pytest.approx(theirs["p_val"], rel=1e-9)


def test_equivalence_is_that_of_pingouin(
    hub: evh.Hub, collection: evh.Collection, values: Values
) -> None:
    result = compared(hub, collection, tests="tost", margin="0.1")
    for pair in result["pairs"]:
        a, b = (values[result["tags"][pair[name]]] for name in "ab")
        theirs = by_name(pingouin.tost(a, b, bound=0.1, paired=True))
        assert pair["equivalence"]["equivalent"]["p_value"] == pytest.approx(
            theirs["p_val"], rel=1e-9
        )


def test_chances_are_those_of_baycomp(
    hub: evh.Hub, collection: evh.Collection, values: Values
) -> None:
    """baycomp's variance of the mean is that of cross-validation, 1/n + 1/(n - 1) of the variance of the differences
    instead of 1/n: it gets differences that are nearer to their mean."""
    result = compared(hub, collection, tests="bayes_t", rope="0.05")
    share = np.sqrt((1 / TOPICS) / (1 / TOPICS + 1 / (TOPICS - 1)))
    for pair in result["pairs"]:
        a, b = (values[result["tags"][pair[name]]].to_numpy() for name in "ab")
        difference = a - b
        nearer = difference.mean() + (difference - difference.mean()) * share
        better, equal, worse = baycomp.two_on_single(nearer, np.zeros(TOPICS), rope=0.05)
        chances = pair["chances"]["bayes_t"]
        assert [chances[name] for name in ("better", "equal", "worse")] == pytest.approx(
            [better, equal, worse], abs=1e-9
        )


@pytest.mark.parametrize(
    ("test", "theirs"),
    [
        ("nemenyi", scikit_posthocs.posthoc_nemenyi_friedman),
        ("conover", scikit_posthocs.posthoc_conover_friedman),
    ],
)
def test_pairs_of_ranks_are_those_of_posthocs(
    hub: evh.Hub,
    collection: evh.Collection,
    values: Values,
    test: str,
    theirs: Callable[..., pd.DataFrame],
) -> None:
    result = compared(hub, collection, tests=test)
    table = theirs(values)
    for pair in result["pairs"]:
        a, b = (result["tags"][pair[name]] for name in "ab")
        assert pair["tests"][test]["p_value"] == pytest.approx(
            table.loc[a, b], rel=1e-6, abs=1e-10
        ), (a, b)
