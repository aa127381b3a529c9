"""The pages that a share link opens: one leaderboard, comparison or run, read-only, without links to anything else.

Every request checks the link again (`runs/services/shares.py`), and reads what its maker sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.conf import settings
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from metrics.charts.figure import Figure
from metrics.charts.look import PALETTES, SIZES, Look
from metrics.charts.rendering import FORMATS
from metrics.charts.rendering import render as render_chart
from metrics.engine.errors import EvalHubError
from metrics.pages.boards import shared as boards
from metrics.pages.comparisons import shared as comparisons
from metrics.pages.parts import ShownFigure
from metrics.pages.values import shared as values
from metrics.services.snapshots import read_in_snapshot
from metrics.services.work import begin_drawing
from runs.api.origin import network_of, sender_of
from runs.api.parameters import text_of
from runs.errors import LimitReached, NotFound
from runs.models import ShareLink
from runs.parameters import choice_in
from runs.services.rates import RATES
from runs.services.shares import no_share, open_share, opened_share, proof_of
from runs.views import View, answer_of_the_api, checked, reads

_COOKIE, _SALT = "evalhub_share", "evalhub.share"
_DRAWN_AS = ("svg", "png", "pdf", "csv")


@dataclass(frozen=True)
class Object:
    """A kind of shared object: its template and what fills it, its files and its charts.

    Each function takes the link first; `page` takes the parameters of the request too.
    """

    template: str
    page: Callable[[ShareLink, Mapping[str, str]], tuple[dict[str, Any], int]]
    file: Callable[[ShareLink, str], HttpResponseBase]
    files: Mapping[str, str]
    chart: Callable[[ShareLink, str], Figure]
    size: str = "column"


OBJECTS = {
    ShareLink.Kind.LEADERBOARD: Object(
        "metrics/shared/leaderboard.html", boards.page, boards.file, boards.FILES, boards.chart
    ),
    ShareLink.Kind.COMPARISON: Object(
        "metrics/shared/comparison.html",
        comparisons.page,
        comparisons.file,
        comparisons.FILES,
        comparisons.chart,
    ),
    ShareLink.Kind.RUN: Object(
        "metrics/shared/run.html", values.page, values.file, values.FILES, values.chart, "half"
    ),
}


def _unlisted(view: View) -> View:
    """Decorate a page of a share link: refusals are pages without links, no search engine lists it, and no link of it
    tells its address."""

    @wraps(view)
    def guarded(request: HttpRequest, **names: str) -> HttpResponseBase:
        try:
            response = view(request, **names)
        except (EvalHubError, Http404, OperationalError) as error:
            answer = answer_of_the_api(error)
            context = {"status": answer.status_code, "detail": answer.data["detail"]}
            response = render(
                request, "metrics/shared/refused.html", context, status=answer.status_code
            )
            if wait := answer.headers.get("Retry-After"):
                response["Retry-After"] = wait
        response["Referrer-Policy"] = "no-referrer"
        response["X-Robots-Tag"] = "noindex, nofollow"
        return response

    return require_safe(guarded)


@_unlisted
@reads()
def open_page(request: HttpRequest, share: str) -> HttpResponse:
    """Redirect a share link to its page, with a cookie for that page alone: no address has the secret from then on."""
    try:
        link = open_share(key=share, secret=getattr(request, "share_secret", ""))
    except NotFound:
        wait = RATES.take(f"share:{network_of(sender_of(request))}", settings.EVALHUB_LOGIN_RATE)
        if wait:
            message = "too many share links from this address that do not exist; try again later"
            raise LimitReached(message, wait=wait) from None
        raise
    path = reverse("shared-page", args=[link.key])
    response = HttpResponseRedirect(path)
    response.set_signed_cookie(
        _COOKIE,
        proof_of(link),
        salt=f"{_SALT}.{link.key}",
        max_age=int((link.expires_at - timezone.now()).total_seconds()),
        path=path,
        secure=settings.EVALHUB_HTTPS,
        httponly=True,
        samesite="Lax",
    )
    response["Cache-Control"] = "no-store"
    return response


def _link_of(request: HttpRequest, key: str) -> ShareLink:
    proof = request.get_signed_cookie(_COOKIE, default=None, salt=f"{_SALT}.{key}")
    if not proof:
        raise no_share()
    return opened_share(key=key, proof=proof)


@_unlisted
@checked
@reads("offset")
def shared_page(request: HttpRequest, share: str) -> HttpResponse:
    """Show what a link opens."""
    link = _link_of(request, share)
    kind = OBJECTS[ShareLink.Kind(link.kind)]

    def read() -> tuple[dict[str, Any], int]:
        return kind.page(link, text_of(request.GET))

    context, status = read_in_snapshot(read)
    names = [
        (words, reverse("shared-file", args=[link.key, name])) for name, words in kind.files.items()
    ]
    context |= {"link": link, "collection": link.collection, "files": names}
    context["charts"] = [_picture(link, figure, kind.size) for figure in context.get("figures", [])]
    return render(request, kind.template, context, status=status)


def _picture(link: ShareLink, figure: Figure, size: str) -> ShownFigure:
    """Return a chart of the page, with the addresses of its images and files."""
    figure = figure if figure.source else figure.drawn_from(link.collection)
    return ShownFigure(figure, "shared-chart", {"share": link.key}, {}, size)


@_unlisted
@checked
@reads()
def shared_file(request: HttpRequest, share: str, kind: str) -> HttpResponseBase:
    """Send an export of what a link opens."""
    link = _link_of(request, share)
    found = OBJECTS[ShareLink.Kind(link.kind)]
    if kind not in found.files:
        raise Http404("there is no such file of this page")
    return found.file(link, kind)


@_unlisted
@checked
@reads("theme", "size")
def shared_chart(request: HttpRequest, share: str, chart: str, form: str) -> HttpResponse:
    """Draw a chart of what a link opens."""
    link, query = _link_of(request, share), text_of(request.GET)
    if form not in _DRAWN_AS:
        raise Http404("there is no such chart of this page")
    look = Look(
        theme=choice_in(query, "theme", tuple(PALETTES)) or "light",
        size=choice_in(query, "size", tuple(SIZES)) or "column",
    )
    begin_drawing()
    figure = OBJECTS[ShareLink.Kind(link.kind)].chart(link, chart)
    figure = figure if figure.source else figure.drawn_from(link.collection)
    response = HttpResponse(
        render_chart(figure, look, form), content_type=FORMATS[form].content_type
    )
    response["Content-Disposition"] = (
        f'{"attachment" if form == "csv" else "inline"}; filename="{figure.file_name(form)}"'
    )
    return response
