"""A campaign as a file: apply its configuration, or list what would change; copy a campaign.

Every change goes through the service that PATCH and POST go through, so that a file can do nothing
that they refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
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
class CheckedConfig:
    """A configuration, checked field by field; a part that is None is not in the file and stays."""

    campaign: Mapping[str, Any] | None
    agreements: Sequence[Mapping[str, Any]] | None
    phases: Sequence[Mapping[str, Any]] | None


@dataclass(frozen=True)
class Change:
    """A difference between a file and a campaign, and why it is refused.

    `path` is a place in the file, such as phases[0].closes_at.
    """

    path: str
    before: Any
    after: Any
    refused: EvalHubError | None = None


def apply_config(
    *,
    campaign: Campaign,
    config: CheckedConfig,
    user: User,
    dry_run: bool,
    origin: Origin = SYSTEM,
) -> list[Change]:
    """Make a campaign what a file says, all or nothing, and return the changes.

    With `dry_run`, nothing is stored and the list includes refused changes. Otherwise raise the
    error of the first refused change, with its place in the file as the pointer.
    """
    with transaction.atomic():
        campaign = locked(campaign)
        changes = _change_campaign(campaign, config.campaign or {}, origin)
        changes += _add_agreements(campaign, config.agreements, origin)
        changes += _change_phases(campaign, config.phases, user, origin)
        first_refused = next((change for change in changes if change.refused), None)
        if dry_run:
            transaction.set_rollback(True)
        elif first_refused and first_refused.refused:
            error, path = first_refused.refused, first_refused.path
            # phases[0].closes_at becomes /phases/0/closes_at.
            pointer = path.replace("].", "/").replace("[", "/").replace(".", "/").rstrip("]")
            error.pointer = f"/{pointer}"
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
    """Return a new draft with the configuration, phases, forms and agreements of a campaign.

    It has no people and no runs. `fields` are the draft's own; `collections` has replacements by
    the short names of the collections that they replace. Times move by `shift` on the clock of
    each phase's zone, so that the end of a day stays one. Raise the errors of `create_campaign` and
    `create_phase`: for example, an evaluation needs a blind collection.
    """
    copied = {name: shifted(getattr(source, name), "UTC", shift) for name in _configured(Campaign)}
    with transaction.atomic():
        copy = create_campaign(team=team, user=user, fields={**copied, **fields}, origin=origin)
        for agreement in source.agreements.order_by("created_at", "pk"):
            text = {
                "title": agreement.title,
                "text": agreement.text,
                "required_of": agreement.required_of,
            }
            add_agreement(campaign=copy, **text, origin=origin)

        for phase in source.phases.select_related("collection").order_by("place", "opens_at", "pk"):
            phase_fields = {
                name: shifted(getattr(phase, name), phase.zone, shift)
                for name in _configured(Phase)
            }
            phase_fields["collection"] = collections.get(phase.collection.slug, phase.collection)
            try:
                create_phase(campaign=copy, user=user, fields=phase_fields, origin=origin)
            except Conflict as error:
                if error.code != "evaluation_needs_blind":
                    raise

                hint = f'; name another one: {{"collections": {{"{phase.collection}": "..."}}}}'
                raise Conflict(
                    error.message + hint, code=error.code, pointer="/collections"
                ) from error

    return copy


def _configured(model: type[Model]) -> list[str]:
    """Return the names of the fields of a campaign or phase that are configuration.

    Its identity, its state, its owner and its publications are not.
    """
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
    """Return an instant moved on the clock of a zone; return any other value as it is.

    Days of a zone differ in length where its clock changes. Raise InvalidInput for an instant that
    is not in the calendar.
    """
    if not isinstance(value, datetime):
        return value

    try:
        return (value.astimezone(ZoneInfo(zone)) + shift).astimezone(UTC)
    except OverflowError as error:
        raise InvalidInput(
            f"{value:%Y-%m-%d} moves out of the calendar", pointer="shift_days"
        ) from error


def _change_campaign(campaign: Campaign, wanted: Mapping[str, Any], origin: Origin) -> list[Change]:
    differing = {name: value for name, value in wanted.items() if getattr(campaign, name) != value}
    return _try_changes(
        campaign,
        differing,
        "campaign.",
        lambda some: change_campaign(campaign=campaign, changes=some, origin=origin),
    )


def _add_agreements(
    campaign: Campaign, agreements: Sequence[Mapping[str, Any]] | None, origin: Origin
) -> list[Change]:  # fmt: skip
    """Add new agreements. To leave out or change an existing one is a refused change."""
    if agreements is None:
        return []

    stored = campaign.agreements.order_by("created_at", "pk")
    existing = {(agreement.title, agreement.text): agreement for agreement in stored}
    changes: list[Change] = []

    for index, fields in enumerate(agreements):
        path = f"agreements[{index}]"
        same_text = existing.pop((fields["title"], fields["text"]), None)
        if same_text is None:
            refused = _attempt(partial(add_agreement, campaign=campaign, **fields, origin=origin))
            changes.append(Change(path, None, dict(fields), refused))
        elif same_text.required_of != fields["required_of"]:
            refused = Conflict(
                "agreements are never changed; a changed text is another one", code="conflict"
            )
            changes.append(
                Change(f"{path}.required_of", same_text.required_of, fields["required_of"], refused)
            )

    for agreement in existing.values():
        message = (
            f"the agreement {agreement.title!r} is not in the file; agreements stay, because they "
            "are signed"
        )
        before = {
            "title": agreement.title,
            "text": agreement.text,
            "required_of": agreement.required_of,
        }
        changes.append(Change("agreements", before, None, Conflict(message, code="conflict")))

    return changes


def _change_phases(
    campaign: Campaign, phases: Sequence[Mapping[str, Any]] | None, user: User, origin: Origin
) -> list[Change]:  # fmt: skip
    """Change the phases of the file and add new ones. To leave out one is a refused change."""
    if phases is None:
        return []

    existing = {phase.slug: phase for phase in campaign.phases.select_related("collection")}
    changes: list[Change] = []

    for index, fields in enumerate(phases):
        path = f"phases[{index}]"
        phase = existing.pop(fields["slug"], None)
        if phase is None:
            create = partial(
                create_phase, campaign=campaign, user=user, fields=fields, origin=origin
            )
            refused = _attempt(create)
            changes.append(Change(path, None, dict(fields), refused))
            continue

        differing = {name: value for name, value in fields.items() if getattr(phase, name) != value}
        changes += _try_changes(
            phase,
            differing,
            f"{path}.",
            lambda some, phase=phase: change_phase(  # type: ignore[misc]
                phase=phase, user=user, changes=some, origin=origin
            ),
        )

    for slug in existing:
        message = f"phase {slug} is not in the file; phases are not deleted"
        changes.append(Change("phases", slug, None, Conflict(message, code="conflict")))

    return changes


def _try_changes(
    target: Any, differing: Mapping[str, Any], path: str, act: Callable[[Mapping[str, Any]], object]
) -> list[Change]:
    """Make all changes of an object at once; if refused, try each alone to find which are."""
    errors: dict[str, EvalHubError | None] = {}
    if differing and (error := _attempt(lambda: act(differing))):
        errors = {
            name: _attempt(partial(act, {name: value}), undo=True)
            for name, value in differing.items()
        }
        # Nothing is refused alone: the error names a field, or all of them are refused together.
        if not any(errors.values()):
            field = (error.pointer or "").strip("/").partition("/")[0]
            errors = dict.fromkeys([field] if field in differing else differing, error)

    return [
        Change(f"{path}{name}", getattr(target, name), value, errors.get(name))
        for name, value in differing.items()
    ]


def _attempt(act: Callable[[], object], *, undo: bool = False) -> EvalHubError | None:
    """Act in a transaction of its own and return the error, if any; with `undo`, store nothing."""
    try:
        with transaction.atomic():
            act()
            if undo:
                transaction.set_rollback(True)
    except EvalHubError as error:
        return error

    return None
