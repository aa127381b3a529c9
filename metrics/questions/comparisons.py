"""The stored comparison that a request names."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest
from rest_framework.request import Request

from metrics.models import Comparison
from metrics.services.comparisons.content import digest_of
from runs.errors import StoredValueCorrupt

# Columns that are read when they are needed.
_LONG = ("qrels__topic_ids", "content", "traceback")


def stored_comparison(request: HttpRequest | Request, comparison: UUID) -> Comparison:
    """Return a stored comparison.

    Raise Http404 if the user may not see the scores, so that not even its state is revealed.
    """
    visible = Comparison.objects.visible_to(request.user).select_related("qrels__collection")
    stored = visible.defer(*_LONG).filter(pk=comparison).first()
    if stored is None:
        raise Http404(f"there is no comparison {comparison}")

    if digest_of(stored.query) != stored.digest:
        raise StoredValueCorrupt(
            f"what comparison {comparison} was asked is damaged, and nothing is shown of it; "
            "request it again"
        )

    return stored
