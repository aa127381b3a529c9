"""The pages of an assessor: own topics, and one document after the other. Nothing of runs is in them."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from evalhub.pools.models import Assignment, Pool
from evalhub.pools.questions.lookup import find_assigned_pool, own_assignment
from evalhub.pools.services.assigning import documents_to_judge
from evalhub.pools.services.judging import (
    NOT_JUDGED,
    judge_document,
    labels_of,
    levels_by_document,
    progress_of,
    undo_judgement,
)
from metrics.engine.errors import EvalHubError
from runs.errors import InvalidInput
from runs.models import Scope, User
from runs.models.collections.collections import document_address
from runs.parameters import integer_in, number_in
from runs.services.collections.collections import read_topic_titles
from runs.services.collections.documents import read_titles
from runs.web.forms import FormPage, Refusal, redirect_to, refusal_of, render_form
from runs.web.permissions import Access

_MAX_PLACE = 1_000_000
# A document was not read for longer than this: somebody left.
_MAX_SECONDS = 3600.0


class JudgingPage(FormPage):
    """The pools of which the user judges topics."""

    access = {"GET": Access.SIGNED_IN}

    def get(self, request: Request) -> HttpResponse:
        rows = Assignment.objects.filter(assessor__user=request.user.pk)
        rows = rows.select_related("pool__collection", "assessor").order_by("-pool_id", "pk")
        by_pool: dict[Pool, list[Assignment]] = {}
        for row in rows:
            by_pool.setdefault(row.pool, []).append(row)

        pools = [(pool, *_progress(own)) for pool, own in by_pool.items()]
        response = render(request, "pools/judging.html", {"pools": pools})
        response["Cache-Control"] = "no-store"
        return response


def _progress(assignments: list[Assignment]) -> tuple[int, int, int]:
    """Return topics, judged documents and all documents of assignments."""
    counts = progress_of(assignments).values()
    return len(assignments), sum(judged for judged, _ in counts), sum(all_ for _, all_ in counts)


class JudgePage(FormPage):
    """Judge a topic of a pool, one document at a time; without a topic, the list of own topics."""

    scopes = {"POST": Scope.SUBMIT}
    access = {"GET": Access.READERS}
    reads = ("topic", "place")
    fields = ("topic", "doc_id", "place", "level", "seconds", "note", "action")

    def get(self, request: Request, assigned_pool: UUID) -> HttpResponse:
        pool = find_assigned_pool(request, assigned_pool)
        topic_id = request.query_params.get("topic", "")
        if not topic_id:
            return self.list_topics(request, pool)

        assignment = own_assignment(request, pool, topic_id)
        place = integer_in(request.query_params, "place", 0, 0, _MAX_PLACE)
        return self.show(request, assignment, place)

    def list_topics(self, request: Request, pool: Pool) -> HttpResponse:
        own = pool.assignments.filter(assessor__user=request.user.pk)
        assignments = list(own.select_related("assessor", "pool__collection").order_by("pk"))
        titles = read_topic_titles(pool.collection, [row.topic_id for row in assignments])
        progress = progress_of(assignments)
        rows = [(row, titles.get(row.topic_id, ""), *progress[row.pk]) for row in assignments]
        response = render(request, "pools/judge_topics.html", {"pool": pool, "rows": rows})
        response["Cache-Control"] = "no-store"
        return response

    def show(
        self,
        request: Request,
        assignment: Assignment,
        place: int,
        refusal: Refusal | None = None,
    ) -> HttpResponse:
        """Show the document at a place, from 1, or without one the first that is not judged."""
        pool = assignment.pool
        doc_ids, levels = documents_to_judge(assignment), levels_by_document(assignment)
        place = place or _next_place(doc_ids, levels, 0)
        collection = pool.collection
        context: dict[str, Any] = {
            "pool": pool,
            "collection": collection,
            "topic": collection.topics.filter(topic_id=assignment.topic_id).first(),
            "topic_id": assignment.topic_id,
            "judged": sum(doc_id in levels for doc_id in doc_ids),
            "documents": len(doc_ids),
        }
        if 1 <= place <= len(doc_ids):
            doc_id = doc_ids[place - 1]
            context |= {
                "document": read_titles(collection, [doc_id])[doc_id],
                "link": document_address(collection, doc_id),
                "place": place,
                "labels": labels_of(collection),
                "level": levels.get(doc_id),
                "next": _next_place(doc_ids, levels, place) or place % len(doc_ids) + 1,
            }
        response = render_form(request, "pools/judge.html", context, refusal)
        response["Cache-Control"] = "no-store"
        return response

    def post(self, request: Request, assigned_pool: UUID) -> HttpResponse:
        pool = find_assigned_pool(request, assigned_pool)
        form = {name: str(request.data.get(name, "")) for name in self.fields}
        own = pool.assignments.select_related("assessor", "pool__collection")
        assignment = own.filter(assessor__user=request.user.pk, topic_id=form["topic"]).first()
        if assignment is None:
            message = "this topic is not yours to judge"
            raise InvalidInput(message, code="not_assigned", pointer="topic")

        try:
            place = self.act(cast(User, request.user), assignment, form)
        except (EvalHubError, APIException) as error:
            place = integer_in(form, "place", 0, 0, _MAX_PLACE)
            return self.show(request, assignment, place, refusal_of(error))

        query = {"topic": assignment.topic_id, **({"place": place} if place else {})}
        return redirect_to(request, f"{reverse('judge-page', args=[pool.pk])}?{urlencode(query)}")

    def act(self, user: User, assignment: Assignment, form: dict[str, str]) -> int:
        """Store a level or undo the last one; return the place of the next document."""
        doc_ids = documents_to_judge(assignment)
        if form["action"] == "undo":
            doc_id = undo_judgement(assignment=assignment, user=user)
            return doc_ids.index(doc_id) + 1 if doc_id in doc_ids else 0

        if form["action"] == "unclear":
            level = NOT_JUDGED
        else:
            level = integer_in(form, "level", -1, 0, _MAX_PLACE)
        seconds = None
        if form["seconds"]:
            seconds = number_in("seconds", form["seconds"], 0.0, _MAX_PLACE)

        judge_document(
            assignment=assignment,
            doc_id=form["doc_id"],
            level=level,
            user=user,
            seconds=seconds if seconds is None else min(seconds, _MAX_SECONDS),
            note=form["note"].strip(),
        )
        place = doc_ids.index(form["doc_id"]) + 1
        return _next_place(doc_ids, levels_by_document(assignment), place)


def _next_place(doc_ids: list[str], levels: dict[str, int], place: int) -> int:
    """Return the place of the next document without a level, in a circle; 0 if there is none."""
    unjudged = [number for number, doc_id in enumerate(doc_ids, 1) if doc_id not in levels]
    later = [number for number in unjudged if number > place]
    earlier = [number for number in unjudged if number < place]
    return next(iter([*later, *earlier]), 0)
