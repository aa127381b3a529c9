"""Pages of values, leaderboards and comparisons."""

from __future__ import annotations

from django.urls import URLPattern, path

from metrics import views
from metrics.pages import measures

urlpatterns: list[URLPattern] = [
    path("collections/<slug:slug>/", views.collection_page, name="collection-page"),
    path("collections/<slug:slug>/comparison/", views.comparison_page, name="comparison-page"),
    path("runs/<uuid:run_id>/", views.run_page, name="run-page"),
    path("runs/<uuid:run_id>/curve.svg", views.curve_picture, name="curve-picture"),
    path("measures/", measures.measures_page, name="measures-page"),
    path("measures/suggestions/", measures.measure_suggestions, name="measure-suggestions"),
    path("measures/<str:measure>/", measures.measure_page, name="measure-page"),
]
