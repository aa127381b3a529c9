"""URLs of values, curves, leaderboards, comparisons and measures."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from metrics.api import charts, evaluations, measures, shares
from metrics.api.boards import citation, saved_views, what_if
from metrics.api.boards import views as boards
from metrics.api.comparisons import agreement, design, judgements, orders
from metrics.api.comparisons import views as comparisons
from metrics.api.sessions import boards as session_boards
from metrics.api.sessions import charts as session_charts
from metrics.api.sessions import views as sessions
from metrics.api.tracking import configurations, frontier, importance, parameters, systems
from metrics.api.values import (
    curves,
    curves_together,
    differences,
    matrix,
    rankings,
    topics,
    value_tables,
    values,
)
from metrics.exports.boards import EXPORTS as BOARD_EXPORTS
from metrics.exports.comparisons import EXPORTS
from metrics.exports.values.matrix import MATRIX_EXPORTS
from metrics.exports.values.run_values import RUN_VALUE_EXPORTS


class ExportConverter(StringConverter):
    """Match the formats of tables; another format is not an address."""

    regex = "|".join(EXPORTS)


class BoardExportConverter(StringConverter):
    """Match the formats of leaderboards."""

    regex = "|".join(BOARD_EXPORTS)


class MatrixExportConverter(StringConverter):
    """Match the formats of the values of all runs."""

    regex = "|".join(MATRIX_EXPORTS)


class RunValueExportConverter(StringConverter):
    """Match the formats of the values of one run."""

    regex = "|".join(RUN_VALUE_EXPORTS)


register_converter(ExportConverter, "export")
register_converter(BoardExportConverter, "board_export")
register_converter(MatrixExportConverter, "matrix_export")
register_converter(RunValueExportConverter, "run_value_export")

_SET = "session-sets/<uuid:session_set>/"

urlpatterns = [
    path(
        "collections/<slug:collection>/leaderboard/",
        boards.LeaderboardView.as_view(),
        name="leaderboard",
    ),
    path(
        "collections/<slug:collection>/leaderboard/export/<board_export:kind>/",
        boards.LeaderboardExport.as_view(),
        name="leaderboard-export",
    ),
    path(
        "collections/<slug:collection>/citation/", citation.CitationView.as_view(), name="citation"
    ),
    path("collections/<slug:collection>/views/", saved_views.ViewList.as_view(), name="views"),
    path("views/<slug:code>/", saved_views.ViewDetail.as_view(), name="view"),
    path("shares/", shares.ShareLinkList.as_view(), name="shares"),
    path("shares/<slug:share>/", shares.ShareLinkDetail.as_view(), name="share"),
    path(
        "collections/<slug:collection>/comparison/",
        comparisons.ComparisonView.as_view(),
        name="comparison",
    ),
    path(
        "collections/<slug:collection>/comparison/export/<export:kind>/",
        comparisons.ComparisonExport.as_view(),
        name="comparison-export",
    ),
    path(
        "comparisons/<uuid:comparison>/",
        comparisons.StoredComparisonView.as_view(),
        name="stored-comparison",
    ),
    path(
        "comparisons/<uuid:comparison>/export/<export:kind>/",
        comparisons.StoredComparisonExport.as_view(),
        name="stored-comparison-export",
    ),
    path(
        "comparisons/<uuid:comparison>/charts/<slug:chart>.<slug:form>",
        comparisons.StoredComparisonChart.as_view(),
        name="stored-comparison-chart",
    ),
    path(
        "collections/<slug:collection>/difference/",
        differences.DifferenceView.as_view(),
        name="difference",
    ),
    path(
        "collections/<slug:collection>/external-measures/",
        value_tables.MeasureDeclarations.as_view(),
        name="measure-declarations",
    ),
    path(
        "collections/<slug:collection>/external-measures/<str:declared>/",
        value_tables.MeasureDeclaration.as_view(),
        name="measure-declaration",
    ),
    path(
        "collections/<slug:collection>/external-measures/<str:declared>/values/",
        value_tables.DeclaredValues.as_view(),
        name="declared-values",
    ),
    path(
        "collections/<slug:collection>/value-tables/",
        value_tables.ValueTableList.as_view(),
        name="value-tables",
    ),
    path("collections/<slug:collection>/what-if/", what_if.WhatIfView.as_view(), name="what-if"),
    path(
        "collections/<slug:collection>/configurations/export/csv/",
        configurations.ConfigurationsExport.as_view(),
        name="configurations-export",
    ),
    path(
        "collections/<slug:collection>/parameters/",
        parameters.ParameterList.as_view(),
        name="parameters",
    ),
    path(
        "collections/<slug:collection>/importance/",
        importance.ImportanceView.as_view(),
        name="importance",
    ),
    path(
        "collections/<slug:collection>/importance/export/<export:kind>/",
        importance.ImportanceExport.as_view(),
        name="importance-export",
    ),
    path(
        "collections/<slug:collection>/frontier/", frontier.FrontierView.as_view(), name="frontier"
    ),
    path(
        "collections/<slug:collection>/frontier/export/<export:kind>/",
        frontier.FrontierExport.as_view(),
        name="frontier-export",
    ),
    path("collections/<slug:collection>/orders/", orders.OrdersView.as_view(), name="orders"),
    path(
        "collections/<slug:collection>/qrels/<int:version>/agreement/",
        agreement.AgreementView.as_view(),
        name="agreement",
    ),
    path(
        "collections/<slug:collection>/qrels/<int:version>/agreement/export/<export:kind>/",
        agreement.AgreementExport.as_view(),
        name="agreement-export",
    ),
    path(
        "collections/<slug:collection>/judgements/",
        judgements.JudgementsView.as_view(),
        name="judgements",
    ),
    path("collections/<slug:collection>/design/", design.DesignView.as_view(), name="design"),
    path(
        "collections/<slug:collection>/charts/<slug:chart>.<slug:form>",
        charts.CollectionChart.as_view(),
        name="collection-chart",
    ),
    path(
        "collections/<slug:collection>/curves/",
        curves_together.CollectionCurvesView.as_view(),
        name="collection-curves",
    ),
    path(
        "collections/<slug:collection>/precision-recall/",
        curves_together.CollectionPrecisionRecallView.as_view(),
        name="collection-precision-recall",
    ),
    path(
        "collections/<slug:collection>/values/",
        matrix.CollectionValuesView.as_view(),
        name="collection-values",
    ),
    path(
        "collections/<slug:collection>/values/export/<matrix_export:kind>/",
        matrix.CollectionValuesExport.as_view(),
        name="collection-values-export",
    ),
    path(
        "collections/<slug:collection>/difficulty/",
        topics.DifficultyView.as_view(),
        name="difficulty",
    ),
    path(
        "collections/<slug:collection>/heat-map/export/csv/",
        topics.HeatMapExport.as_view(),
        name="heat-map-export",
    ),
    path("collections/<slug:collection>/topic/", topics.TopicView.as_view(), name="topic"),
    path(
        "collections/<slug:collection>/evaluations/",
        evaluations.CollectionEvaluations.as_view(),
        name="evaluations",
    ),
    path("runs/<uuid:run>/values/", values.RunValuesView.as_view(), name="run-values"),
    path(
        "runs/<uuid:run>/values/export/<run_value_export:kind>/",
        matrix.RunValuesExport.as_view(),
        name="run-values-export",
    ),
    path("runs/<uuid:run>/curve/", curves.RunCurveView.as_view(), name="run-curve"),
    path(
        "runs/<uuid:run>/precision-recall/",
        curves.PrecisionRecallView.as_view(),
        name="run-precision-recall",
    ),
    path("runs/<uuid:run>/ranking/", rankings.RankingView.as_view(), name="run-ranking"),
    path(
        "runs/<uuid:run>/charts/<slug:chart>.<slug:form>",
        charts.RunChart.as_view(),
        name="run-chart",
    ),
    path(
        "runs/<uuid:run>/evaluations/", evaluations.RunEvaluations.as_view(), name="run-evaluations"
    ),
    path(
        "collections/<slug:collection>/session-leaderboard/",
        session_boards.SessionBoardView.as_view(),
        name="session-board",
    ),
    path(
        "collections/<slug:collection>/session-leaderboard/export/<export:kind>/",
        session_boards.SessionBoardExport.as_view(),
        name="session-board-export",
    ),
    path(
        "collections/<slug:collection>/session-comparison/",
        session_boards.SessionComparisonView.as_view(),
        name="session-comparison",
    ),
    path(
        "collections/<slug:collection>/session-comparison/export/<export:kind>/",
        session_boards.SessionComparisonExport.as_view(),
        name="session-comparison-export",
    ),
    path(_SET + "values/", sessions.SessionValuesView.as_view(), name="session-values"),
    path(_SET + "curves/", sessions.SessionCurvesView.as_view(), name="session-curves"),
    path(_SET + "queries/", sessions.SessionQueriesView.as_view(), name="session-queries"),
    path(_SET + "lengths/", sessions.SessionLengthsView.as_view(), name="session-lengths"),
    path(_SET + "searchers/", sessions.SessionSearchersView.as_view(), name="session-searchers"),
    path(_SET + "evaluations/", sessions.SessionEvaluations.as_view(), name="session-evaluations"),
    path(
        _SET + "charts/<slug:chart>.<slug:form>",
        session_charts.SessionChart.as_view(),
        name="session-chart",
    ),
    path(_SET + "sessions/<str:session>/", sessions.OneSessionView.as_view(), name="one-session"),
    path("systems/", systems.SystemList.as_view(), name="systems"),
    path("systems/<slug:team>/<str:system>/", systems.SystemDetail.as_view(), name="system"),
    path("measures/", measures.MeasureList.as_view(), name="measures"),
    path("measures/<str:measure>/", measures.MeasureDetail.as_view(), name="measure"),
]
