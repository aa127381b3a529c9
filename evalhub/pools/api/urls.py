"""The API of pools."""

from __future__ import annotations

from django.urls import URLPattern, path, register_converter
from django.urls.converters import StringConverter

from evalhub.pools.api import judging, pools, reusability, undecided
from evalhub.pools.exports.files import FORMS


class PoolFormConverter(StringConverter):
    """Match the forms of a pool's files."""

    regex = "|".join(FORMS)


register_converter(PoolFormConverter, "pool_form")

_POOL = "pools/<uuid:pool>/"
# For the assessors of a pool, too.
_ASSIGNED = "pools/<uuid:assigned_pool>/"

urlpatterns: list[URLPattern] = [
    path(
        "campaigns/<slug:campaign>/phases/<slug:phase>/pools/",
        pools.PhasePoolList.as_view(),
        name="phase-pools",
    ),
    path(
        "collections/<slug:collection>/pools/",
        pools.CollectionPoolList.as_view(),
        name="collection-pools",
    ),
    path(
        "collections/<slug:collection>/reusability/",
        reusability.ReusabilityView.as_view(),
        name="reusability",
    ),
    path(
        "collections/<slug:collection>/reusability/export/<export:kind>/",
        reusability.ReusabilityExport.as_view(),
        name="reusability-export",
    ),
    path(
        "collections/<slug:collection>/undecided/",
        undecided.UndecidedView.as_view(),
        name="undecided",
    ),
    path(_POOL, pools.PoolView.as_view(), name="pool"),
    path(_POOL + "freeze/", pools.PoolFreeze.as_view(), name="pool-freeze"),
    path(_POOL + "statistics/", pools.PoolStatisticsView.as_view(), name="pool-statistics"),
    path(
        _POOL + "files/<path:topic>.<pool_form:file_form>",
        pools.PoolFile.as_view(),
        name="pool-file",
    ),
    path(_POOL + "files.zip", pools.PoolArchive.as_view(), name="pool-archive"),
    path(_ASSIGNED + "assignments/", judging.AssignmentList.as_view(), name="pool-assignments"),
    path(
        _POOL + "assignments/<str:username>/<path:topic>/",
        judging.AssignmentView.as_view(),
        name="pool-assignment",
    ),
    path(_ASSIGNED + "documents/", judging.DocumentList.as_view(), name="pool-documents"),
    path(_ASSIGNED + "judgements/", judging.JudgementList.as_view(), name="pool-judgements"),
    path(_POOL + "conflicts/", judging.ConflictList.as_view(), name="pool-conflicts"),
    path(_POOL + "adjudications/", judging.AdjudicationList.as_view(), name="pool-adjudications"),
    path(_POOL + "agreement/", judging.PoolAgreementView.as_view(), name="pool-agreement"),
    path(_POOL + "qrels/", judging.JudgedVersionList.as_view(), name="pool-qrels"),
]
