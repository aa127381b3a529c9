"""The API of entries: enter runs into phases, read, order, withdraw and disqualify them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict, cast
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, QueryDict, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.campaigns.api.answers import SHAPES, allowance_answer, entry_answer
from evalhub.campaigns.api.inputs import (
    EntryChangeSerializer,
    EntryUploadSerializer,
    OptionalReasonSerializer,
    PrioritiesSerializer,
    ReasonSerializer,
    StoredEntrySerializer,
)
from evalhub.campaigns.exports.entry_table import entries_csv
from evalhub.campaigns.questions.lookup import (
    entries_of,
    organised_phase,
    own_participation,
    participation_of,
    visible_entry,
    visible_phase,
)
from evalhub.campaigns.services.campaigns import check_organiser
from evalhub.campaigns.services.entering import EntryRequest, EntryUpload, enter_run, enter_stored
from evalhub.campaigns.services.entries import (
    allowance,
    change_entry,
    check_may_change,
    disqualify_entry,
    order_priorities,
    ordered,
    publish_entry,
    set_paper,
    withdraw_entry,
)
from evalhub.campaigns.services.pooled import pooled_runs_seen
from metrics.questions.parameters import query_of
from metrics.services.queue.queueing import queue_submitted, try_damaged_again
from metrics.services.queue.status import statuses
from runs.api.answers import CheckedRun, checked_run
from runs.api.collections.collections import either, upload_fields
from runs.errors import InvalidInput, NotAllowed
from runs.models import Campaign, Collection, Entry, Participation, Phase, Run, Scope, User
from runs.parameters import choice_in
from runs.services import clock
from runs.web import idempotency
from runs.web.json_bodies import JSONParser
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.permissions import Access
from runs.web.shapes import shape
from runs.web.uploads import FILE_PARSERS, query_fields

_ENTRY_FIELDS = ("run_type", "priority", "answers", "role", "label", "reason")


class EntryRefusal(TypedDict):
    """Why a phase does not take an entry at this time."""

    code: str
    detail: str


class CheckedEntry(CheckedRun):
    """The answer to a dry run of an entry. The file fits the phase in every state of the phase."""

    refusal: Annotated[EntryRefusal | None, "why the phase would not take it now; null: it would"]


def _fresh_answer(request: Request, pk: UUID) -> Any:
    entry = visible_entry(request, pk)
    run_state = statuses([entry.run], request.user)[str(entry.run_id)]

    pooled = pooled_runs_seen(entry.phase, request.user)

    return entry_answer(request, entry, run_state, pooled)


def _receipt(request: Request, entry: Entry, new: bool) -> Response:
    """Answer with an entry and what is left to its team."""
    data = _fresh_answer(request, entry.pk)
    team = entry.participation
    data["allowance"] = (
        allowance_answer(allowance(entry.phase, team, entry.arrived_at)) if team else None
    )
    code = status.HTTP_201_CREATED if new else status.HTTP_200_OK

    return Response(data, code, headers={"Location": data["url"]})


def _may_enter(request: Request, body: Any, campaign: str, phase: str) -> bool:
    return bool(entries_of(request.user).filter(pk=body["id"]).exists())


def _sees_entry(request: Request, body: Any, entry: UUID) -> bool:
    return bool(entries_of(request.user).filter(pk=entry).exists())


def _organises_entry(request: Request, body: Any, entry: UUID) -> bool:
    organised = Campaign.objects.organised_by(request.user)
    return bool(Entry.objects.filter(pk=entry, phase__campaign__in=organised).exists())


def _entry_request(request: Request, phase: Phase, fields: dict[str, Any]) -> EntryRequest:
    """Return the request for an entry, and take its fields out of those of its run.

    Raise InvalidInput for a team that does not take part; NotAllowed for a user without a team in
    the campaign, for acts of organisers, and where the user does not see the collection.
    """
    team_slug = fields.pop("on_behalf_of")
    entry_fields = {name: fields.pop(name) for name in _ENTRY_FIELDS}

    # The team for which the run is entered; None for the organisers.
    team: Participation | None = None
    if team_slug:
        check_organiser(phase.campaign, request.user)
        teams = phase.campaign.participations.select_related("team")
        team = teams.filter(team__slug=team_slug).first()
        if team is None:
            raise InvalidInput(
                f"no team {team_slug[:64]!r} takes part",
                code="unknown_team",
                pointer="/on_behalf_of",
            )
    elif entry_fields["role"] == Entry.Role.COMPETING:
        team = participation_of(request.user, phase.campaign)
        if team is None:
            raise NotAllowed(f"only members of a team in campaign {phase.campaign} can enter runs")
    else:
        check_organiser(phase.campaign, request.user)

    if not Collection.objects.visible_to(request.user).filter(pk=phase.collection_id).exists():
        raise NotAllowed("you do not see the collection of this phase; ask the organisers")

    return EntryRequest(
        phase=phase,
        user=cast(User, request.user),
        arrived_at=request.arrived_at,  # type: ignore[attr-defined]
        participation=team,
        origin=origin_of(request),
        on_behalf=bool(team_slug),
        **entry_fields,
    )


class EntryList(AnswerList[Entry]):
    """The entries of a phase that the caller sees: organisers see all, members those of their team. With `format=csv` all
    of them come as a file, with answers, parameters, costs and times.

    POST enters a run: a file, or as JSON a run that the team has in the collection already.
    """

    serializer_class = SHAPES["entry"]
    scopes = {"POST": Scope.SUBMIT}
    parser_classes = (*FILE_PARSERS, JSONParser)
    problems_of_bodies = (422,)
    queryset = Entry.objects.none()

    def get_queryset(self) -> QuerySet[Entry]:
        if getattr(self, "swagger_fake_view", False):
            return Entry.objects.none()
        phase = visible_phase(self.request, self.kwargs["campaign"], self.kwargs["phase"])
        return entries_of(self.request.user).filter(phase=phase).order_by("number")

    @extend_schema(
        responses={
            (200, "application/json"): SHAPES["entry"],
            (200, "text/csv"): OpenApiTypes.STR,
        },
        parameters=[OpenApiParameter("format", enum=("json", "csv"), description="default: json")],
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        if choice_in(query_of(request), "format", ("json", "csv")) != "csv":
            return super().get(request, *args, **kwargs)

        phase = visible_phase(request, kwargs["campaign"], kwargs["phase"])

        def evaluation_states(entries: Sequence[Entry]) -> dict[str, str]:
            states = statuses([entry.run for entry in entries], request.user)
            return {run: state.state for run, state in states.items()}

        name = f"{phase.campaign.slug}-{phase.slug}-entries.csv"
        return StreamingHttpResponse(
            entries_csv(self.get_queryset(), phase.form, evaluation_states),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        states = statuses([entry.run for entry in page], request.user)
        # They are all of one phase.
        pooled = pooled_runs_seen(page[0].phase, request.user) if page else None

        return self.get_paginated_response(
            [entry_answer(request, entry, states[str(entry.run_id)], pooled) for entry in page]
        )

    @extend_schema(
        request={
            "multipart/form-data": EntryUploadSerializer,
            "application/json": StoredEntrySerializer,
        },
        responses={
            201: SHAPES["entry"],
            200: either("EntryOrCheck", SHAPES["entry"], shape(CheckedEntry)),
        },
        parameters=[*query_fields(EntryUploadSerializer), idempotency.PARAMETER],
    )
    def post(self, request: Request, campaign: str, phase: str) -> Response:
        # The whole body is read here, and nothing else comes before the clock.
        _ = request.data
        request.arrived_at = clock.database_now()  # type: ignore[attr-defined]
        return self._enter(request, campaign=campaign, phase=phase)

    @idempotency.idempotent(_may_enter)
    def _enter(self, request: Request, campaign: str, phase: str) -> Response:
        visible = visible_phase(request, campaign, phase)
        if not isinstance(request.data, QueryDict) and not request.FILES:
            return self._enter_stored(request, visible)

        receipts: list[Response] = []

        def accept(run: Run) -> None:
            """In the transaction that stores it, queue its evaluation and store the receipt."""
            queue_submitted(run)
            entries = Entry.objects.select_related("phase", "participation")
            entry = entries.get(phase=visible, run=run)
            receipts.append(_receipt(request, entry, True))
            idempotency.remember(request, lambda: receipts[0])

        with upload_fields(request, EntryUploadSerializer) as fields:
            dry_run = fields.pop("dry_run")
            entry_request = _entry_request(request, visible, fields)
            fields["file"] = fields["file"].path
            participation = entry_request.participation
            upload = EntryUpload(
                collection=visible.collection,
                team=participation.team if participation else visible.campaign.team,
                user=entry_request.user,
                origin=entry_request.origin,
                request=entry_request,
                **fields,
            )

            if dry_run:
                upload.check_answers()
                run = upload.check_file()
                refused = upload.refusal_now(run)
                refusal = (
                    EntryRefusal(code=refused.code, detail=refused.message) if refused else None
                )

                return Response(CheckedEntry(**checked_run(run), refusal=refusal))

            entry, new = enter_run(upload=upload, enqueue=accept, again=try_damaged_again)

        if receipts:
            return receipts[0]

        response = _receipt(request, entry, new)
        idempotency.remember(request, lambda: response)

        return response

    def _enter_stored(self, request: Request, phase: Phase) -> Response:
        serializer = StoredEntrySerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = dict(serializer.validated_data)
        entry_request = _entry_request(request, phase, fields)
        pk = fields["run"]
        run = (
            Run.objects.visible_to(request.user)
            .select_related("team", "collection")
            .filter(pk=pk)
            .first()
        )
        if run is None:
            raise InvalidInput(
                f"you see no run with the id {pk}", code="unknown_run", pointer="/run"
            )

        with transaction.atomic():
            entry, new = enter_stored(entry_request, run)
            response = _receipt(request, entry, new)
            idempotency.remember(request, lambda: response)

        return response


class EntryDetail(APIView):
    """One entry; PATCH changes its answers and run type while the phase is open, links it to a paper at any
    time, or publishes one of a phase of kind afterwards."""

    scopes = {"PATCH": Scope.SUBMIT}
    problems_of_bodies = (422,)

    @extend_schema(responses=SHAPES["entry"])
    def get(self, request: Request, entry: UUID) -> Response:
        return Response(_fresh_answer(request, entry))

    @extend_schema(request=EntryChangeSerializer, responses=SHAPES["entry"])
    def patch(self, request: Request, entry: UUID) -> Response:
        visible = visible_entry(request, entry)
        serializer = EntryChangeSerializer(data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        changes, origin = dict(serializer.validated_data), origin_of(request)
        if set(changes) != {"paper"}:
            check_may_change(visible, request.user)

        with transaction.atomic():
            if "paper" in changes:
                user, paper = cast(User, request.user), changes.pop("paper")
                set_paper(entry=visible, user=user, paper=paper, origin=origin)
            if changes.pop("published", False):
                publish_entry(entry=visible, user=cast(User, request.user), origin=origin)
            if changes or not serializer.validated_data:
                change_entry(entry=visible, changes=changes, origin=origin)

        return Response(_fresh_answer(request, entry))


class EntryWithdraw(APIView):
    """Withdraw an entry: its slot becomes free, its attempt stays counted."""

    scopes = {"POST": Scope.SUBMIT}
    access = {"POST": Access.TEAM_OR_ORGANISERS}

    @extend_schema(
        request=OptionalReasonSerializer,
        responses=SHAPES["entry"],
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.one_act(_sees_entry)
    def post(self, request: Request, entry: UUID) -> Response:
        visible = visible_entry(request, entry)
        serializer = OptionalReasonSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        reason, user = serializer.validated_data["reason"], cast(User, request.user)
        withdraw_entry(entry=visible, user=user, reason=reason, origin=origin_of(request))

        return Response(_fresh_answer(request, entry))


class EntryDisqualify(APIView):
    """Disqualify an entry, for organisers; the reason is shown with it."""

    scopes = {"POST": Scope.MANAGE}

    @extend_schema(
        request=ReasonSerializer, responses=SHAPES["entry"], parameters=[idempotency.PARAMETER]
    )
    @idempotency.one_act(_organises_entry)
    def post(self, request: Request, entry: UUID) -> Response:
        visible = visible_entry(request, entry)
        check_organiser(visible.phase.campaign, request.user)
        serializer = ReasonSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        disqualify_entry(
            entry=visible, reason=serializer.validated_data["reason"], origin=origin_of(request)
        )

        return Response(_fresh_answer(request, entry))


class PrioritiesView(APIView):
    """The order of a team's entries; PUT sets it at once, while the phase is open."""

    scopes = {"PUT": Scope.SUBMIT}

    @extend_schema(request=PrioritiesSerializer, responses=SHAPES["order"])
    def put(self, request: Request, campaign: str, phase: str) -> Response:
        visible = visible_phase(request, campaign, phase)
        serializer = PrioritiesSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        team = own_participation(request, visible.campaign)
        tags = serializer.validated_data["order"]
        order_priorities(phase=visible, participation=team, tags=tags, origin=origin_of(request))

        return Response({"order": list(ordered(visible, team).values_list("run__tag", flat=True))})


class AllowanceView(APIView):
    """What the caller's team may still enter, or for organisers the team that is named."""

    access = {"GET": Access.PARTICIPANTS}
    signed_in = True
    problems = (403,)

    @extend_schema(
        responses=SHAPES["allowance"],
        parameters=[OpenApiParameter("team", description="for organisers: a team")],
    )
    def get(self, request: Request, campaign: str, phase: str) -> Response:
        slug = request.query_params.get("team")
        if slug is None:
            row = visible_phase(request, campaign, phase)
            team = own_participation(request, row.campaign)
        else:
            row = organised_phase(request, campaign, phase)
            named_team = row.campaign.participations.filter(team__slug=slug).first()
            if named_team is None:
                raise Http404(f"no team {slug[:64]!r} takes part in campaign {campaign}")

            team = named_team

        return Response(allowance_answer(allowance(row, team, clock.database_now())))
