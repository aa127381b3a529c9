"""URLs of values, curves, leaderboards, comparisons and measures."""

from django.urls import path

from metrics.api import (
    comparisons,
    curves,
    design,
    differences,
    orders,
    views,
    what_if,
)

urlpatterns = [
    path("collections/<slug:collection>/leaderboard/", views.LeaderboardView.as_view(), name="leaderboard"),
    path("collections/<slug:collection>/comparison/", comparisons.ComparisonView.as_view(), name="comparison"),
    path("comparisons/<uuid:comparison>/", comparisons.StoredComparisonView.as_view(), name="stored-comparison"),
    path("collections/<slug:collection>/difference/", differences.DifferenceView.as_view(), name="difference"),
    path("collections/<slug:collection>/what-if/", what_if.WhatIfView.as_view(), name="what-if"),
    path("collections/<slug:collection>/orders/", orders.OrdersView.as_view(), name="orders"),
    path("collections/<slug:collection>/design/", design.DesignView.as_view(), name="design"),
    path("collections/<slug:collection>/evaluations/", views.CollectionEvaluations.as_view(), name="evaluations"),
    path("runs/<uuid:run>/values/", views.RunValuesView.as_view(), name="run-values"),
    path("runs/<uuid:run>/curve/", curves.RunCurveView.as_view(), name="run-curve"),
    path("runs/<uuid:run>/precision-recall/", curves.PrecisionRecallView.as_view(), name="run-precision-recall"),
    path("runs/<uuid:run>/evaluations/", views.RunEvaluations.as_view(), name="run-evaluations"),
    path("measures/", views.MeasureList.as_view(), name="measures"),
    path("measures/<str:measure>/", views.MeasureDetail.as_view(), name="measure"),
]
