"""Find the objects that a request names: objects that its user cannot see do not exist.

An endpoint with answers that depend on judgements begins with `scored_collection`, `scored_run` or
`scored_session_set`, or calls `check_scores` after one of the others; tests/web/access checks this
for all endpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast
from uuid import UUID

from django.db.models import Count, OuterRef, QuerySet, Subquery, UUIDField
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest
from rest_framework.request import Request

from metrics.services.boards.filter_grammar import asks_for_values
from runs import hooks
from runs.errors import Blind, NotAllowed
from runs.models import (
    Collection,
    Experiment,
    ExperimentRun,
    Qrels,
    Run,
    SessionSet,
    System,
    Team,
    Topic,
    can_see_scores,
)
from runs.models.collections.collections import exists_for
from runs.models.collections.disclosure import in_team_of
from runs.models.submissions.submissions import seen_by
from runs.web.origin import origin_of

SubmissionType = TypeVar("SubmissionType", Run, SessionSet)
Value = TypeVar("Value")


def collections_of(user: Any) -> QuerySet[Collection]:
    """Return visible collections with their counts and their active qrels version.

    Runs and session sets are counted that the user sees; the version and its number of topics are
    None where they are blind.
    """
    topics = Topic.objects.filter(collection=OuterRef("pk")).order_by().values("collection")
    live_runs = Run.objects.filter(collection=OuterRef("pk"), deleted_at=None).in_rows()
    runs = live_runs.unveiled_for(user).order_by().values("collection")
    live_sets = SessionSet.objects.filter(collection=OuterRef("pk"), deleted_at=None)
    session_sets = live_sets.unveiled_for(user).order_by().values("collection")

    scored = Collection.objects.scored_for(user)
    versions = Qrels.objects.filter(collection=OuterRef("pk"), active=True, collection__in=scored)

    return (
        Collection.objects.visible_to(user)
        .select_related("team")
        .annotate(
            topic_count=Coalesce(Subquery(topics.annotate(n=Count("pk")).values("n")), 0),
            run_count=Coalesce(Subquery(runs.annotate(n=Count("pk")).values("n")), 0),
            session_set_count=Coalesce(
                Subquery(session_sets.annotate(n=Count("pk")).values("n")), 0
            ),
            active_version=Subquery(versions.values("version")[:1]),
            judged_topics=Subquery(versions.values("topics")[:1]),
        )
    )


def visible_collection(request: HttpRequest | Request, slug: str) -> Collection:
    def read() -> Collection | None:
        collections = Collection.objects.visible_to(request.user).select_related("team")
        return collections.filter(slug=slug).first()

    collection = find_once(request, ("collection", slug), read)
    if collection is None:
        raise Http404(f"there is no collection {slug!r}")

    return collection


def find_once(
    request: HttpRequest | Request, key: tuple[object, ...], find: Callable[[], Value | None]
) -> Value | None:
    """Return what `find` returns, and call it once for a request that changes nothing.

    The fingerprint and the view of a request, which may be functions that know nothing of each
    other, then work with the same rows.
    """
    if request.method not in ("GET", "HEAD"):
        return find()

    memory = vars(request).setdefault("found_once", {})
    user_key = (*key, request.user.pk)
    if user_key not in memory:
        memory[user_key] = find()

    return cast("Value | None", memory[user_key])


def find_again(request: HttpRequest | Request) -> None:
    """Let a request find everything as of a later moment, and record again what it reads."""
    vars(request).pop("found_once", None)
    vars(request).pop("readings_noted", None)


def sees_scores(request: HttpRequest | Request, collection: Collection) -> bool:
    """Return whether the user may see everything that depends on the collection's judgements.

    The caller is about to show it. While organisers alone may see it, it is recorded that they read
    values.
    """
    allowed = can_see_scores(request.user, collection)
    if allowed:
        note_reading(request, collection)

    return allowed


def note_reading(request: HttpRequest | Request, collection: Collection) -> None:
    """Record once for a request that an organiser reads values that organisers alone see."""
    noted: set[int] = vars(request).setdefault("readings_noted", set())
    if collection.blind and collection.pk not in noted:
        noted.add(collection.pk)
        hooks.values_read.send(Collection, collection=collection, origin=origin_of(request))


def note_filter(request: HttpRequest | Request, collection: Collection, text: str) -> None:
    """Record the reading of values by a filter: the runs that it selects disclose them."""
    if asks_for_values(text):
        sees_scores(request, collection)


def check_scores(
    request: HttpRequest | Request, collection: Collection, *, values: bool = True
) -> None:
    """Raise Blind if the user must not see what depends on the collection's judgements.

    Without `values` the answer contains none of them, and no reading is recorded.
    """
    allowed = (
        sees_scores(request, collection) if values else can_see_scores(request.user, collection)
    )
    if not allowed:
        raise Blind


def scored_collection(
    request: HttpRequest | Request, slug: str, *, values: bool = True
) -> Collection:
    """Return a visible collection if the user may see its scores. Raise Blind otherwise."""
    collection = visible_collection(request, slug)
    check_scores(request, collection, values=values)
    return collection


def counted_collection(request: HttpRequest | Request, slug: str) -> Collection:
    """Return a visible collection with what `collections_of` adds, in less time for one."""
    collection: Any = visible_collection(request, slug)
    user = request.user

    def count() -> Collection:
        scored = can_see_scores(user, collection)
        runs = collection.runs.filter(deleted_at=None).in_rows()
        session_sets = collection.session_sets.filter(deleted_at=None)

        if not scored:
            own = in_team_of(user)
            runs, session_sets = runs.filter(own), session_sets.filter(own)

        collection.topic_count = collection.topics.count()
        collection.run_count = runs.count()
        collection.session_set_count = session_sets.count()

        versions = collection.qrels.filter(active=True).values_list("version", "topics")
        active = versions.first() if scored else None
        collection.active_version, collection.judged_topics = active or (None, None)

        return cast(Collection, collection)

    return cast(Collection, find_once(request, ("counted", slug), count))


def managed_collection(request: Request, slug: str) -> Collection:
    """Return a collection that the user organises. Raise NotAllowed if the user may only see it."""
    collection = visible_collection(request, slug)
    if not Collection.objects.managed_by(request.user).filter(pk=collection.pk).exists():
        raise NotAllowed(
            f"only owners of team {collection.team} can do this with collection {slug}"
        )

    return collection


def visible_submission(
    request: HttpRequest | Request, model: type[SubmissionType], pk: UUID
) -> SubmissionType:
    """Return a run or session set that the user may see.

    Raise StoredValueCorrupt where its row is damaged.
    """

    def read() -> SubmissionType | None:
        submissions = model.objects.select_related("team", "collection")
        return submissions.filter(seen_by(request.user), pk=pk).first()

    submission = find_once(request, (model, pk), read)
    if submission is None:
        raise Http404(f"there is no {model.noun()} {pk}")

    submission.check_sound()
    return submission


def scored_submission(
    request: HttpRequest | Request, model: type[SubmissionType], pk: UUID, *, values: bool = True
) -> SubmissionType:
    """Return a visible submission if the user may see its values. Raise Blind otherwise."""
    submission = visible_submission(request, model, pk)
    check_scores(request, submission.collection, values=values)
    return submission


def owned_submission(request: Request, model: type[SubmissionType], pk: UUID) -> SubmissionType:
    """Return a submission that the user may change. Raise NotAllowed if it is only visible."""
    submission = visible_submission(request, model, pk)
    if not model.objects.owned_by(request.user).filter(pk=pk).exists():
        message = f"only members of team {submission.team} may change this {model.noun()}"
        if model is Run and Collection.objects.managed_by(request.user).filter(runs=pk).exists():
            message += "; organisers take it out of their collection by DELETE with a reason"
        raise NotAllowed(message)

    return submission


def lock_row(model: type[Run | SessionSet], pk: UUID) -> None:
    """Lock the row of a submission until the transaction ends. Call it before the row is read."""
    model.objects.select_for_update().filter(pk=pk).values_list("pk").first()


def withdrawn_submission(request: Request, model: type[SubmissionType], pk: UUID) -> SubmissionType:
    """Return a withdrawn submission that the user may restore, of a collection that the user sees.

    It belongs to a team of the user, or is a run that was taken out of a collection that the user
    organises. Raise NotAllowed for a run that the organisers took out, if the user is none of them.
    """
    user = request.user
    rows = model.objects.exclude(deleted_at=None).filter(exists_for(user, "collection__"), pk=pk)
    submission = rows.select_related("team", "collection").first()
    reason = submission.removal_reason if isinstance(submission, Run) else ""

    owned = model.objects.owned_by(user).filter(pk=pk).exists()
    managed = reason and Collection.objects.managed_by(user).filter(runs=pk).exists()
    if submission is None or not (owned or managed):
        raise Http404(f"there is no withdrawn {model.noun()} {pk} of your teams")

    if reason and not managed:
        raise NotAllowed(
            f"the organisers took it out of collection {submission.collection}: {reason}"
        )

    submission.check_sound()
    return submission


def visible_run(request: HttpRequest | Request, pk: UUID) -> Run:
    return visible_submission(request, Run, pk)


def scored_run(request: HttpRequest | Request, pk: UUID, *, values: bool = True) -> Run:
    return scored_submission(request, Run, pk, values=values)


def owned_run(request: Request, pk: UUID) -> Run:
    return owned_submission(request, Run, pk)


def removable_run(request: Request, pk: UUID) -> Run:
    """Return a visible run of a collection that the user organises. Raise NotAllowed otherwise."""
    run = visible_run(request, pk)
    managed_collection(request, run.collection.slug)
    return run


def visible_system(request: HttpRequest | Request, team: str, slug: str) -> System:
    """Return a system of the user's teams, or one that has a run that the user sees."""
    systems = System.objects.visible_to(request.user).select_related("team")
    system = systems.filter(team__slug=team, slug=slug).first()
    if system is None:
        raise Http404(f"team {team} has no system {slug[:60]!r} of which you see a run")

    return system


