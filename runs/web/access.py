"""Find the objects that a request names: objects that its user cannot see do not exist.

An endpoint whose answer depends on judgements begins with `scored_collection`, `scored_run` or
`scored_session_set`, or calls `check_scores` after one of the others; tests/web/test_blind.py and
tests/web/test_matrix.py check this for all endpoints.
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
from runs.services.campaigns.reads import note_values_read
from runs.services.tracking.experiments import check_may_change
from runs.web.origin import origin_of

Made = TypeVar("Made", Run, SessionSet)
Found = TypeVar("Found")


def collections_of(user: Any) -> QuerySet[Collection]:
    """Return visible collections with their numbers of topics and of the runs and session sets that the user sees, and
    the active qrels version with its number of topics, which are None where they are blind."""
    topics = Topic.objects.filter(collection=OuterRef("pk")).order_by().values("collection")
    live = Run.objects.filter(collection=OuterRef("pk"), deleted_at=None)
    runs = live.unveiled_for(user).order_by().values("collection")
    logs = SessionSet.objects.filter(collection=OuterRef("pk"), deleted_at=None)
    sets = logs.unveiled_for(user).order_by().values("collection")
    scored = Collection.objects.scored_for(user)
    versions = Qrels.objects.filter(collection=OuterRef("pk"), active=True, collection__in=scored)
    return (
        Collection.objects.visible_to(user)
        .select_related("team")
        .annotate(
            topic_count=Coalesce(Subquery(topics.annotate(n=Count("pk")).values("n")), 0),
            run_count=Coalesce(Subquery(runs.annotate(n=Count("pk")).values("n")), 0),
            session_set_count=Coalesce(Subquery(sets.annotate(n=Count("pk")).values("n")), 0),
            active_version=Subquery(versions.values("version")[:1]),
            judged_topics=Subquery(versions.values("topics")[:1]),
        )
    )


def visible_collection(request: HttpRequest | Request, slug: str) -> Collection:
    def read() -> Collection | None:
        visible = Collection.objects.visible_to(request.user).select_related("team")
        return visible.filter(slug=slug).first()

    collection = once(request, ("collection", slug), read)
    if collection is None:
        raise Http404(f"there is no collection {slug!r}")
    return collection


def once(
    request: HttpRequest | Request, key: tuple[object, ...], find: Callable[[], Found | None]
) -> Found | None:
    """Return what `find` finds for a request. One that changes nothing asks the database once: its fingerprint and its
    view, which may be functions that know nothing of each other, find the same."""
    if request.method not in ("GET", "HEAD"):
        return find()
    kept = cast(Any, request._request if isinstance(request, Request) else request)
    known = kept.__dict__.setdefault("found_once", {})
    whole = (*key, request.user.pk)
    if whole not in known:
        known[whole] = find()
    return cast("Found | None", known[whole])


def find_again(request: HttpRequest | Request) -> None:
    """Let a request find everything as of a later moment, and record again what it reads."""
    state = (request._request if isinstance(request, Request) else request).__dict__
    state.pop("found_once", None)
    state.pop("readings_noted", None)


def sees_scores(request: HttpRequest | Request, collection: Collection) -> bool:
    """Return whether the user may see everything that depends on the collection's judgements, and is about to. While
    organisers alone may, it is recorded that they read values (`runs.services.campaigns.reads`)."""
    seen = can_see_scores(request.user, collection)
    if seen:
        note_reading(request, collection)
    return seen


def note_reading(request: HttpRequest | Request, collection: Collection) -> None:
    """Record once for a request that its user, who sees everything, reads values that organisers alone see."""
    kept = cast(Any, request._request if isinstance(request, Request) else request)
    noted: set[int] = kept.__dict__.setdefault("readings_noted", set())
    if collection.blind and collection.pk not in noted:
        noted.add(collection.pk)
        note_values_read(collection, origin_of(request))


def note_filter(request: HttpRequest | Request, collection: Collection, text: str) -> None:
    """Record the same of a filter of runs that asks for means or states: which runs it selects tells them."""
    if asks_for_values(text):
        sees_scores(request, collection)


def check_scores(
    request: HttpRequest | Request, collection: Collection, *, values: bool = True
) -> None:
    """Raise Blind if the user must not see anything that depends on the collection's judgements. Without `values` the
    answer has none of them: the reading is not recorded."""
    if not (
        sees_scores(request, collection) if values else can_see_scores(request.user, collection)
    ):
        raise Blind


def scored_collection(
    request: HttpRequest | Request, slug: str, *, values: bool = True
) -> Collection:
    """Return a visible collection whose scores the user may see. Raise Blind otherwise."""
    found = visible_collection(request, slug)
    check_scores(request, found, values=values)
    return found


def counted_collection(request: HttpRequest | Request, slug: str) -> Collection:
    """Return a visible collection with its numbers of topics and runs and its active qrels version."""
    found = visible_collection(request, slug)
    return cast(Collection, once(request, ("counted", slug), lambda: _counted(found, request.user)))


def _counted(found: Any, user: Any) -> Collection:
    """Give a visible collection what `collections_of` gives to each of many, where one is asked for in less time."""
    scored = can_see_scores(user, found)
    found.topic_count = found.topics.count()
    for name, made in (("run_count", found.runs), ("session_set_count", found.session_sets)):
        live = made.filter(deleted_at=None)
        setattr(found, name, (live if scored else live.filter(in_team_of(user))).count())
    active = (
        found.qrels.filter(active=True).values_list("version", "topics").first() if scored else None
    )
    found.active_version, found.judged_topics = active or (None, None)
    return cast(Collection, found)


def managed_collection(request: Request, slug: str) -> Collection:
    """Return a collection of which the user is an organiser. Raise NotAllowed if the user may only see it."""
    found = visible_collection(request, slug)
    if not Collection.objects.managed_by(request.user).filter(pk=found.pk).exists():
        raise NotAllowed(f"only owners of team {found.team} can do this with collection {slug}")
    return found


def visible(request: HttpRequest | Request, model: type[Made], pk: UUID) -> Made:
    """Return a run or session set that the user may see; StoredValueCorrupt where its row is damaged."""

    def read() -> Made | None:
        seen = model.objects.select_related("team", "collection").filter(seen_by(request.user))
        return seen.filter(pk=pk).first()

    found = once(request, (model, pk), read)
    if found is None:
        raise Http404(f"there is no {model.noun()} {pk}")
    found.check_sound()
    return found


def scored(
    request: HttpRequest | Request, model: type[Made], pk: UUID, *, values: bool = True
) -> Made:
    """Return a visible one whose values the user may see. Raise Blind if the judgements are blind."""
    found = visible(request, model, pk)
    check_scores(request, found.collection, values=values)
    return found


def owned(request: Request, model: type[Made], pk: UUID) -> Made:
    """Return a visible one that the user may change. Raise NotAllowed if the user may only see it."""
    found = visible(request, model, pk)
    if not model.objects.owned_by(request.user).filter(pk=pk).exists():
        message = f"only members of team {found.team} may change this {model.noun()}"
        if model is Run and Collection.objects.managed_by(request.user).filter(runs=pk).exists():
            message += "; organisers take it out of their collection by DELETE with a reason"
        raise NotAllowed(message)
    return found


def withdrawn(request: Request, model: type[Made], pk: UUID) -> Made:
    """Return a withdrawn one that the user may restore, of a collection that the user sees: of the user's teams, or a
    run that was taken out of a collection of which the user is an organiser. Raise NotAllowed for a
    run that the organisers took out, if the user is none of them."""
    user = request.user
    gone = model.objects.exclude(deleted_at=None).filter(exists_for(user, "collection__"), pk=pk)
    found = gone.select_related("team", "collection").first()
    reason = found.removal_reason if isinstance(found, Run) else ""
    owned = model.objects.owned_by(user).filter(pk=pk).exists()
    managed = reason and Collection.objects.managed_by(user).filter(runs=pk).exists()
    if found is None or not (owned or managed):
        raise Http404(f"there is no withdrawn {model.noun()} {pk} of your teams")
    if reason and not managed:
        raise NotAllowed(f"the organisers took it out of collection {found.collection}: {reason}")
    found.check_sound()
    return found


def visible_run(request: HttpRequest | Request, pk: UUID) -> Run:
    return visible(request, Run, pk)


def scored_run(request: HttpRequest | Request, pk: UUID, *, values: bool = True) -> Run:
    return scored(request, Run, pk, values=values)


def owned_run(request: Request, pk: UUID) -> Run:
    return owned(request, Run, pk)


def removable_run(request: Request, pk: UUID) -> Run:
    """Return a run of a collection of which the user is an organiser. Raise NotAllowed if the user may only see it."""
    found = visible_run(request, pk)
    managed_collection(request, found.collection.slug)
    return found


def visible_system(request: HttpRequest | Request, team: str, slug: str) -> System:
    """Return a system of the user's teams, or one of which the user sees a run."""
    seen = System.objects.visible_to(request.user).select_related("team")
    found = seen.filter(team__slug=team, slug=slug).first()
    if found is None:
        raise Http404(f"team {team} has no system {slug[:60]!r} of which you see a run")
    return found


