"""A campaign as a file: apply a whole configuration at once, or say what that would change; copy a campaign.

Every change goes through the service that PATCH and POST go through, so that a file can do nothing
that they refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import Model

from evalhub.campaigns.services.campaigns import (
    add_agreement,
    change_campaign,
    create_campaign,
    locked,
)
from evalhub.campaigns.services.phases import change_phase, create_phase
from metrics.engine.errors import EvalHubError
from runs.errors import Conflict, InvalidInput
from runs.models import Campaign, Collection, Phase, Team, User
from runs.services.audit.trail import SYSTEM, Origin


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A configuration, checked field by field; None is a part that the file leaves out, which stays as it is."""

    campaign: Mapping[str, Any] | None
    agreements: Sequence[Mapping[str, Any]] | None
    phases: Sequence[Mapping[str, Any]] | None


@dataclass(frozen=True)
class Change:
    """A difference between a file and a campaign, at a `path` such as phases[0].closes_at, and why it is refused."""

    path: str
    before: Any
    after: Any
    refused: EvalHubError | None = None


def apply_config(
    *, campaign: Campaign, wanted: Wanted, user: User, dry_run: bool, origin: Origin = SYSTEM
) -> list[Change]:
    """Make a campaign what a file says, all or nothing, and return the changes; with `dry_run` nothing stays of it, and
    refused changes are in the list. Otherwise the first one's error is raised, whose pointer is its
    place in the file.
    """
    with transaction.atomic():
        campaign = locked(campaign)
        changes = _of_campaign(campaign, wanted.campaign or {}, origin)
        changes += _of_agreements(campaign, wanted.agreements, origin)
        changes += _of_phases(campaign, wanted.phases, user, origin)
        refused = next((change for change in changes if change.refused), None)
        if dry_run:
            transaction.set_rollback(True)
        elif refused and refused.refused:
            error = refused.refused
            error.pointer = "/" + refused.path.replace("].", "/").replace("[", "/").replace(
                ".", "/"
            ).rstrip("]")
            raise error

    return changes


def copy_campaign(
    *,
    source: Campaign,
    team: Team,
    user: User,
    fields: Mapping[str, Any],
    collections: Mapping[str, Collection],
    shift: timedelta,
    origin: Origin = SYSTEM,
) -> Campaign:
    """Return a new draft with the configuration of a campaign, its phases with their forms and its agreements, but no
    people and no runs. `fields` are its own; `collections` has, by short name, those that take the
    place of others.

    Times move by `shift` on the clock of each phase's zone, so that the end of a day stays one.
    Raise the errors of `create_campaign` and `create_phase`: an evaluation, for one, needs a
    collection that is blind.
    """
    kept = {name: shifted(getattr(source, name), "UTC", shift) for name in _configured(Campaign)}
    with transaction.atomic():
        made = create_campaign(team=team, user=user, fields={**kept, **fields}, origin=origin)
        for one in source.agreements.order_by("created_at", "pk"):
            text = {"title": one.title, "text": one.text, "required_of": one.required_of}
            add_agreement(campaign=made, **text, origin=origin)

        for phase in source.phases.select_related("collection").order_by("place", "opens_at", "pk"):
            of = {
                name: shifted(getattr(phase, name), phase.zone, shift)
                for name in _configured(Phase)
            }
            of["collection"] = collections.get(phase.collection.slug, phase.collection)
            try:
                create_phase(campaign=made, user=user, fields=of, origin=origin)
            except Conflict as error:
                hint = f'; name another one: {{"collections": {{"{phase.collection}": "..."}}}}'
                if error.code != "evaluation_needs_blind":
                    raise

                raise Conflict(
                    error.message + hint, code=error.code, pointer="/collections"
                ) from error

    return made


def _configured(model: type[Model]) -> list[str]:
    """Return the fields of a campaign or phase that are configured: not what it is and belongs to, and no acts; nor
    what was published of it."""
    others = (
        "id",
        "campaign",
        "team",
        "state",
        "created_by",
        "paused_reason",
        "paper_doi",
        "judgements_doi",
    )
    return [
        field.name
        for field in model._meta.concrete_fields
        if field.name not in others and field.editable
    ]


