"""The pages on which organisers create and edit a campaign, its phases and agreements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.utils.text import slugify
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from evalhub.campaigns.api.inputs import (
    AgreementSerializer,
    CampaignChangeSerializer,
    CampaignSerializer,
    PhaseChangeSerializer,
    PhaseSerializer,
)
from evalhub.campaigns.pages.desk_pages import ChangingDeskPage, answer
from evalhub.campaigns.pages.inputs import (
    TYPE_WORDS,
    ZONES,
    form_in,
    form_names,
    rows_in,
    rows_of,
    time_fields,
    time_in,
    types_as_lines,
    types_in,
    with_spare,
    zone_shown,
)
from evalhub.campaigns.pages.markdown import rendered
from evalhub.campaigns.questions.lookup import organised_phase
from evalhub.campaigns.services.campaigns import add_agreement, change_campaign, create_campaign
from evalhub.campaigns.services.phases import change_phase, create_phase, last_extension
from metrics.engine.errors import EvalHubError
from metrics.engine.measures.grammar import split_names
from runs.models import Agreement, Campaign, Collection, Phase, Scope, Signature, Team, User
from runs.web.forms import FormPage, Refusal, fields_of, redirect_to, refusal_of
from runs.web.origin import origin_of
from runs.web.parameters import check_fields

REGISTRATIONS = {
    "open": ("Open", "a team takes part at once"),
    "approval": ("Approval", "you accept or decline each team"),
    "closed": ("Closed", "no team can register"),
}
KINDS = {
    "evaluation": ("Evaluation", "on a blind collection; teams see no score"),
    "development": ("Development", "on a collection of its own, for trying out"),
    "training": ("Training", "on a collection of its own, with known judgements"),
    "afterwards": ("Afterwards", "runs that come after the campaign"),
}
FEEDBACKS = {
    "none": "nothing before the release (evaluation phases)",
    "own": "the values of their own runs, at once",
    "board": "the leaderboard, at once",
}
SELECTIONS = {
    "all": "every run",
    "best": "the best run of each team",
    "latest": "the latest run of each team",
    "chosen": "those that the team chooses",
}
_SCOPES = {"campaign": "the whole campaign", "team": "the team alone"}
_NAMES = {
    "shown": "from the start, or from the time below",
    "hidden_until_release": "once results are released to participants",
}
_TEXTS = (
    "name", "summary", "guidelines", "contact", "licence", "rights", "citation_authors", "paper_doi", "judgements_doi",
    "registration", "max_team_size", "tag_scope", "names",
)  # fmt: skip
_CAMPAIGN_TIMES = ("registration_closes_at", "roster_closes_at", "anonymous_until")
_CAMPAIGN_FIELDS = (
    *_TEXTS,
    *(f"{name}_{part}" for name in _CAMPAIGN_TIMES for part in ("day", "time")),
)


def _campaign_fields(
    request: Request, *names: str, stored: Campaign | None = None
) -> dict[str, Any]:
    """Return the fields of the form of a campaign as the API takes them.

    Times that were not sent or changed are left out: the form does not show fractions of a second.
    """
    fields: dict[str, Any] = fields_of(request, *names, *_TEXTS)
    fields["max_team_size"] = fields.get("max_team_size") or None

    for name in _CAMPAIGN_TIMES:
        form_times = fields_of(request, f"{name}_day", f"{name}_time")
        stored_times = (
            time_fields(getattr(stored, name), name, "UTC", ends=True) if stored else None
        )
        if form_times and form_times != stored_times:
            fields[name] = time_in(request.data, name, "UTC")

    return fields


def _campaign_choices() -> dict[str, Any]:
    return {"registrations": REGISTRATIONS, "tag_scopes": _SCOPES, "name_rules": _NAMES}


class NewCampaignPage(FormPage):
    """Create a draft of a campaign for one of the teams that the reader owns."""

    scopes = {"POST": Scope.MANAGE}
    fields = ("slug", "team", *_CAMPAIGN_FIELDS)

    def get(self, request: Request) -> HttpResponse:
        return self._page(request)

    def post(self, request: Request) -> HttpResponse:
        try:
            data = _campaign_fields(request, "slug", "team")
            data["slug"] = data.get("slug") or slugify(data.get("name", ""))[:64]
            serializer = CampaignSerializer(data=data, context={"request": request})
            serializer.is_valid(raise_exception=True)
            fields = dict(serializer.validated_data)
            team, user = fields.pop("team"), cast(User, request.user)
            campaign = create_campaign(
                team=team, user=user, fields=fields, origin=origin_of(request)
            )
        except (EvalHubError, APIException) as error:
            return self._page(request, refusal_of(error))

        messages.success(
            request,
            f"Campaign {campaign.name} created. It is a draft; add its first phase next.",
        )
        return redirect_to(request, reverse("campaign-desk-page", args=[campaign.slug]))

    def _page(self, request: Request, refused: Refusal | None = None) -> HttpResponse:
        teams = list(Team.objects.led_by(request.user))
        shared = [team for team in teams if team.personal_of_id is None]
        proposed = {"team": (shared or teams)[0].slug if teams else "", "registration": "approval"}
        context = {
            **_campaign_choices(),
            "teams": teams,
            "form_values": request.data if refused else proposed,
        }

        return answer(request, "campaigns/new.html", context, refused)


class SettingsPage(ChangingDeskPage):
    """Edit what a campaign says and how teams register."""

    name, template = "campaign-settings-page", "campaigns/settings.html"
    fields = _CAMPAIGN_FIELDS

    def about(self, request: Request, campaign: Campaign, **kwargs: str) -> dict[str, Any]:
        stored = {name: getattr(campaign, name) for name in _TEXTS}
        for name in _CAMPAIGN_TIMES:
            stored |= time_fields(getattr(campaign, name), name, "UTC", ends=True)
        values = request.data if request.method == "POST" else stored
        return {
            **_campaign_choices(),
            "form_values": values,
            "preview": rendered(campaign.guidelines, 4),
        }

    def act(self, request: Request, campaign: Campaign, **kwargs: str) -> tuple[str, str]:
        data = _campaign_fields(request, stored=campaign)
        serializer = CampaignChangeSerializer(
            campaign, data, partial=True, context={"request": request}
        )
        serializer.is_valid(raise_exception=True)
        change_campaign(
            campaign=campaign, changes=serializer.validated_data, origin=origin_of(request)
        )

        return "Changes saved.", reverse(self.name, args=[campaign.slug])


class AgreementsPage(ChangingDeskPage):
    """List the agreements of a campaign with their signatures, and add one."""

    name, template = "campaign-agreements-page", "campaigns/agreements.html"
    fields = ("title", "text", "required_of")

    def about(self, request: Request, campaign: Campaign, **kwargs: str) -> dict[str, Any]:
        signatures = Signature.objects.filter(agreement__campaign=campaign).select_related(
            "user", "participation__team"
        )
        by_agreement: dict[int, list[Signature]] = {}
        for signature in signatures:
            by_agreement.setdefault(signature.agreement_id, []).append(signature)

        return {
            "agreements": [
                (agreement, rendered(agreement.text, 4), by_agreement.get(agreement.pk, []))
                for agreement in campaign.agreements.all()
            ],
            "required_of": {"each_member": "each member", "one_owner": "an owner of the team"},
            "form_values": request.data if request.method == "POST" else {},
        }

    def act(self, request: Request, campaign: Campaign, **kwargs: str) -> tuple[str, str]:
        serializer = AgreementSerializer(data=fields_of(request, *self.fields))
        serializer.is_valid(raise_exception=True)
        agreement: Agreement = add_agreement(
            campaign=campaign, origin=origin_of(request), **serializer.validated_data
        )

        return f"Agreement {agreement.title} added.", reverse(self.name, args=[campaign.slug])


_PHASE_TEXTS = ("name", "description", "collection", "kind", "feedback", "selection")
_KEPT = ("feedback", "selection", "chosen_max")
_LIMITS = ("slots", "attempts_daily", "attempts_total", "max_documents")
_TIMES = {"opens_at": False, "closes_at": True, "late_closes_at": True, "freeze_board_at": False}
_PHASE_FORM = (
    "action", "slug", "place", "zone", "measures", "run_types", "must_answer_all", "chosen_max", "naming",
    "confirm",
    *_PHASE_TEXTS, *_LIMITS,
    *(f"{name}_{part}" for name in _TIMES for part in ("day", "time")),
)  # fmt: skip


class PhasePage(ChangingDeskPage):
    """Add or edit a phase: its times, its limits, and the form that an entry answers."""

    template = "campaigns/phase.html"

    def post(self, request: Request, campaign: str, **kwargs: str) -> HttpResponse:
        # The rows of the editor of a form are too many to declare, so they are checked here.
        check_fields(request.data, ("csrfmiddlewaretoken", *_PHASE_FORM, *form_names()))
        if request.data.get("action") == "rows":
            return self.get(request, campaign, **kwargs)
        return super().post(request, campaign, **kwargs)

    def about(self, request: Request, campaign: Campaign, **kwargs: str) -> dict[str, Any]:
        phase = _phase(request, campaign, kwargs)
        if request.method == "POST":
            values, rows = dict(request.data.items()), rows_in(request.data)
        elif phase:
            values, rows = _stored(phase), rows_of(phase.form)
        else:
            values, rows = {"zone": "AoE", "kind": "evaluation"}, []

        collections = Collection.objects.managed_by(request.user).order_by("name")
        other_campaigns = _campaigns_of(collections, campaign, request.user)

        return {
            "phase": phase,
            "form_values": values,
            "rows": with_spare(rows),
            "kinds": KINDS,
            "feedbacks": FEEDBACKS,
            "selections": SELECTIONS,
            "zones": ZONES,
            "types": TYPE_WORDS,
            "collections": [
                (collection, other_campaigns.get(collection.pk, [])) for collection in collections
            ],
            "published": campaign.state != Campaign.State.DRAFT and phase is not None,
            "entries": phase.entries.exists() if phase else False,
            "extension": last_extension(phase, None) if phase else None,
        }

    def act(self, request: Request, campaign: Campaign, **kwargs: str) -> tuple[str, str]:
        phase, data = _phase(request, campaign, kwargs), _phase_fields(request)
        user, origin = cast(User, request.user), origin_of(request)
        desk = reverse("campaign-desk-page", args=[campaign.slug])
        if phase is None:
            data["slug"] = data.get("slug") or slugify(data.get("name", ""))[:64]
            serializer = PhaseSerializer(data=data, context={"request": request})
            serializer.is_valid(raise_exception=True)
            new_phase = create_phase(
                campaign=campaign, user=user, fields=serializer.validated_data, origin=origin
            )
            others = _campaigns_of([new_phase.collection], campaign, user).get(
                new_phase.collection_id, []
            )
            message = f"Phase {new_phase.name} added."
            if others:
                message += f" Campaign {others[0]} has the same collection: the results that one releases are open for both."

            return message, desk

        data.pop("slug", None)

        for name in _same_times(request, phase):
            data.pop(name)

        changing = PhaseChangeSerializer(phase, data, partial=True, context={"request": request})
        changing.is_valid(raise_exception=True)
        change_phase(
            phase=phase,
            user=user,
            changes=changing.validated_data,
            confirm="confirm" in request.data,
            origin=origin,
        )

        return f"Phase {phase.name} saved.", desk


def _campaigns_of(
    collections: Iterable[Collection], campaign: Campaign, user: Any
) -> dict[int, list[str]]:
    """Return the other campaigns that the user sees, by the key of a collection of their phases."""
    others = Campaign.objects.visible_to(user).exclude(pk=campaign.pk)
    rows = Phase.objects.filter(collection__in=collections, campaign__in=others).order_by(
        "campaign__slug"
    )
    slugs: dict[int, list[str]] = {}

    for collection, slug in rows.values_list("collection", "campaign__slug").distinct():
        slugs.setdefault(collection, []).append(slug)

    return slugs


def _phase(request: Request, campaign: Campaign, kwargs: dict[str, str]) -> Phase | None:
    return organised_phase(request, campaign.slug, kwargs["phase"]) if kwargs.get("phase") else None


def _stored(phase: Phase) -> dict[str, Any]:
    """Return what the form shows of a stored phase."""
    times = [
        time_fields(getattr(phase, name), name, phase.zone, ends=ends)
        for name, ends in _TIMES.items()
    ]
    return {
        **{
            name: getattr(phase, name)
            for name in ("name", "description", "kind", "slug", "place", *_KEPT, *_LIMITS)
        },
        **{name: text for fields in times for name, text in fields.items()},
        "collection": phase.collection.slug,
        "zone": zone_shown(phase.zone),
        "measures": ", ".join(phase.measures),
        "run_types": types_as_lines(phase.run_types),
        "must_answer_all": phase.must_answer_all,
        "naming": phase.naming,
    }


def _same_times(request: Request, phase: Phase) -> list[str]:
    """Return the names of the times that are the same in the form.

    The form does not show fractions of a second.
    """
    stored, form = _stored(phase), request.data
    same_zone = str(form.get("zone", "")).strip() == stored["zone"]

    return [
        name for name in _TIMES
        if same_zone and all(form.get(f"{name}_{part}", "") == stored[f"{name}_{part}"] for part in ("day", "time"))
    ]  # fmt: skip


def _phase_fields(request: Request) -> dict[str, Any]:
    """Return the fields of the form of a phase as the API takes them, without empty ones."""
    form = request.data
    fields: dict[str, Any] = fields_of(request, "slug", "place", "zone", *_PHASE_TEXTS)
    fields["zone"] = fields.get("zone", "").strip() or "UTC"
    fields["place"] = fields.get("place") or 0
    fields["chosen_max"] = str(form.get("chosen_max", "")).strip() or 1

    for name in _TIMES:
        fields[name] = time_in(form, name, fields["zone"])

    for name in _LIMITS:
        fields[name] = str(form.get(name, "")).strip() or None

    if measures := split_names(str(form.get("measures", ""))):
        fields["measures"] = measures

    fields["run_types"] = types_in(str(form.get("run_types", "")))
    fields["form"] = form_in(rows_in(form))
    fields["must_answer_all"] = "must_answer_all" in form
    fields["naming"] = str(form.get("naming", "")).strip()

    return fields
