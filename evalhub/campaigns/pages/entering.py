"""The pages on which members of teams and organisers enter runs into phases."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from evalhub.campaigns.api.inputs import (
    EntryChangeSerializer,
    EntryUploadSerializer,
    StoredEntrySerializer,
)
from evalhub.campaigns.pages.desk_pages import answer, frame
from evalhub.campaigns.pages.entry_picture import draw_entry
from evalhub.campaigns.pages.inputs import answer_rows, answers_in
from evalhub.campaigns.pages.phase_words import local_time, summarise_phase
from evalhub.campaigns.questions.lookup import (
    organised_campaign,
    organised_phase,
    own_participation,
    participation_of,
    visible_entry,
    visible_phase,
)
from evalhub.campaigns.services.campaigns import check_organiser, is_organiser
from evalhub.campaigns.services.entering import (
    EntryRequest,
    EntryUpload,
    enter_run,
    enter_stored,
)
from evalhub.campaigns.services.entries import (
    allowance,
    change_entry,
    check_may_change,
    results_stay,
    set_paper,
)
from evalhub.campaigns.services.phase_times import PhaseState
from metrics.engine.errors import EvalHubError
from metrics.services.queue.queueing import queue_submitted, try_damaged_again
from metrics.services.queue.status import statuses
from runs.errors import InvalidInput, NotAllowed
from runs.models import (
    Agreement,
    Campaign,
    Collection,
    Entry,
    Participation,
    Phase,
    Run,
    Scope,
    User,
    sees_board,
    sees_own_results,
)
from runs.services import clock
from runs.web.forms import FormPage, Refusal, redirect_to, refusal_of
from runs.web.origin import origin_of
from runs.web.parameters import check_fields
from runs.web.permissions import Access

_TEXTS = ("run_type", "description", "run")
_OF_ORGANISERS = ("role", "label", "on_behalf_of", "reason")
_ROLES = {
    "baseline": "baseline",
    "out_of_competition": "out of competition",
    "competing": "competing, for a team",
}
# Stored runs of the collection that the form offers.
_OFFERED = 100


class _EntryForm(FormPage):
    """A form for a new or stored run, with the answers to the form of a phase."""

    scopes = {"POST": Scope.SUBMIT}
    template: str
    more: tuple[str, ...] = ()

    def enter(self, request: Request, phase: Phase) -> HttpResponse:
        """Check or enter the run of the form; on a refusal show the form again.

        Raise InvalidInput for an unknown field, and NotAllowed for readers without a team.
        """
        names = ("csrfmiddlewaretoken", "action", "file", "phase", *_TEXTS, *self.more)
        check_fields(request.data, (*names, *(f"answer-{field['key']}" for field in phase.form)))
        self.check(request, phase)

        try:
            with _fields(request, phase, self.more) as fields:
                entry_request = self.entry_request(request, phase, fields)
                if (
                    not Collection.objects.visible_to(request.user)
                    .filter(pk=phase.collection_id)
                    .exists()
                ):
                    raise NotAllowed(
                        "you do not see the collection of this phase; ask the organisers"
                    )

                if "run" in fields:
                    entry, new = enter_stored(entry_request, _own_run(request, fields["run"]))
                else:
                    upload = _upload(phase, entry_request, fields)
                    if request.data.get("action") == "check":
                        return self.page(
                            request, phase, checked=upload.check_file(), missing=_missing(upload)
                        )

                    entry, new = enter_run(
                        upload=upload, enqueue=queue_submitted, again=try_damaged_again
                    )
        except (EvalHubError, APIException) as error:
            return self.page(request, phase, refusal_of(error))

        message = (
            f"Entry {entry.number} received."
            if new
            else f"This run is entry {entry.number} already; nothing changed."
        )
        messages.success(request, message)

        return redirect_to(
            request, reverse("campaign-entry-page", args=[phase.campaign.slug, entry.pk])
        )

    def check(self, request: Request, phase: Phase) -> None:
        """Raise NotAllowed for those who have no such form."""
        raise NotImplementedError

    def entry_request(self, request: Request, phase: Phase, fields: dict[str, Any]) -> EntryRequest:
        raise NotImplementedError

    def about(self, request: Request, phase: Phase) -> dict[str, Any]:
        raise NotImplementedError

    def page(
        self, request: Request, phase: Phase, refused: Refusal | None = None, **values: Any
    ) -> HttpResponse:
        form_values = request.data if request.method == "POST" else {}
        now = clock.database_now()
        context = {
            "campaign": phase.campaign,
            "phase": phase,
            "now": now,
            "form_values": form_values,
            "answers": answer_rows(
                phase.form, answers_in(form_values, phase.form) if form_values else {}
            ),
            "most_bytes": settings.EVALHUB_MAX_UPLOAD_BYTES,
            **self.about(request, phase),
            **values,
        }

        return answer(request, self.template, context, refused)


class EnterPage(_EntryForm):
    """Check a run for a phase, which stores nothing, or enter it."""

    access = {"GET": Access.SIGNED_IN}
    template = "campaigns/enter.html"

    def get(self, request: Request, campaign: str, phase: str) -> HttpResponse:
        phase_to_enter = visible_phase(request, campaign, phase)
        if participation_of(request.user, phase_to_enter.campaign) is None:
            # It says how to take part.
            return HttpResponseRedirect(reverse("campaign-team-page", args=[campaign]))
        return self.page(request, phase_to_enter)

    def post(self, request: Request, campaign: str, phase: str) -> HttpResponse:
        # The whole body is read here, and nothing else comes before the clock.
        _ = request.data
        request.arrived_at = clock.database_now()  # type: ignore[attr-defined]
        return self.enter(request, visible_phase(request, campaign, phase))

    def check(self, request: Request, phase: Phase) -> None:
        own_participation(request, phase.campaign)

    def entry_request(self, request: Request, phase: Phase, fields: dict[str, Any]) -> EntryRequest:
        own = own_participation(request, phase.campaign)
        return EntryRequest(participation=own, **_entry_fields(request, phase, fields))

    def about(self, request: Request, phase: Phase) -> dict[str, Any]:
        own, now = own_participation(request, phase.campaign), clock.database_now()
        summary = summarise_phase(phase, own, now)
        return {
            "own": own,
            "summary": summary,
            "allowance": allowance(phase, own, now),
            "taking": summary.state in (PhaseState.OPEN, PhaseState.LATE),
            "unsigned": _unsigned(request, phase.campaign, own),
            "runs": _offered(phase, own.team_id),
        }


class OwnEntryPage(_EntryForm):
    """Organisers enter a baseline, a run out of competition, or a run for a team."""

    access = {"GET": Access.ORGANISERS, "POST": Access.ORGANISERS}
    template = "campaigns/own_entry.html"
    reads = ("phase",)
    more = _OF_ORGANISERS

    def get(self, request: Request, campaign: str) -> HttpResponse:
        organised = organised_campaign(request, campaign)
        return self.page(
            request, self._phase(request, organised, request.query_params.get("phase", ""))
        )

    def post(self, request: Request, campaign: str) -> HttpResponse:
        _ = request.data
        request.arrived_at = clock.database_now()  # type: ignore[attr-defined]
        organised = organised_campaign(request, campaign)
        return self.enter(
            request, self._phase(request, organised, str(request.data.get("phase", "")))
        )

    def _phase(self, request: Request, campaign: Campaign, slug: str) -> Phase:
        first = campaign.phases.values_list("slug", flat=True).first()
        if first is None:
            raise Http404(f"campaign {campaign} has no phase yet")
        return organised_phase(request, campaign.slug, slug or first)

    def check(self, request: Request, phase: Phase) -> None:
        check_organiser(phase.campaign, request.user)

    def entry_request(self, request: Request, phase: Phase, fields: dict[str, Any]) -> EntryRequest:
        team_slug, team = fields.pop("on_behalf_of"), None
        if team_slug:
            team = (
                phase.campaign.participations.select_related("team")
                .filter(team__slug=team_slug)
                .first()
            )
            if team is None:
                raise InvalidInput(
                    f"no team {team_slug[:64]!r} takes part",
                    code="unknown_team",
                    pointer="/on_behalf_of",
                )
        elif fields["role"] == Entry.Role.COMPETING:
            message = (
                "runs of the organisers do not compete; choose a team to enter for, or another role"
            )
            raise InvalidInput(message, pointer="/role")

        return EntryRequest(
            participation=team, on_behalf=bool(team_slug), **_entry_fields(request, phase, fields)
        )

    def about(self, request: Request, phase: Phase) -> dict[str, Any]:
        accepted = phase.campaign.participations.filter(
            state=Participation.State.ACCEPTED
        ).select_related("team")
        return {
            **frame(phase.campaign, "campaign-entries-page"),
            "phases": list(phase.campaign.phases.all()),
            "accepted": list(accepted),
            "roles": _ROLES,
            "summary": summarise_phase(phase, None, clock.database_now()),
            "runs": _offered(phase, phase.campaign.team_id),
        }


@contextlib.contextmanager
def _fields(request: Request, phase: Phase, more: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the validated fields of a form, and delete the uploaded file afterwards.

    A file that the store has linked stays there.
    """
    with contextlib.ExitStack() as uploads:
        for upload in request.FILES.values():
            uploads.callback(upload.close)

        texts = {name: str(request.data.get(name, "")) for name in (*_TEXTS, *more)}
        data: dict[str, Any] = {name: text for name, text in texts.items() if text}
        data["answers"] = answers_in(request.data, phase.form)
        file = request.FILES.get("file")
        if data.get("run") and not file:
            data.pop("description", None)
            serializer: Any = StoredEntrySerializer(data=data, context={"request": request})
        else:
            data.pop("run", None)
            serializer = EntryUploadSerializer(
                data={**data, **({"file": file} if file else {})}, context={"request": request}
            )

        serializer.is_valid(raise_exception=True)
        yield dict(serializer.validated_data)