def shifted(value: Any, zone: str, shift: timedelta) -> Any:
    """Return an instant moved on the clock of a zone, whose days are not all of the same length; any other value as it
    is. Raise InvalidInput for an instant that no calendar has."""
    if not isinstance(value, datetime):
        return value

    try:
        return (value.astimezone(ZoneInfo(zone)) + shift).astimezone(UTC)
    except OverflowError as error:
        raise InvalidInput(
            f"{value:%Y-%m-%d} moves out of the calendar", pointer="shift_days"
        ) from error


def _of_campaign(found: Campaign, wanted: Mapping[str, Any], origin: Origin) -> list[Change]:
    differing = {name: value for name, value in wanted.items() if getattr(found, name) != value}
    return _tried(
        found,
        differing,
        "campaign.",
        lambda some: change_campaign(campaign=found, changes=some, origin=origin),
    )


def _of_agreements(
    found: Campaign, wanted: Sequence[Mapping[str, Any]] | None, origin: Origin
) -> list[Change]:  # fmt: skip
    """Add those that are new. One that the file leaves out or changes stays, and that is refused."""
    if wanted is None:
        return []

    there = {(one.title, one.text): one for one in found.agreements.order_by("created_at", "pk")}
    changes: list[Change] = []

    for place, one in enumerate(wanted):
        known, path = there.pop((one["title"], one["text"]), None), f"agreements[{place}]"
        if known is None:
            add = _attempt(lambda one=one: add_agreement(campaign=found, **one, origin=origin))  # type: ignore[misc]
            changes.append(Change(path, None, dict(one), add))
        elif known.required_of != one["required_of"]:
            refused = Conflict(
                "agreements are never changed; a changed text is another one", code="conflict"
            )
            changes.append(
                Change(f"{path}.required_of", known.required_of, one["required_of"], refused)
            )

    for known in there.values():
        message = f"the agreement {known.title!r} is not in the file; agreements stay, because they are signed"
        before = {"title": known.title, "text": known.text, "required_of": known.required_of}
        changes.append(Change("agreements", before, None, Conflict(message, code="conflict")))

    return changes


def _of_phases(
    found: Campaign, wanted: Sequence[Mapping[str, Any]] | None, user: User, origin: Origin
) -> list[Change]:  # fmt: skip
    """Change the phases of the file and add new ones. One that the file leaves out stays, and that is refused."""
    if wanted is None:
        return []

    there = {phase.slug: phase for phase in found.phases.select_related("collection")}
    changes: list[Change] = []

    for place, fields in enumerate(wanted):
        phase, path = there.pop(fields["slug"], None), f"phases[{place}]"
        if phase is None:
            add = _attempt(
                lambda fields=fields: create_phase(  # type: ignore[misc]
                    campaign=found, user=user, fields=fields, origin=origin
                )
            )
            changes.append(Change(path, None, dict(fields), add))
            continue

        differing = {name: value for name, value in fields.items() if getattr(phase, name) != value}
        changes += _tried(
            phase,
            differing,
            f"{path}.",
            lambda some, phase=phase: change_phase(  # type: ignore[misc]
                phase=phase, user=user, changes=some, origin=origin
            ),
        )

    for slug in there:
        message = f"phase {slug} is not in the file; phases are not deleted"
        changes.append(Change("phases", slug, None, Conflict(message, code="conflict")))

    return changes


def _tried(
    target: Any, differing: Mapping[str, Any], path: str, act: Callable[[Mapping[str, Any]], object]
) -> list[Change]:
    """Do all changes of an object at once. If that is refused, each is tried alone, to tell which of them are."""
    errors: dict[str, EvalHubError | None] = {}
    if differing and (error := _attempt(lambda: act(differing))):
        errors = {
            name: _attempt(lambda name=name: act({name: differing[name]}), undo=True)  # type: ignore[misc]
            for name in differing
        }
        if not any(errors.values()):
            named = (error.pointer or "").strip("/").partition("/")[0]
            errors = dict.fromkeys([named] if named in differing else differing, error)

    return [
        Change(f"{path}{name}", getattr(target, name), value, errors.get(name))
        for name, value in differing.items()
    ]


def _attempt(act: Callable[[], object], *, undo: bool = False) -> EvalHubError | None:
    """Do something in a transaction of its own, and return its refusal; with `undo` nothing of it stays."""
    try:
        with transaction.atomic():
            act()
            if undo:
                transaction.set_rollback(True)
    except EvalHubError as error:
        return error

    return None
