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
# Experiments of a team.
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
    """Return a new experiment of a team with these runs.

    Raise Conflict if its short name is taken or the team has too many, otherwise the errors of
    `change_runs`.
    """
    try:
        with transaction.atomic():
            if Experiment.objects.filter(team=team).count() >= MAX_EXPERIMENTS:
                message = f"team {team} has {MAX_EXPERIMENTS:,} experiments; delete one first"
                raise Conflict(message, code="too_many_experiments")

            experiment = Experiment.objects.create(team=team, created_by=user, **fields)
            details = {name: str(value) for name, value in fields.items() if value}
            record(origin, _Action.EXPERIMENT_CREATED, experiment, after=details)
            if run_ids := list(runs):
                change_runs(
                    experiment=experiment, add=run_ids, user=user, pointer="/runs", origin=origin
                )
    except IntegrityError as error:
        if not Experiment.objects.filter(team=team, slug=fields["slug"]).exists():
            raise
        message = f"team {team} has an experiment {fields['slug']!r} already"
        raise Conflict(message, code="slug_taken", pointer="/slug") from error

    return experiment


def change_experiment(
    *, experiment: Experiment, user: User, changes: Mapping[str, Any], origin: Origin = SYSTEM
) -> Experiment:
    """Change name, goal, visibility or baseline, and return the experiment.

    Raise NotAllowed if the user may not (`check_may_change`), InvalidInput for a baseline that is
    not one of its runs.
    """
    with transaction.atomic():
        current = _locked(experiment)
        check_may_change(current, user, visibility=changes.get("visibility", current.visibility))
        fields = {
            "baseline_id" if name == "baseline" else name: value for name, value in changes.items()
        }
        before, after = changed(current, fields)

        if baseline := after.get("baseline_id"):
            visible = Run.objects.visible_to(user).filter(pk=baseline, experiments=current)
            if not visible.exists():
                message = f"run {baseline} is not in experiment {current.slug}; add it first"
                raise InvalidInput(message, code="unknown_run", pointer="/baseline")

        Experiment.objects.filter(pk=current.pk).update(**after)
        if after:
            record(
                origin,
                _Action.EXPERIMENT_CHANGED,
                current,
                before=_details(before),
                after=_details(after),
            )

    current.refresh_from_db()
    return current


def change_runs(
    *,
    experiment: Experiment,
    user: User,
    add: Iterable[UUID] = (),
    remove: Iterable[UUID] = (),
    pointer: str = "/add",
    origin: Origin = SYSTEM,
) -> tuple[int, int]:
    """Put runs that the user sees into an experiment, and take others out.

    Return how many were added and how many removed. The runs themselves are not changed. Raise
    NotAllowed if the user may not (`check_may_change`), InvalidInput for a run that the user does
    not see and for more runs than an experiment may have.
    """
    with transaction.atomic():
        current = _locked(experiment)
        requested = list(dict.fromkeys(add))
        if len(requested) > MAX_RUNS:
            raise _too_many(current, len(requested), pointer)

        visible = dict(
            Run.objects.visible_to(user).filter(pk__in=requested).values_list("pk", "collection_id")
        )
        if missing := [pk for pk in requested if pk not in visible]:
            message = f"you see no run with the id {missing[0]}"
            raise InvalidInput(message, code="unknown_run", pointer=pointer)

        check_may_change(current, user, collections=set(visible.values()))
        present = set(current.pairs.filter(run__in=requested).values_list("run_id", flat=True))
        added = [pk for pk in requested if pk not in present]
        leaving = current.pairs.filter(run__in=set(remove) - set(requested))
        removed = list(leaving.values_list("run_id", flat=True))
        leaving.delete()

        live = current.pairs.filter(run__deleted_at=None).count()
        if added and live + len(added) > MAX_RUNS:
            raise _too_many(current, live + len(added), pointer)

        pairs = [
            ExperimentRun(experiment=current, run_id=pk, added_by=user, added_at=timezone.now())
            for pk in added
        ]

        ExperimentRun.objects.bulk_create(pairs)
        if current.baseline_id in removed:
            Experiment.objects.filter(pk=current.pk).update(baseline=None)

        if added or removed:
            before = {"removed": [str(pk) for pk in removed]} if removed else {}
            after = {"added": [str(pk) for pk in added]} if added else {}
            record(origin, _Action.EXPERIMENT_CHANGED, current, before=before, after=after)

    return len(added), len(removed)


