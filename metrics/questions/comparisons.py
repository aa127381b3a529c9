"""The stored comparison that a request names."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest
from rest_framework.request import Request

from metrics.models import Comparison
from metrics.services.comparisons.content import digest_of
from runs.errors import StoredValueCorrupt

_LONG = ("qrels__topic_ids", "content", "traceback")


def stored_comparison(request: HttpRequest | Request, comparison: UUID) -> Comparison:
    """Return a stored comparison. Raise NotFound if the user may not see the scores, so that not even its state is
    revealed."""
    visible = (
        Comparison.objects.visible_to(request.user)
        .select_related("qrels__collection")
        .defer(*_LONG)
    )
    found = visible.filter(pk=comparison).first()
    if found is None:
        raise Http404(f"there is no comparison {comparison}")
    if digest_of(found.query) != found.digest:
        message = f"what comparison {comparison} was asked is damaged, and nothing is shown of it; request it again"
        raise StoredValueCorrupt(message)
    return found