def _entry_fields(request: Request, phase: Phase, fields: dict[str, Any]) -> dict[str, Any]:
    """Take the fields of an entry out of those of its run, and return them."""
    fields.pop("on_behalf_of", None)
    own = {
        name: fields.pop(name)
        for name in ("run_type", "priority", "answers", "role", "label", "reason")
    }
    arrived = request.arrived_at  # type: ignore[attr-defined]

    return {
        **own,
        "phase": phase,
        "user": cast(User, request.user),
        "arrived_at": arrived,
        "origin": origin_of(request),
    }


def _upload(phase: Phase, entry_request: EntryRequest, fields: dict[str, Any]) -> EntryUpload:
    fields.pop("dry_run")
    team = entry_request.participation.team if entry_request.participation else phase.campaign.team
    run_fields: dict[str, Any] = {
        "collection": phase.collection,
        "team": team,
        "user": entry_request.user,
        "origin": entry_request.origin,
    }

    return EntryUpload(
        **{**run_fields, **fields, "file": fields["file"].path}, request=entry_request
    )


def _missing(upload: EntryUpload) -> str:
    """Return why a readable file cannot be entered, or an empty text."""
    try:
        upload.check_request()
    except EvalHubError as error:
        return error.message

    return ""


def _own_run(request: Request, pk: Any) -> Run:
    run = (
        Run.objects.visible_to(request.user)
        .select_related("team", "collection")
        .filter(pk=pk)
        .first()
    )
    if run is None:
        raise InvalidInput(f"you see no run with the id {pk}", code="unknown_run", pointer="/run")

    return run


