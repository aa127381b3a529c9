"""Pages of values, leaderboards and comparisons."""

from __future__ import annotations

from django.urls import URLPattern, path

from metrics.pages import home, shared, shares
from metrics.pages.boards import saved_views, what_if
from metrics.pages.boards import views as boards
from metrics.pages.comparisons import agreement, design, judgements, orders
from metrics.pages.comparisons import views as comparisons
from metrics.pages.sessions import boards as session_boards
from metrics.pages.sessions import sets as session_sets
from metrics.pages.tracking import (
    configurations,
    experiments,
    frontier,
    importance,
    parameters,
    systems,
)
from metrics.pages.values import heat_map, measures, runs, topics, value_tables

urlpatterns: list[URLPattern] = [
    path("", home.home, name="home"),
    path("collections/", home.collections_page, name="collections-page"),
    path("collections/<slug:slug>/", boards.collection_page, name="collection-page"),
    path("collections/<slug:slug>/board/", boards.board_piece, name="board-piece"),
    path("collections/<slug:slug>/views/", saved_views.ViewsPage.as_view(), name="views-page"),
    path("v/<slug:code>/", saved_views.view_page, name="view-page"),
    path("collections/<slug:slug>/parameters/", parameters.parameters_page, name="parameters-page"),
    path(
        "collections/<slug:slug>/parameters/describe/",
        parameters.DescribeParameter.as_view(),
        name="describe-parameter",
    ),
    path(
        "collections/<slug:slug>/configurations/",
        configurations.configurations_page,
        name="configurations-page",
    ),
    path(
        "collections/<slug:slug>/parameters/importance/",
        importance.importance_page,
        name="importance-page",
    ),
    path("collections/<slug:slug>/frontier/", frontier.frontier_page, name="frontier-page"),
    path(
        "collections/<slug:slug>/comparison/", comparisons.comparison_page, name="comparison-page"
    ),
    path(
        "collections/<slug:slug>/comparison/queue/",
        comparisons.QueueComparison.as_view(),
        name="queue-comparison",
    ),
    path(
        "comparisons/<uuid:comparison>/",
        comparisons.stored_comparison_page,
        name="stored-comparison-page",
    ),
    path(
        "comparisons/<uuid:comparison>/status/",
        comparisons.stored_comparison_status,
        name="stored-comparison-status",
    ),
    path("collections/<slug:slug>/what-if/", what_if.what_if_page, name="what-if-page"),
    path("collections/<slug:slug>/judgements/", judgements.judgements_page, name="judgements-page"),
    path(
        "collections/<slug:slug>/qrels/<int:version>/agreement/",
        agreement.agreement_page,
        name="agreement-page",
    ),
    path("collections/<slug:slug>/heat-map/", heat_map.heat_map_page, name="heat-map-page"),
    path("collections/<slug:slug>/topics/", topics.topics_page, name="topics-page"),
    path("collections/<slug:slug>/topics/<path:topic>/", topics.topic_page, name="topic-page"),
    path("collections/<slug:slug>/orders/", orders.orders_page, name="orders-page"),
    path("collections/<slug:slug>/design/", design.design_page, name="design-page"),
    path(
        "collections/<slug:slug>/value-tables/",
        value_tables.ValueTablesPage.as_view(),
        name="value-tables-page",
    ),
    path(
        "experiments/<uuid:experiment>/",
        experiments.ExperimentPage.as_view(),
        name="experiment-page",
    ),
    path("runs/<uuid:run_id>/", runs.run_page, name="run-page"),
    path("runs/<uuid:run_id>/topics/", runs.run_topics_page, name="run-topics-page"),
    path("runs/<uuid:run_id>/curves/", runs.run_curves_page, name="run-curves-page"),
    path("runs/<uuid:run_id>/parameters/", runs.run_parameters_page, name="run-parameters-page"),
    path("runs/<uuid:run_id>/files/", runs.run_files_page, name="run-files-page"),
    path("runs/<uuid:run_id>/status/", runs.run_status, name="run-status"),
    path("runs/<uuid:run_id>/ranking/", runs.ranking_page, name="ranking-page"),
    path("collections/<slug:slug>/sessions/", session_boards.sessions_page, name="sessions-page"),
    path(
        "session-sets/<uuid:session_set>/", session_sets.session_set_page, name="session-set-page"
    ),
    path(
        "session-sets/<uuid:session_set>/status/",
        session_sets.session_set_status,
        name="session-set-status",
    ),
    path(
        "session-sets/<uuid:session_set>/sessions/<str:session>/",
        session_sets.session_page,
        name="session-page",
    ),
    path("shares/", shares.SharesPage.as_view(), name="shares-page"),
    path("s/<slug:share>/", shared.open_page, name="open-share"),
    path("shared/<slug:share>/", shared.shared_page, name="shared-page"),
    path("shared/<slug:share>/export/<slug:kind>/", shared.shared_file, name="shared-file"),
    path(
        "shared/<slug:share>/charts/<slug:chart>.<slug:form>",
        shared.shared_chart,
        name="shared-chart",
    ),
    path("systems/<slug:team>/<str:system>/", systems.system_page, name="system-page"),
    path("measures/", measures.measures_page, name="measures-page"),
    path("measures/suggestions/", measures.measure_suggestions, name="measure-suggestions"),
    path("measures/<str:measure>/", measures.measure_page, name="measure-page"),
]
