"""The page on which members of a team edit the parents and links of a run, a line for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import reverse
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from runs.errors import InvalidInput
from runs.formats.links import KINDS, MAX_LINKS, Link, check_links
from runs.models import Collection, Run, RunParent, Scope, Team
from runs.services.tracking.lineage import (
    MAX_PARENTS,
    Parent,
    links_of,
    parents_of,
    replace_links,
    replace_parents,
)
from runs.web.access import lock_row, owned_run
from runs.web.forms import FormPage, Refusal, redirect_to, refusal_of, render_form
from runs.web.origin import origin_of

RELATIONS = RunParent.Relation.values
_COMMIT = "commit="


class RunLineagePage(FormPage):
    """Edit the parents and links of a run of the reader's team."""

    scopes = {"POST": Scope.SUBMIT}
    fields = ("action", "parents", "links", "run")

    def get(self, request: Request, run_id: UUID) -> HttpResponse:
        run = owned_run(request, run_id)
        return _page(request, run, _parent_lines(request, run), _link_lines(run))

    def post(self, request: Request, run_id: UUID) -> HttpResponse:
        parents, links = (str(request.data.get(name, "")) for name in ("parents", "links"))
        with transaction.atomic():
            lock_row(Run, run_id)
            run, origin = owned_run(request, run_id), origin_of(request)
            try:
                with transaction.atomic():
                    if request.data.get("action") == "baseline":
                        # The baseline in a header becomes one more parent.
                        baseline = request.data.get("run", "")
                        parents = f"{_parent_lines(request, run)}derived {baseline}"
                    else:
                        replace_links(run=run, links=check_links(read_links(links)), origin=origin)

                    replace_parents(
                        run=run,
                        parents=list(read_parents(request.user, run.collection, run.team, parents)),
                        reader=request.user,
                        origin=origin,
                    )
            except EvalHubError as error:
                return _page(request, run, parents, links, refusal_of(error))

        return redirect_to(request, reverse("run-parameters-page", args=[run.pk]) + "#lineage")


def _parent_lines(request: Request, run: Run) -> str:
    """Return a line for each existing parent: with its name in the same collection, or its id."""
    edges = [edge for edge in parents_of(run, request.user) if edge.parent]
    live = Run.objects.filter(collection=run.collection, deleted_at=None)
    same_collection = set(
        live.filter(pk__in=[edge.parent for edge in edges]).values_list("pk", flat=True)
    )

    lines = []
    for edge in edges:
        name = edge.name if edge.parent in same_collection else edge.parent
        weight = "" if edge.weight is None else f" {edge.weight:g}"
        lines.append(f"{edge.relation} {name}{weight}\n")

    return "".join(lines)


def read_parents(reader: Any, collection: Collection, team: Team, text: str) -> Iterator[Parent]:
    """Yield the parents in lines such as `fused lab/bm25 0.4`, for a run of this team.

    Raise InvalidInput, with the number of the line, for a line that cannot be read.
    """
    visible = Run.objects.visible_to(reader).filter(collection=collection)
    for number, line in _lines(text):
        words = line.split()
        if words[0] not in RELATIONS or len(words) not in (2, 3):
            message = f"line {number}: write one of {', '.join(RELATIONS)}, a run and, optionally, a weight"
            raise InvalidInput(message, pointer="/parents")

        name, weight = words[1], words[2] if len(words) > 2 else None
        try:
            value = None if weight is None else float(weight)
        except ValueError:
            value = float("nan")

        if value is not None and not abs(value) < float("inf"):
            raise InvalidInput(f"line {number}: {weight!r} is not a number", pointer="/parents")
        yield Parent(_find_run(visible, collection, team, name, number), words[0], value)


def _find_run(
    visible: QuerySet[Run], collection: Collection, team: Team, name: str, number: int
) -> UUID:
    """Return the id of a run that is named by its id, its tag, or its team and tag."""
    try:
        return UUID(name)
    except ValueError:
        pass

    slug, _, tag = name.rpartition("/")
    runs = visible.filter(tag=tag)
    if slug:
        runs = runs.filter(team__slug=slug)

    # A tag without a team is first of all one of the run's own team.
    own = list(runs.filter(team=team).values_list("pk", flat=True))
    keys = own or list(runs.values_list("pk", flat=True)[:2])
    if len(keys) != 1:
        problem = "several teams have a run" if keys else "there is no run"
        instead = "write team/tag" if keys else "write its tag, team/tag or id"
        message = f"line {number}: {problem} {name[:80]!r} in {collection.slug}; {instead}"
        raise InvalidInput(message, code="unknown_run", pointer="/parents")

    return keys[0]


def _link_lines(run: Run) -> str:
    lines = []
    for link in links_of(run):
        commit = f" {_COMMIT}{link.commit}" if link.commit else ""
        title = f" {link.title}" if link.title else ""
        lines.append(f"{link.kind} {link.url}{commit}{title}\n")

    return "".join(lines)


def read_links(text: str) -> Iterator[Link]:
    """Yield the links in lines such as `code https://example.org/code commit=3f2a Title`."""
    for number, line in _lines(text):
        kind, _, rest = line.partition(" ")
        url, _, rest = rest.strip().partition(" ")
        if kind not in KINDS or not url:
            message = f"line {number}: write one of {', '.join(KINDS)} and an address"
            raise InvalidInput(message, pointer="/links")

        commit, title = "", rest.strip()
        if title.startswith(_COMMIT):
            commit, _, title = title.removeprefix(_COMMIT).partition(" ")
        yield Link(kind, url, commit, title.strip())


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield number, line.strip()


def _page(
    request: Request, run: Run, parents: str, links: str, refusal: Refusal | None = None
) -> HttpResponse:
    context = {
        "run": run,
        "parents": parents,
        "links": links,
        "relations": RELATIONS,
        "kinds": KINDS,
        "most_parents": MAX_PARENTS,
        "most_links": MAX_LINKS,
        "deleted": [edge for edge in parents_of(run, request.user) if edge.parent is None],
    }

    return render_form(request, "runs/lineage.html", context, refusal)