def delete_experiment(*, experiment: Experiment, user: User, origin: Origin = SYSTEM) -> None:
    """Delete an experiment with its notes; its runs stay. Raise NotAllowed if the user may not."""
    with transaction.atomic():
        current = _locked(experiment)
        check_may_change(current, user)
        record(
            origin,
            _Action.EXPERIMENT_DELETED,
            current,
            before={"name": current.name, "runs": current.pairs.count()},
        )
        current.delete()


def find_experiment(team: Team, text: str) -> Experiment:
    """Return an experiment of a team by its short name or id.

    Raise InvalidInput (`unknown_experiment`) if the team has no such experiment.
    """
    experiments = Experiment.objects.filter(team=team).select_related("team")
    try:
        experiment = experiments.filter(pk=UUID(text)).first()
    except ValueError:
        experiment = experiments.filter(slug=text).first()

    if experiment is None:
        names = list(experiments.order_by("-created_at").values_list("slug", flat=True)[:_NAMED])
        others = f"it has {', '.join(names)}" if names else "it has none yet"
        message = (
            f"team {team} has no experiment {text[:64]!r}; {others}; POST experiments/ creates one"
        )
        raise InvalidInput(message, code="unknown_experiment", pointer="/experiment")

    return experiment


def add_submitted(*, experiment: Experiment, run: Run, user: User, origin: Origin = SYSTEM) -> None:
    """Put a run into the experiment that its submission names, unless it is in it already."""
    with transaction.atomic():
        if not ExperimentRun.objects.filter(experiment=experiment, run=run).exists():
            change_runs(
                experiment=experiment, add=[run.pk], user=user, pointer="/experiment", origin=origin
            )


def replace_run(*, run: Run, by: Run, origin: Origin = SYSTEM) -> None:
    """Put a run of the same team in the place of another one in every experiment that has it."""
    with transaction.atomic():
        for experiment in Experiment.objects.filter(runs=run).select_related("team").order_by("pk"):
            pair = experiment.pairs.get(run=run)
            if experiment.pairs.filter(run=by).exists():
                pair.delete()
            else:
                experiment.pairs.filter(pk=pair.pk).update(run=by)

            if experiment.baseline_id == run.pk:
                Experiment.objects.filter(pk=experiment.pk).update(baseline=by)

            record(
                origin,
                _Action.EXPERIMENT_CHANGED,
                experiment,
                before={"removed": [str(run.pk)]},
                after={"added": [str(by.pk)]},
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
    """Raise NotAllowed unless the user is in the experiment's team.

    Only organisers of the collections of all of its runs, and of these `collections`, may change a
    shared experiment. `visibility` is its visibility after the change.
    """
    if user.is_authenticated and user.is_staff:
        return
    if not Team.objects.of(user).filter(pk=experiment.team_id).exists():
        raise NotAllowed(f"only members of team {experiment.team} may change this experiment")
    if (visibility or experiment.visibility) != _Visibility.COLLECTION:
        return

    pairs = ExperimentRun.objects.filter(experiment=experiment, run__deleted_at=None)
    concerned = Collection.objects.filter(
        pk__in=pairs.values("run__collection")
    ) | Collection.objects.filter(pk__in=list(collections))
    if concerned.exclude(pk__in=Collection.objects.managed_by(user).values("pk")).exists():
        raise NotAllowed(
            "everyone who sees all of its runs sees a shared experiment; "
            "only organisers of their collections may change it"
        )


def _locked(experiment: Experiment) -> Experiment:
    """Return the experiment as it is now, locked."""
    current = (
        Experiment.objects.select_for_update(of=("self",))
        .select_related("team")
        .filter(pk=experiment.pk)
        .first()
    )

    if current is None:
        raise Conflict(f"experiment {experiment.slug} was deleted meanwhile", code="conflict")

    return current


def _details(fields: Mapping[str, Any]) -> dict[str, str]:
    return {name.removesuffix("_id"): str(value) if value else "" for name, value in fields.items()}


def _too_many(experiment: Experiment, count: int, pointer: str) -> InvalidInput:
    message = f"experiment {experiment.slug} would have {count:,} runs; it has at most {MAX_RUNS:,}"
    return InvalidInput(message, code="too_many_runs", pointer=pointer)
