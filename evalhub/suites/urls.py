"""Pages of suites."""

from __future__ import annotations

from django.urls import URLPattern, path

from evalhub.suites.pages import suites
from evalhub.suites.pages.new_suite import NewSuitePage, NewSuiteVersionPage

urlpatterns: list[URLPattern] = [
    path("suites/", suites.suites_page, name="suites-page"),
    path("new-suite/", NewSuitePage.as_view(), name="new-suite-page"),
    path("suites/<slug:suite>/", suites.suite_page, name="suite-page"),
    path(
        "suites/<slug:suite>/comparison/",
        suites.suite_comparison_page,
        name="suite-comparison-page",
    ),
    path(
        "suites/<slug:suite>/new-version/",
        NewSuiteVersionPage.as_view(),
        name="new-suite-version-page",
    ),
]
