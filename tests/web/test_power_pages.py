"""The pages of agreement between rankings and of the power of the topics say what the API says."""

from __future__ import annotations

import re

import numpy as np
import pytest
from django.test import Client

from runs.models import User
from tests.metrics.scored import make_scored, simulated
from tests.shared_data import alice, module_data

__all__ = ["alice", "module_data"]

pytestmark = pytest.mark.words
ORDERS, DESIGN = "/collections/scored/orders/", "/collections/scored/design/"


@pytest.fixture
def site(client: Client, alice: User) -> Client:
    values = np.array([simulated(6, 20), simulated(6, 20, seed=8)])
    make_scored("scored", alice.personal_team, values, ["AP", "P@10"])
    return client


def cells_of(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    listed = [
        [
            " ".join(cell.split())
            for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        ]
        for row in rows
    ]
    return [row for row in listed if row]


def test_agreement_of_two_measures(site: Client) -> None:
    pair = site.get(f"/api/v1{ORDERS}").json()["pairs"][0]
    html = site.get(ORDERS).content.decode()

    def interval(name: str) -> str:
        return "{value:.3f} [{low:.3f}, {high:.3f}]".format(**pair[name]).replace(
            "-", "\N{MINUS SIGN}"
        )

    intervals = [interval(name) for name in ("tau", "symmetric_tau_ap", "rbo")]
    assert ["AP", "P@10", str(pair["moved"]), *intervals] in cells_of(html)
    drawn = site.get("/api/v1/collections/scored/charts/orders.json").json()
    ranks = site.get(f"/api/v1{ORDERS}").json()["orders"]
    points = max((layer["data"]["values"] for layer in drawn["layer"]), key=len)
    assert sorted((point["a"], point["b"]) for point in points) == sorted(
        zip(ranks[0]["ranks"], ranks[1]["ranks"], strict=True)
    )


def test_the_first_of_many_measures_are_compared(client: Client, alice: User) -> None:
    values = np.array([simulated(6, 20, seed=seed) for seed in range(6)])
    make_scored(
        "scored", alice.personal_team, values, ["AP", "P@10", "RR", "nDCG@10", "R@100", "Rprec"]
    )
    html = client.get(ORDERS).content.decode()
    assert 'value="AP, P@10, RR, nDCG@10"' in html
    assert "it has 2 more" in html
    assert len(cells_of(html)) >= 6
    assert "/api/v1/collections/scored/orders/?measures=AP%2C+P%4010%2C+RR%2C+nDCG%4010" in html
    assert "more, which" not in client.get(ORDERS, {"measures": "AP,P@10"}).content.decode()


def test_one_order_agrees_with_nothing_and_the_page_says_so(site: Client) -> None:
    answer = site.get(ORDERS, {"measures": "AP"})
    assert answer.status_code == 400
    assert "agreement needs two orderings" in answer.content.decode()


def test_power_of_the_topics(site: Client) -> None:
    measures = site.get(f"/api/v1{DESIGN}").json()["measures"]
    rows = cells_of(site.get(DESIGN).content.decode())
    for measure in measures:
        power, sets = measure["discriminative_power"], measure["topic_set_size"]
        figures = (power["typical"], power["needed"], sets["detectable"])
        texts = [f"{figure:.4f}" for figure in figures]
        line = [
            measure["measure"],
            "20",
            f"{power['share']:.1%}",
            *texts,
            f"± {sets['half_width']:.4f}",
        ]
        assert line in rows
        for detection in sets["detections"]:
            counts = [
                f"{detection[name]:,}" for name in ("topics_t", "topics_anova", "topics_interval")
            ]
            power_now = f"{detection['power_t']:.1%}"
            assert [measure["measure"], f"{detection['difference']:g}", power_now, *counts] in rows
            small = detection["smallness"]
            plans = [
                (f"{small[f'power_{claim}']:.1%}", f"{small[f'topics_{claim}']:,}")
                for claim in ("not_worse", "equivalent")
            ]
            margin = f"{detection['difference']:g}"
            assert [
                measure["measure"],
                margin,
                f"{small['share']:.1%}",
                *plans[0],
                *plans[1],
            ] in rows
        for size in measure["swap_rates"]["sizes"]:
            needed = "–" if size["needed"] is None else f"{size['needed']:.2f}"
            assert [measure["measure"], str(size["topics"]), f"{size['rate']:.1%}", needed] in rows


def test_the_curve_of_power_is_that_of_the_api(site: Client) -> None:
    drawn = site.get("/api/v1/collections/scored/charts/power.json", {"measures": "AP"}).json()
    curve = site.get(f"/api/v1{DESIGN}", {"measures": "AP"}).json()["measures"][0][
        "discriminative_power"
    ]["curve"]
    points = max((layer["data"]["values"] for layer in drawn["layer"]), key=len)
    assert [(point["pair"], point["p"]) for point in points] == list(
        zip(curve["pair"], curve["p_value"], strict=True)
    )


@pytest.mark.parametrize("chart", ["orders", "power"])
@pytest.mark.parametrize("form", ["svg", "png", "pdf"])
def test_both_are_drawn_for_paper(site: Client, chart: str, form: str) -> None:
    answer = site.get(
        f"/api/v1/collections/scored/charts/{chart}.{form}", {"size": "narrow", "theme": "dark"}
    )
    assert (answer.status_code, len(answer.content) > 2000) == (200, True)


def test_of_too_many_runs_some_are_chosen_on_the_leaderboard(
    site: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package, page in (("orders", ORDERS), ("design", DESIGN)):
        monkeypatch.setattr(f"metrics.services.comparisons.{package}.MAX_RUNS", 4)
        assert "Choose some on the" in site.get(page).content.decode()
