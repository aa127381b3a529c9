"""Pages of pools."""

from __future__ import annotations

from django.urls import URLPattern, path

from evalhub.pools.pages import pools
from evalhub.pools.pages.judge import JudgePage, JudgingPage
from evalhub.pools.pages.judging_desk import JudgingDeskPage
from evalhub.pools.pages.new_pool import NewPhasePoolPage, NewPoolPage
from evalhub.pools.pages.reusability import reusability_page

_PHASE = "campaigns/<slug:campaign>/phases/<slug:phase>/"

urlpatterns: list[URLPattern] = [
    path(
        "collections/<slug:collection>/pools/",
        pools.collection_pools_page,
        name="collection-pools-page",
    ),
    path("collections/<slug:collection>/new-pool/", NewPoolPage.as_view(), name="new-pool-page"),
    path("collections/<slug:slug>/reusability/", reusability_page, name="reusability-page"),
    path(_PHASE + "pools/", pools.phase_pools_page, name="phase-pools-page"),
    path(_PHASE + "new-pool/", NewPhasePoolPage.as_view(), name="new-phase-pool-page"),
    path("pools/<uuid:pool>/", pools.pool_page, name="pool-page"),
    path("judging/", JudgingPage.as_view(), name="judging-page"),
    path("pools/<uuid:assigned_pool>/judge/", JudgePage.as_view(), name="judge-page"),
    path("pools/<uuid:pool>/judging/", JudgingDeskPage.as_view(), name="judging-desk-page"),
    path("pools/<uuid:pool>/act/", pools.PoolActPage.as_view(), name="pool-act-page"),
]