def owned_system(request: HttpRequest | Request, team: str, slug: str) -> System:
    """Return a system that the user may change. Raise NotAllowed if the user may only see it."""
    found = visible_system(request, team, slug)
    if not System.objects.owned_by(request.user).filter(pk=found.pk).exists():
        raise NotAllowed(f"only members of team {team} may change its systems")
    return found


def visible_session_set(request: HttpRequest | Request, pk: UUID) -> SessionSet:
    return visible(request, SessionSet, pk)


def scored_session_set(request: HttpRequest | Request, pk: UUID) -> SessionSet:
    return scored(request, SessionSet, pk)


def experiments_of(user: Any) -> QuerySet[Experiment]:
    """Return visible experiments with the number of their runs that the user sees, and the baseline if the user sees
    it."""
    seen = ExperimentRun.objects.filter(
        seen_by(user, "run__"), experiment=OuterRef("pk")
    ).order_by()
    pairs = seen.values("experiment")
    return (
        Experiment.objects.visible_to(user)
        .select_related("team")
        .annotate(
            run_count=Coalesce(Subquery(pairs.annotate(n=Count("pk")).values("n")), 0),
            shown_baseline=Subquery(
                seen.filter(run=OuterRef("baseline")).values("run")[:1], output_field=UUIDField()
            ),
        )
    )


def visible_experiment(request: HttpRequest | Request, pk: UUID) -> Experiment:
    """Return an experiment that the user may see, as `experiments_of` has it."""
    found = experiments_of(request.user).filter(pk=pk).first()
    if found is None:
        raise Http404(f"there is no experiment {pk}")
    return found


def owned_experiment(request: HttpRequest | Request, pk: UUID) -> Experiment:
    """Return a visible experiment that the user may change. Raise NotAllowed if the user may only see it."""
    found = visible_experiment(request, pk)
    check_may_change(found, request.user)
    return found


def visible_team(request: Request, slug: str) -> Team:
    found = Team.objects.visible_to(request.user).filter(slug=slug).first()
    if found is None:
        raise Http404(f"you are not a member of team {slug!r}")
    return cast(Team, found)


def led_team(request: Request, slug: str) -> Team:
    """Return a team that the user owns. Raise NotAllowed if the user is only a member."""
    found = visible_team(request, slug)
    if not (
        request.user.is_staff or Team.objects.led_by(request.user).filter(pk=found.pk).exists()
    ):
        raise NotAllowed(f"only owners of team {slug} can do this")
    return found