def _offered(phase: Phase, team_pk: int) -> list[Run]:
    """Return runs that a team has in the collection and that are not entered in the phase."""
    rows = Run.objects.filter(collection=phase.collection_id, team=team_pk, deleted_at=None)
    rows = rows.in_rows().ranked()
    return list(
        rows.exclude(entries__phase=phase)
        .only("tag", "created_at")
        .order_by("-created_at")[:_OFFERED]
    )


def _unsigned(request: Request, campaign: Campaign, own: Participation) -> list[Agreement]:
    """Return the agreements that the reader or an owner of the team must still sign."""
    rows = campaign.agreements
    mine = rows.filter(required_of=Agreement.RequiredOf.EACH_MEMBER).exclude(
        signatures__user=request.user.pk
    )
    owners = own.team.memberships.filter(role="owner").values("user")
    theirs = rows.filter(required_of=Agreement.RequiredOf.ONE_OWNER)
    signed = theirs.filter(signatures__participation=own, signatures__user__in=owners).values("pk")

    return [*mine, *theirs.exclude(pk__in=signed)]


class EntryPage(FormPage):
    """An entry with its receipt; its answers can change while the phase is open."""

    scopes = {"POST": Scope.SUBMIT}
    access = {"GET": Access.READERS}

    def get(self, request: Request, campaign: str, entry: Any) -> HttpResponse:
        return self._page(request, _entry(request, campaign, entry))

    def post(self, request: Request, campaign: str, entry: Any) -> HttpResponse:
        stored_entry = _entry(request, campaign, entry)
        form = stored_entry.phase.form
        try:
            if request.data.get("action") == "paper":
                return self._set_paper(request, stored_entry)

            names = (
                "csrfmiddlewaretoken",
                "action",
                "run_type",
                "chosen",
                *(f"answer-{field['key']}" for field in form),
            )
            check_fields(request.data, names)
            check_may_change(stored_entry, request.user)
            fields: dict[str, Any] = {"answers": answers_in(request.data, form)}
            if stored_entry.phase.selection == Phase.Selection.CHOSEN:
                fields["chosen"] = "chosen" in request.data
            if "run_type" in request.data:
                fields["run_type"] = str(request.data["run_type"])

            serializer = EntryChangeSerializer(data=fields, partial=True)
            serializer.is_valid(raise_exception=True)
            change_entry(
                entry=stored_entry, changes=serializer.validated_data, origin=origin_of(request)
            )
        except (EvalHubError, APIException) as error:
            return self._page(request, _entry(request, campaign, entry), refusal_of(error))

        messages.success(request, "Answers saved.")

        return redirect_to(
            request, reverse("campaign-entry-page", args=[campaign, stored_entry.pk])
        )

    def _set_paper(self, request: Request, entry: Entry) -> HttpResponse:
        check_fields(request.data, ("csrfmiddlewaretoken", "action", "paper"))
        user, paper = cast(User, request.user), str(request.data.get("paper", ""))
        serializer = EntryChangeSerializer(data={"paper": paper}, partial=True)
        serializer.is_valid(raise_exception=True)
        set_paper(
            entry=entry,
            user=user,
            paper=serializer.validated_data["paper"],
            origin=origin_of(request),
        )
        messages.success(request, "Link to the paper saved.")
        address = reverse("campaign-entry-page", args=[entry.phase.campaign.slug, entry.pk])

        return redirect_to(request, address)

    def _page(self, request: Request, entry: Entry, refused: Refusal | None = None) -> HttpResponse:
        phase, own, now = entry.phase, entry.participation, clock.database_now()
        summary = summarise_phase(phase, own, now)
        organiser = is_organiser(phase.campaign, request.user)
        mine = participation_of(request.user, phase.campaign) == own and (
            own is not None or organiser
        )
        answers = answers_in(request.data, phase.form) if refused else entry.answers
        choosing = phase.selection == Phase.Selection.CHOSEN and entry.role == Entry.Role.COMPETING
        context = {
            "campaign": phase.campaign,
            "entry": entry,
            "summary": summary,
            "now": now,
            "status": statuses([entry.run], request.user)[str(entry.run_id)],
            "arrived": local_time(entry.arrived_at, phase.zone),
            "allowance": allowance(phase, own, now)
            if own and summary.state != PhaseState.CLOSED
            else None,
            "answers": answer_rows(phase.form, answers),
            "form_values": request.data
            if refused
            else {"run_type": entry.run_type, "chosen": entry.chosen, "paper": entry.paper},
            "linking": organiser or mine,
            "choosing": choosing,
            "phase": phase,
            "organiser": organiser,
            "changing": mine
            and summary.state == PhaseState.OPEN
            and entry.state == Entry.State.ENTERED
            and bool(phase.form or phase.run_types or choosing),
            "entered": entry.state == Entry.State.ENTERED,
            "withdrawing": organiser or not results_stay(phase),
            "sees_board": summary.state != PhaseState.PLANNED and sees_board(request.user, phase),
            "picture": draw_entry(entry)
            if sees_own_results(request.user, phase) and mine and own
            else None,
            "publishing": phase.kind == Phase.Kind.AFTERWARDS
            and not entry.published
            and own is not None
            and participation_of(request.user, phase.campaign) == own,
        }

        return answer(request, "campaigns/entry.html", context, refused)


def _entry(request: Request, campaign: str, pk: Any) -> Entry:
    entry = visible_entry(request, pk)
    if entry.phase.campaign.slug != campaign:
        raise Http404(f"campaign {campaign} has no such entry")
    return entry
