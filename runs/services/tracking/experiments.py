"""Experiments: create and change them, put runs into them and take runs out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from runs.errors import Conflict, InvalidInput, NotAllowed
from runs.models import AuditEvent, Collection, Experiment, ExperimentRun, Run, Team, User
from runs.services.audit.trail import SYSTEM, Origin, changed, record

MAX_RUNS = 1_000
# Of a team.
MAX_EXPERIMENTS = 1_000
_NAMED = 8
_Action, _Visibility = AuditEvent.Action, Experiment.Visibility


def create_experiment(
    *,
    team: Team,
    user: User,
    fields: Mapping[str, Any],
    runs: Iterable[UUID] = (),
    origin: Origin = SYSTEM,
) -> Experiment:
    """Return a new experiment of a team with these runs, which the user sees.

    Raise Conflict if its short name is taken or the team has too many, otherwise the errors of
    `change_runs`.
    """
    try:
        with transaction.atomic():
            if Experiment.objects.filter(team=team).count() >= MAX_EXPERIMENTS:
                message = f"team {team} has {MAX_EXPERIMENTS:,} experiments; delete one first"
                raise Conflict(message, code="too_many_experiments")
            made = Experiment.objects.create(team=team, created_by=user, **fields)
            told = {name: str(value) for name, value in fields.items() if value}
            record(origin, _Action.EXPERIMENT_CREATED, made, after=told)
            if wanted := list(runs):
                change_runs(experiment=made, add=wanted, user=user, pointer="/runs", origin=origin)
    except IntegrityError as error:
        if not Experiment.objects.filter(team=team, slug=fields["slug"]).exists():
            raise
        message = f"team {team} has an experiment {fields['slug']!r} already"
        raise Conflict(message, code="slug_taken", pointer="/slug") from error
    return made


def change_experiment(
    *, experiment: Experiment, user: User, changes: Mapping[str, Any], origin: Origin = SYSTEM
) -> Experiment:
    """Change name, goal, visibility or baseline, and return the experiment.

    Raise NotAllowed if the user may not (`check_may_change`), InvalidInput for a baseline that is
    not one of its runs.
    """
    with transaction.atomic():
        found = _locked(experiment)
        check_may_change(found, user, visibility=changes.get("visibility", found.visibility))
        fields = {
            "baseline_id" if name == "baseline" else name: value for name, value in changes.items()
        }
        before, after = changed(found, fields)
        baseline = after.get("baseline_id")
        if (
            baseline
            and not Run.objects.visible_to(user).filter(pk=baseline, experiments=found).exists()
        ):
            message = f"run {baseline} is not in experiment {found.slug}; add it first"
            raise InvalidInput(message, code="unknown_run", pointer="/baseline")
        Experiment.objects.filter(pk=found.pk).update(**after)
        if after:
            record(
                origin, _Action.EXPERIMENT_CHANGED, found, before=_told(before), after=_told(after)
            )
    found.refresh_from_db()
    return found


def change_runs(
    *,
    experiment: Experiment,
    user: User,
    add: Iterable[UUID] = (),
    remove: Iterable[UUID] = (),
    pointer: str = "/add",
    origin: Origin = SYSTEM,
) -> tuple[int, int]:
    """Put runs that the user sees into an experiment, and take others out; return how many were new and how many gone.
    No run itself is changed.

    Raise NotAllowed if the user may not (`check_may_change`), InvalidInput for an id of no visible
    run and for more runs than an experiment has.
    """
    with transaction.atomic():
        found = _locked(experiment)
        wanted = list(dict.fromkeys(add))
        if len(wanted) > MAX_RUNS:
            raise _too_many(found, len(wanted), pointer)
        seen = dict(
            Run.objects.visible_to(user).filter(pk__in=wanted).values_list("pk", "collection_id")
        )
        if missing := [pk for pk in wanted if pk not in seen]:
            message = f"you see no run with the id {missing[0]}"
            raise InvalidInput(message, code="unknown_run", pointer=pointer)
        check_may_change(found, user, collections=set(seen.values()))
        there = set(found.pairs.filter(run__in=wanted).values_list("run_id", flat=True))
        new = [pk for pk in wanted if pk not in there]
        leaving = found.pairs.filter(run__in=set(remove) - set(wanted))
        gone = list(leaving.values_list("run_id", flat=True))
        leaving.delete()
        live = found.pairs.filter(run__deleted_at=None).count()
        if new and live + len(new) > MAX_RUNS:
            raise _too_many(found, live + len(new), pointer)
        pairs = [
            ExperimentRun(experiment=found, run_id=pk, added_by=user, added_at=timezone.now())
            for pk in new
        ]
        ExperimentRun.objects.bulk_create(pairs)
        if found.baseline_id in gone:
            Experiment.objects.filter(pk=found.pk).update(baseline=None)
        if new or gone:
            told = {"removed": [str(pk) for pk in gone]}, {"added": [str(pk) for pk in new]}
            before, after = ({name: ids for name, ids in one.items() if ids} for one in told)
            record(origin, _Action.EXPERIMENT_CHANGED, found, before=before, after=after)
    return len(new), len(gone)


def delete_experiment(*, experiment: Experiment, user: User, origin: Origin = SYSTEM) -> None:
    """Delete an experiment with its notes; its runs stay. Raise NotAllowed if the user may not."""
    with transaction.atomic():
        found = _locked(experiment)
        check_may_change(found, user)
        record(
            origin,
            _Action.EXPERIMENT_DELETED,
            found,
            before={"name": found.name, "runs": found.pairs.count()},
        )
        found.delete()


def find_experiment(team: Team, text: str) -> Experiment:
    """Return an experiment of a team by its short name or id. Raise InvalidInput (`unknown_experiment`) for another."""
    own = Experiment.objects.filter(team=team).select_related("team")
    try:
        found = own.filter(pk=UUID(text)).first()
    except ValueError:
        found = own.filter(slug=text).first()
    if found is None:
        names = list(own.order_by("-created_at").values_list("slug", flat=True)[:_NAMED])
        there = f"it has {', '.join(names)}" if names else "it has none yet"
        message = (
            f"team {team} has no experiment {text[:64]!r}; {there}; POST experiments/ creates one"
        )
        raise InvalidInput(message, code="unknown_experiment", pointer="/experiment")
    return found


def add_submitted(*, experiment: Experiment, run: Run, user: User, origin: Origin = SYSTEM) -> None:
    """Put a run into the experiment that its submission names; nothing happens where it is in it already."""
    with transaction.atomic():
        if not ExperimentRun.objects.filter(experiment=experiment, run=run).exists():
            change_runs(
                experiment=experiment, add=[run.pk], user=user, pointer="/experiment", origin=origin
            )


def may_change(experiment: Experiment, user: Any) -> bool:
    """Return whether `check_may_change` lets the user pass."""
    try:
        check_may_change(experiment, user)
    except NotAllowed:
        return False
    return True


def check_may_change(
    experiment: Experiment,
    user: Any,
    *,
    visibility: str | None = None,
    collections: Iterable[int] = (),
) -> None:
    """Raise NotAllowed unless the user is in the experiment's team, and of a shared one an organiser of the collection
    of each of its runs, those of `collections` included. `visibility` is the one that it is going
    to have."""
    if user.is_authenticated and user.is_staff:
        return
    if not Team.objects.of(user).filter(pk=experiment.team_id).exists():
        raise NotAllowed(f"only members of team {experiment.team} may change this experiment")
    if (visibility or experiment.visibility) != _Visibility.COLLECTION:
        return
    shown = ExperimentRun.objects.filter(experiment=experiment, run__deleted_at=None).values(
        "run__collection"
    )
    concerned = Collection.objects.filter(pk__in=shown) | Collection.objects.filter(
        pk__in=list(collections)
    )
    if concerned.exclude(pk__in=Collection.objects.managed_by(user).values("pk")).exists():
        message = "everyone who sees all of its runs sees a shared experiment; "
        raise NotAllowed(message + "only organisers of their collections may change it")


def _locked(experiment: Experiment) -> Experiment:
    """Return the experiment as it is now, which nobody else changes meanwhile."""
    found = (
        Experiment.objects.select_for_update(of=("self",))
        .select_related("team")
        .filter(pk=experiment.pk)
        .first()
    )
    if found is None:
        raise Conflict(f"experiment {experiment.slug} was deleted meanwhile", code="conflict")
    return found


def _told(fields: Mapping[str, Any]) -> dict[str, str]:
    return {name.removesuffix("_id"): str(value) if value else "" for name, value in fields.items()}


def _too_many(experiment: Experiment, count: int, pointer: str) -> InvalidInput:
    message = f"experiment {experiment.slug} would have {count:,} runs; it has at most {MAX_RUNS:,}"
    return InvalidInput(message, code="too_many_runs", pointer=pointer)
