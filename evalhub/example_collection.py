"""The button of an empty server that loads the simulated collection of `evalhub demo`."""

from __future__ import annotations

from contextlib import suppress
from typing import cast

from django.http import Http404, HttpResponse
from django.urls import reverse
from rest_framework.request import Request

from evalhub.operating.simulation import LABELS, MEASURES, simulate_collection
from metrics.services.queue.queueing import queue_judged, queue_submitted
from runs.errors import Conflict
from runs.models import Scope, User
from runs.models.accounts.accounts import is_staff
from runs.services.audit.trail import Origin
from runs.services.collections.collections import create_collection, import_topics
from runs.services.collections.documents import import_documents
from runs.services.collections.qrels import import_qrels
from runs.services.submissions.runs import RunUpload
from runs.services.submissions.submissions import submit
from runs.web.forms import FormPage, redirect_to
from runs.web.origin import origin_of
from runs.web.permissions import Access
from runs.web.uploads import StoredUpload

_SLUG = "simulated"


class ExampleCollection(FormPage):
    """Create the example collection with its runs, which the workers then evaluate."""

    scopes = {"POST": Scope.MANAGE}
    access = {"POST": Access.ADMINISTRATORS}
    fields = ("action",)

    def post(self, request: Request) -> HttpResponse:
        user = cast(User, request.user)
        if not is_staff(user):
            raise Http404("there is nothing at this address")

        # A conflict: it was loaded before, or is being loaded by another request.
        with suppress(Conflict):
            load_example(user=user, origin=origin_of(request))

        return redirect_to(request, reverse("collection-page", args=[_SLUG]))


def load_example(*, user: User, origin: Origin) -> None:
    """Create the collection with its topics, titles of documents, judgements and runs.

    Raise Conflict if there is such a collection.
    """
    team = user.personal_team
    collection = create_collection(
        origin=origin,
        team=team,
        slug=_SLUG,
        name="Simulated collection",
        description="Simulated data: no real systems.",
        simulated=True,
        level_labels=LABELS,
        measures=MEASURES,
    )
    simulated = simulate_collection()

    with _stored("topics.jsonl", simulated.topics) as topics:
        import_topics(collection=collection, upload=topics.path, origin=origin)

    with _stored("documents.tsv", simulated.documents) as documents:
        import_documents(collection=collection, upload=documents.path, origin=origin)

    with _stored("qrels", simulated.qrels) as qrels:
        import_qrels(
            collection=collection,
            user=user,
            upload=qrels.path,
            activate=True,
            enqueue=queue_judged,
            origin=origin,
        )

    for tag, content in simulated.runs.items():
        with _stored(tag, content) as run:
            submit(
                upload=RunUpload(
                    collection=collection,
                    team=team,
                    user=user,
                    file=run.path,
                    tag=tag,
                    origin=origin,
                ),
                enqueue=queue_submitted,
            )


def _stored(name: str, content: str) -> StoredUpload:
    upload = StoredUpload(name)
    upload.append(content.encode())
    return upload
