"""The script that makes charts interactive."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from metrics.charts.bundle import BUNDLE_NAME, read_bundle
from runs.web.views import page

_FOR_GOOD = "public, max-age=31536000, immutable"


@page
def vega_script(request: HttpRequest, name: str) -> HttpResponse:
    """Return Vega in one compressed file, under a name that changes with its content.

    Every current browser accepts gzip.
    """
    if name != BUNDLE_NAME:
        raise Http404("there is no such script")

    headers = {"Content-Encoding": "gzip", "Cache-Control": _FOR_GOOD}
    return HttpResponse(
        read_bundle(), content_type="text/javascript; charset=utf-8", headers=headers
    )
