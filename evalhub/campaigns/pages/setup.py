"""The pages on which organisers create and edit a campaign, its phases and agreements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from django.contrib import messages
from django.db.models import Q, QuerySet
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
    titles_as_lines,
    titles_in,
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
from runs.models import (
    Agreement,
    Campaign,
    Collection,
    Disclosure,
    Phase,
    Scope,
    Signature,
    Team,
    User,
)
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
    "none": "nothing before the release",
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
    "shown": "from the start",
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


def _campaign_choices(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "form_values": values,
        "folds": _campaign_folds(values),
        "registrations": REGISTRATIONS,
        "tag_scopes": _SCOPES,
        "name_rules": _NAMES,
    }


def _campaign_folds(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the present values of the folded parts of the form of a campaign, each in one line."""
    closes, hidden = (
        values.get(f"{name}_day") for name in ("registration_closes_at", "anonymous_until")
    )
    guidelines = len(str(values.get("guidelines") or "").split())
    parts = {
        "read": [
            values.get("summary") or "no summary",
            f"guidelines of {guidelines} words" if guidelines else "no guidelines",
            values.get("contact") or "no contact",
        ],
        "registration": [
            REGISTRATIONS.get(values.get("registration") or "", ("",))[0].lower(),
            f"until {closes}" if closes else "",
            f"teams of at most {values['max_team_size']}" if values.get("max_team_size") else "",
        ],
        "names": [
            f"names of teams are shown {_NAMES.get(values.get('names') or 'shown', '')}",
            f"hidden until {hidden}" if hidden else "",
        ],
        "citation": [
            values.get("licence") or "no licence",
            values.get("citation_authors") or "authors: the team of the campaign",
            values.get("paper_doi") or "",
        ],
    }

    return {name: "; ".join(filter(None, words)) for name, words in parts.items()}


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
        values = request.data if refused else proposed
        context = {"teams": teams, **_campaign_choices(values)}
        team = next(
            (team.name or team.slug for team in teams if team.slug == values.get("team")), "no team"
        )
        context["folds"]["organisers"] = (
            f"team {team}; {values.get('slug') or 'address made from the name'}"
        )

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
        return {**_campaign_choices(values), "preview": rendered(campaign.guidelines, 4)}

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
_LIMITS = ("slots", "attempts_daily", "attempts_total", "max_documents", "decimals")
_TIMES = {"opens_at": False, "closes_at": True, "late_closes_at": True, "freeze_board_at": False}
_PHASE_FORM = (
    "action", "slug", "place", "zone", "measures", "measure_titles", "run_types", "must_answer_all", "chosen_max", "naming",
    "confirm",
    *_PHASE_TEXTS, *_LIMITS,
    *(f"{name}_{part}" for name in _TIMES for part in ("day", "time")),
)  # fmt: skip


class PhasePage(ChangingDeskPage):
    """Add or edit a phase: its times, its limits, and the form that an entry answers.

    A new phase is an evaluation, unless the address names another kind.
    """

    template = "campaigns/phase.html"
    reads = ("kind",)

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
            kind = request.query_params.get("kind", "")
            values, rows = {"zone": "AoE", "kind": kind if kind in KINDS else "evaluation"}, []

        collections = _collections_for(request.user, values.get("kind"), phase)
        other_campaigns = _campaigns_of(collections, campaign, request.user)
        if not values.get("collection"):
            values["collection"] = _unused(collections, other_campaigns)

        return {
            "phase": phase,
            "form_values": values,
            "rows": with_spare(rows),
            "folds": _folds(values, rows),
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


def _collections_for(user: Any, kind: Any, phase: Phase | None) -> QuerySet[Collection]:
    """Return the collections that the user manages and that a phase of this kind can have.

    That of a stored phase is among them. An evaluation needs a blind one without released results.
    """
    rows = Collection.objects.managed_by(user).order_by("name")
    if kind == Phase.Kind.EVALUATION:
        hidden = Q(blind=True, shown_to=Disclosure.ORGANISERS)
        rows = rows.filter(hidden | Q(pk=phase.collection_id) if phase else hidden)
    return rows


def _unused(collections: Iterable[Collection], other_campaigns: dict[int, list[str]]) -> str:
    """Return the newest collection that no other campaign has, or else the newest."""
    newest = max(
        collections,
        key=lambda collection: (collection.pk not in other_campaigns, collection.pk),
        default=None,
    )
    return newest.slug if newest else ""


def _folds(values: dict[str, Any], rows: list[dict[str, str]]) -> dict[str, str]:
    """Return the present values of the folded parts of the form of a phase, each in one line."""
    late, frozen = values.get("late_closes_at_day"), values.get("freeze_board_at_day")
    slots, documents = values.get("slots"), values.get("max_documents")
    limits = [
        KINDS[values["kind"]][0].lower() if values.get("kind") in KINDS else "",
        f"late runs until {late}" if late else "no late runs",
        f"{slots} entr{'y' if str(slots) == '1' else 'ies'} of a team"
        if slots
        else "any number of entries",
        f"{values['attempts_daily']} per day" if values.get("attempts_daily") else "",
        f"{values['attempts_total']} in total" if values.get("attempts_total") else "",
        f"{documents} documents for each topic" if documents else "any number of documents",
        f"tags {values['naming']}" if values.get("naming") else "",
        "every topic must be answered" if values.get("must_answer_all") else "",
    ]
    seen = [
        values.get("measures") or "the measures of the collection",
        FEEDBACKS.get(values.get("feedback") or "none", ""),
        f"leaderboard frozen from {frozen}" if frozen else "",
        f"official: {SELECTIONS.get(values.get('selection') or 'all', '')}",
    ]
    types = [line.partition("=")[2].strip() or line.strip()
             for line in str(values.get("run_types") or "").splitlines() if line.strip()]  # fmt: skip
    labels = [row["label"].strip() or row["key"].strip() for row in rows]
    questions = [
        f"types of runs: {', '.join(types)}" if types else "no types of runs",
        f"asked of each run: {', '.join(labels)}" if labels else "no questions",
    ]
    parts = {"limits": limits, "seen": seen, "questions": questions}

    return {name: "; ".join(filter(None, words)) for name, words in parts.items()}


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
        "measure_titles": titles_as_lines(phase.measure_titles or {}),
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

    fields["measure_titles"] = titles_in(str(form.get("measure_titles", "")))
    fields["run_types"] = types_in(str(form.get("run_types", "")))
    fields["form"] = form_in(rows_in(form))
    fields["must_answer_all"] = "must_answer_all" in form
    fields["naming"] = str(form.get("naming", "")).strip()

    return fields
