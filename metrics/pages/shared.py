"""The pages that share links open: one leaderboard, comparison or run, read-only, without links
to anything else.

Each is the ordinary page in another frame, without the parts that belong to one reader. Every
request checks the link again (`runs/services/sharing/shares.py`) and reads what its maker sees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
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
from metrics.exports.boards import EXPORTS as BOARD_EXPORTS
from metrics.exports.comparisons import EXPORTS as COMPARISON_EXPORTS
from metrics.exports.values.run_values import RUN_VALUE_EXPORTS
from metrics.pages.boards import shared as boards
from metrics.pages.comparisons import shared as comparisons
from metrics.pages.parts import shared_figure
from metrics.pages.values import shared as values
from metrics.services.snapshots import read_in_snapshot
from metrics.services.work import begin_drawing
from runs.errors import LimitReached, NotFound
from runs.models import ShareLink
from runs.parameters import choice_in
from runs.services.audit.rates import RATES
from runs.services.sharing.shares import no_share, open_share, opened_share, proof_of
from runs.web.origin import network_of, sender_of
from runs.web.parameters import text_of
from runs.web.views import View, answer_of_the_api, check_parameters, reads

_COOKIE, _SALT = "evalhub_share", "evalhub.share"
_CHART_FORMATS = ("svg", "png", "pdf", "csv")


@dataclass(frozen=True)
class Kind:
    """What is needed to serve one kind of link: its page, its files and its charts.

    Each function takes the link first. `page` takes the parameters of the request too, and returns
    the template of the page, its context and its status.
    """

    page: Callable[[ShareLink, Mapping[str, str]], tuple[str, dict[str, Any], int]]
    file: Callable[[ShareLink, str], HttpResponseBase]
    files: Collection[str]
    chart: Callable[[ShareLink, str], Figure]


KINDS = {
    ShareLink.Kind.LEADERBOARD: Kind(boards.page, boards.file, BOARD_EXPORTS, boards.chart),
    ShareLink.Kind.COMPARISON: Kind(
        comparisons.page, comparisons.file, COMPARISON_EXPORTS, comparisons.chart
    ),
    ShareLink.Kind.RUN: Kind(values.page, values.file, RUN_VALUE_EXPORTS, values.chart),
}


def _kind_of(link: ShareLink) -> Kind:
    return KINDS[ShareLink.Kind(link.kind)]


def _unlisted(view: View) -> View:
    """Decorate a page of a share link.

    Its refusals are pages without links, no search engine lists it, and its address is not sent to
    other sites.
    """

    @wraps(view)
    def guarded(request: HttpRequest, **names: str) -> HttpResponseBase:
        try:
            response = view(request, **names)
        except (EvalHubError, Http404, OperationalError) as error:
            api_answer = answer_of_the_api(error)
            context = {"status": api_answer.status_code, "detail": api_answer.data["detail"]}
            response = render(
                request, "metrics/shared/refused.html", context, status=api_answer.status_code
            )
            if wait := api_answer.headers.get("Retry-After"):
                response["Retry-After"] = wait

        response["Referrer-Policy"] = "no-referrer"
        response["X-Robots-Tag"] = "noindex, nofollow"

        return response

    return require_safe(guarded)


@_unlisted
@reads()
def open_page(request: HttpRequest, share: str) -> HttpResponse:
    """Redirect a share link to its page and set a cookie for that page.

    From then on no address contains the secret.
    """
    try:
        link = open_share(key=share, secret=getattr(request, "share_secret", ""))
    except NotFound:
        # Guessing keys is limited as guessing passwords is.
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
@check_parameters
@reads("offset")
def shared_page(request: HttpRequest, share: str) -> HttpResponse:
    """Show what a link opens."""
    link = _link_of(request, share)
    kind = _kind_of(link)
    template, context, status = read_in_snapshot(lambda: kind.page(link, text_of(request.GET)))
    context |= {"link": link, "collection": link.collection, "frame": "metrics/shared/base.html"}
    return render(request, template, context, status=status)


@_unlisted
@check_parameters
@reads()
def shared_file(request: HttpRequest, share: str, kind: str) -> HttpResponseBase:
    """Send an export of what a link opens."""
    link = _link_of(request, share)
    if kind not in _kind_of(link).files:
        raise Http404("there is no such file of this page")
    return _kind_of(link).file(link, kind)


@_unlisted
@check_parameters
@reads("theme", "size")
def shared_chart(request: HttpRequest, share: str, chart: str, form: str) -> HttpResponse:
    """Draw a chart of what a link opens."""
    link, query = _link_of(request, share), text_of(request.GET)
    if form not in _CHART_FORMATS:
        raise Http404("there is no such chart of this page")

    look = Look(
        theme=choice_in(query, "theme", tuple(PALETTES)) or "light",
        size=choice_in(query, "size", tuple(SIZES)) or "column",
    )
    begin_drawing()
    figure = shared_figure(_kind_of(link).chart(link, chart), link).figure
    response = HttpResponse(
        render_chart(figure, look, form), content_type=FORMATS[form].content_type
    )
    disposition = "attachment" if form == "csv" else "inline"
    response["Content-Disposition"] = f'{disposition}; filename="{figure.file_name(form)}"'

    return response
