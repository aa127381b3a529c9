"""The API of suites."""

from __future__ import annotations

from django.urls import URLPattern, path

from evalhub.suites.api import suites

_SUITE = "suites/<slug:suite>/"

urlpatterns: list[URLPattern] = [
    path("suites/", suites.SuiteList.as_view(), name="suites"),
    path(_SUITE, suites.SuiteView.as_view(), name="suite"),
    path(_SUITE + "versions/", suites.SuiteVersionList.as_view(), name="suite-versions"),
    path(_SUITE + "leaderboard/", suites.SuiteBoardView.as_view(), name="suite-board"),
    path(
        _SUITE + "leaderboard/export/<export:kind>/",
        suites.SuiteBoardExport.as_view(),
        name="suite-board-export",
    ),
    path(_SUITE + "comparison/", suites.SuiteComparisonView.as_view(), name="suite-comparison"),
    path(
        _SUITE + "comparison/export/<export:kind>/",
        suites.SuiteComparisonExport.as_view(),
        name="suite-comparison-export",
    ),
]
