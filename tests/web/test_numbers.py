"""Numbers in pages are written alike: thousands with a comma, statistics without powers of ten."""

from __future__ import annotations

import pytest
from django.template.loader import render_to_string
from django.test import RequestFactory

from metrics.tables import Paging, statistic

pytestmark = pytest.mark.words


@pytest.mark.parametrize(
    ("value", "text"),
    [(195_137.0, "195,137"), (195_137.5, "195,137.5"), (1000.0, "1,000"), (999.96, "1,000"), (-2.34567, "\u22122.346"),
     (0.0, "0"), (12.5, "12.5")],
)  # fmt: skip
def test_a_statistic_has_no_power_of_ten(value: float, text: str) -> None:
    assert statistic(value) == text


@pytest.mark.slow
def test_pages_of_rows_are_counted_with_commas() -> None:
    paging = Paging(1000, 100, 12345)
    html = render_to_string(
        "metrics/_paging.html", {"paging": paging, "anchor": ""}, RequestFactory().get("/")
    )
    assert "1,001–1,100 of 12,345" in html
