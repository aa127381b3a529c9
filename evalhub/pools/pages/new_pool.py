"""The page on which organisers make a pool; it shows what a pool would have before it is made."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from evalhub.campaigns.questions.lookup import organised_phase
from evalhub.pools.pages.pools import depth_table
from evalhub.pools.questions.lookup import planned_pool
from evalhub.pools.questions.recipes import PoolSerializer
from evalhub.pools.services.pools import PoolPlan, store_draft
from metrics.engine.errors import EvalHubError
from runs.errors import InvalidInput
from runs.models import Collection, Phase, Scope, User
from runs.web.access import managed_collection
from runs.web.forms import FormPage, Refusal, redirect_to, refusal_of, render_form
from runs.web.origin import origin_of
from runs.web.permissions import Access

_TEXTS = ("k", "budget", "n", "p", "seed", "note")
_PROPOSED = {"method": "depth", "k": "10", "by": "rrf", "only_new": "true"}


class NewPoolPage(FormPage):
    """Make a pool of the runs of a collection."""

    scopes = {"POST": Scope.MANAGE}
    access = {"GET": Access.ORGANISERS}
    fields = (
        "method", *_TEXTS, "by", "strata", "priorities", "baselines", "topics", "extra", "only_new",
        "action",
    )  # fmt: skip

    def place(self, request: Request, **names: str) -> tuple[Collection, Phase | None]:
        return managed_collection(request, names["collection"]), None

    def get(self, request: Request, **names: str) -> HttpResponse:
        return self.show(request, *self.place(request, **names), _PROPOSED)

    def show(
        self,
        request: Request,
        collection: Collection,
        phase: Phase | None,
        values: Any,
        refusal: Refusal | None = None,
        plan: PoolPlan | None = None,
    ) -> HttpResponse:
        table = None
        if plan:
            tags = [contributor.run.tag for contributor in plan.contributors]
            counts = plan.content.table
            rows = {"depths": counts.depths, "documents": counts.documents}
            table = depth_table(tags, list(plan.content.depths), rows)

        context = {
            "collection": collection,
            "phase": phase,
            "form_values": values,
            "plan": plan,
            "table": table,
        }
        response = render_form(request, "pools/new.html", context, refusal)
        response["Cache-Control"] = "no-store"
        return response

    def post(self, request: Request, **names: str) -> HttpResponse:
        collection, phase = self.place(request, **names)
        values = {name: str(request.data.get(name, "")) for name in self.fields}
        try:
            serializer = PoolSerializer(data=_body(values))
            serializer.is_valid(raise_exception=True)
            plan = planned_pool(request, collection, phase, serializer.validated_data)
            if values["action"] != "make":
                # The draft that follows is the one that was shown.
                values["seed"] = str(plan.seed)
                return self.show(request, collection, phase, values, plan=plan)

            pool = store_draft(plan=plan, user=cast(User, request.user), origin=origin_of(request))
        except (EvalHubError, APIException) as error:
            return self.show(request, collection, phase, values, refusal_of(error))

        messages.success(request, f"Pool {pool.number} is a draft; freeze it to have it judged.")
        return redirect_to(request, reverse("pool-page", args=[pool.pk]))


class NewPhasePoolPage(NewPoolPage):
    """Make a pool of the entries of a phase."""

    def place(self, request: Request, **names: str) -> tuple[Collection, Phase | None]:
        phase = organised_phase(request, names["campaign"], names["phase"])
        return phase.collection, phase


def _body(values: dict[str, str]) -> dict[str, Any]:
    """Return the fields of the form as the API takes them. Raise InvalidInput for a bad line."""
    method = values["method"]
    body: dict[str, Any] = {
        "method": method,
        "only_new": values["only_new"] == "true",
        "baselines": values["baselines"] == "true",
    }
    # Fields of the other methods stay on the page and are not sent.
    of_method = {"depth": ("k", "budget"), "take": ("k", "n", "by"), "sample": ("strata",)}
    for name in (*of_method.get(method, ()), "seed", "note"):
        if values[name].strip() and name != "strata":
            body[name] = values[name].strip()
    if method == "take" and values["by"] == "rbp" and values["p"].strip():
        body["p"] = values["p"].strip()
    if method == "sample":
        body["strata"] = _strata(values["strata"])

    if values["priorities"].strip():
        body["priorities"] = values["priorities"].replace(",", " ").split()
    if values["topics"].strip():
        body["topics"] = values["topics"].replace(",", " ").split()
    if values["extra"].strip():
        body["extra"] = _extra(values["extra"])
    return body


def _strata(text: str) -> list[dict[str, Any]]:
    strata = []
    for line in text.strip().splitlines():
        ranks, _, rate = line.strip().partition(" ")
        first, _, last = ranks.partition("-")
        if not (first and last and rate.strip()):
            message = f"{line[:40]!r} is not a stratum; write ranks and a rate, as in: 11-100 0.1"
            raise InvalidInput(message, pointer="/strata")
        strata.append({"ranks": [first, last], "rate": rate.strip()})
    return strata


def _extra(text: str) -> list[dict[str, str]]:
    documents = []
    for line in text.strip().splitlines():
        topic_id, _, doc_id = line.strip().partition(" ")
        if not doc_id.strip():
            message = f"{line[:40]!r} has no document; write a topic, a blank and a document"
            raise InvalidInput(message, pointer="/extra")
        documents.append({"topic_id": topic_id, "doc_id": doc_id.strip()})
    return documents
