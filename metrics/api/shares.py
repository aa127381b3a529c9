"""The API of share links: read-only addresses of one leaderboard, comparison or run."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict, cast

import django_filters
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from metrics.questions.shares import shared_in
from runs import models
from runs.models import Scope, User
from runs.models.sharing.shares import MAX_SHARED_QUERY
from runs.services.sharing.shares import create_share, revoke_share
from runs.web.fields import ChoiceField
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.permissions import Access
from runs.web.shapes import OneOf, Url, shape


class ShareLink(TypedDict):
    key: str
    kind: Annotated[str, OneOf(models.ShareLink.Kind.values)]
    collection: str
    target: Annotated[str, "the id of the run or stored comparison"]
    query: Annotated[str, "the parameters of the leaderboard or comparison"]
    created_by: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    opened: Annotated[int, "how often"]
    last_opened_on: Annotated[str | None, "the last day, in UTC"]


class NewShareLink(ShareLink):
    """A link that was just made; `url` is shown this once."""

    url: Url


def share_answer(link: models.ShareLink) -> ShareLink:
    return ShareLink(
        key=link.key,
        kind=link.kind,
        collection=link.collection.slug,
        target=link.target,
        query=link.query,
        created_by=link.created_by.username,
        created_at=link.created_at,
        expires_at=link.expires_at,
        revoked_at=link.revoked_at,
        opened=link.opened,
        last_opened_on=link.last_opened_on.isoformat() if link.last_opened_on else None,
    )


class ShareLinkSerializer(KnownFields, serializers.Serializer[Any]):
    """What to share, and for how long."""

    answered = NewShareLink
    kind = ChoiceField(choices=models.ShareLink.Kind.choices)
    collection = serializers.CharField(
        max_length=64, required=False, help_text="of a leaderboard or comparison"
    )
    run = serializers.UUIDField(required=False, help_text="of kind run")
    comparison = serializers.UUIDField(required=False, help_text="of kind comparison: a stored one")
    query = serializers.CharField(
        max_length=3 * MAX_SHARED_QUERY,
        required=False,
        allow_blank=True,
        help_text="the query string of the leaderboard or comparison; of a run its measures",
    )
    expires_at = serializers.DateTimeField(
        required=False, help_text="default: in 30 days; at most 366 days away"
    )


class ShareLinkFilter(django_filters.FilterSet):  # type: ignore[misc]
    collection = django_filters.CharFilter(field_name="collection__slug")
    kind = django_filters.ChoiceFilter(choices=models.ShareLink.Kind.choices)


class ShareLinkList(AnswerList[models.ShareLink]):
    """The caller's share links, and those to collections that the caller organises; POST makes one
    and shows its address once."""

    serializer_class = shape(ShareLink)
    answer = staticmethod(share_answer)
    filterset_class = ShareLinkFilter
    queryset = models.ShareLink.objects.none()
    signed_in = True
    scopes = {"POST": Scope.MANAGE}
    # Of what is shared; members of a team share its runs, too.
    access = {"POST": Access.ORGANISERS}
    problems = (404,)

    def get_queryset(self) -> QuerySet[models.ShareLink]:
        return managed_shares(self.request)

    @extend_schema(request=ShareLinkSerializer, responses={201: shape(NewShareLink)})
    def post(self, request: Request) -> Response:
        serializer = ShareLinkSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)

        fields = serializer.validated_data
        link, secret = create_share(
            shared=shared_in(request, fields),
            by=cast(User, request.user),
            expires_at=fields.get("expires_at"),
            origin=origin_of(request),
        )

        # The secret is shown this once.
        url = f"{reverse('open-share', [link.key], request=request)}{secret}/"
        answer = Response(NewShareLink(**share_answer(link), url=url), status.HTTP_201_CREATED)
        answer["Cache-Control"] = "no-store"

        return answer


class ShareLinkDetail(APIView):
    """One share link; DELETE revokes it. Its maker and organisers of the collection may."""

    scopes = {"DELETE": Scope.MANAGE}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, share: str) -> Response:
        link = managed_shares(request).filter(key=share, revoked_at=None).first()
        if link is None:
            raise Http404(f"there is no share link {share[:20]!r} of yours")

        revoke_share(link=link, origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def managed_shares(request: Request) -> QuerySet[models.ShareLink]:
    links = models.ShareLink.objects.managed_by(request.user)
    return links.select_related("collection", "created_by").order_by("-created_at", "-pk")