def owned_system(request: HttpRequest | Request, team: str, slug: str) -> System:
    """Return a system that the user may change. Raise NotAllowed if the user may only see it."""
    system = visible_system(request, team, slug)
    if not System.objects.owned_by(request.user).filter(pk=system.pk).exists():
        raise NotAllowed(f"only members of team {team} may change its systems")
    return system


def visible_session_set(request: HttpRequest | Request, pk: UUID) -> SessionSet:
    return visible_submission(request, SessionSet, pk)


def scored_session_set(request: HttpRequest | Request, pk: UUID) -> SessionSet:
    return scored_submission(request, SessionSet, pk)


def experiments_of(user: Any) -> QuerySet[Experiment]:
    """Return visible experiments with the number of runs and the baseline that the user sees."""
    members = ExperimentRun.objects.filter(
        seen_by(user, "run__"), experiment=OuterRef("pk")
    ).order_by()
    runs = members.values("experiment")
    baseline = members.filter(run=OuterRef("baseline")).values("run")[:1]

    return (
        Experiment.objects.visible_to(user)
        .select_related("team")
        .annotate(
            run_count=Coalesce(Subquery(runs.annotate(n=Count("pk")).values("n")), 0),
            shown_baseline=Subquery(baseline, output_field=UUIDField()),
        )
    )


def visible_experiment(request: HttpRequest | Request, pk: UUID) -> Experiment:
    """Return an experiment that the user may see, as `experiments_of` has it."""
    experiment = experiments_of(request.user).filter(pk=pk).first()
    if experiment is None:
        raise Http404(f"there is no experiment {pk}")
    return experiment


def visible_team(request: Request, slug: str) -> Team:
    team = Team.objects.visible_to(request.user).filter(slug=slug).first()
    if team is None:
        raise Http404(f"you are not a member of team {slug!r}")
    return cast(Team, team)


def led_team(request: Request, slug: str) -> Team:
    """Return a team that the user owns. Raise NotAllowed if the user is only a member."""
    team = visible_team(request, slug)
    owners = Team.objects.led_by(request.user)
    if not (request.user.is_staff or owners.filter(pk=team.pk).exists()):
        raise NotAllowed(f"only owners of team {slug} can do this")

    return team
