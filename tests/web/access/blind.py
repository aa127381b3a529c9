"""Blind worlds that differ in their judgements alone, and answers as far as they may be told apart by these."""

from __future__ import annotations

import copy
import json
import re
import uuid
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from rest_framework.test import APIClient

from evalhub.pools.models import Assignment
from metrics.models import Evaluation
from runs.models import Collection, Run
from tests.conftest import GOOD, POOR, QRELS, evaluate_all
from tests.web.access.addresses import Address
from tests.web.worlds import (
    People,
    add_qrels,
    arguments,
    body_of,
    make_collection,
    submit_form,
)

SMALL = "1 0 b 1\n3 0 q 1\n3 0 r 0\n"
LATE = "9 0 nothing 3\n" + "".join(
    f"{topic} 0 d{doc} {doc % 4}\n" for topic in range(1, 8) for doc in range(9)
)
# Nobody of these is an organiser.
OUTSIDERS = ("anonymous", "participant", "member", "other")
# The length is that of the body, which is compared: until when something is, can take more or fewer
# letters.
UNCOMPARED = ("Date", "Expires", "Set-Cookie", "X-Request-ID", "Content-Length")
# What differs between any two worlds: times, ids, and what is drawn anew for every object, such as
# codes of views, keys and secrets of links, tokens and webhooks.
MASKS = [
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)?(?: UTC)?", "<time>"),
        # Of pages; the list of what others did lately leaves out the year. Both are times of
        # submission or writing.
        (r"\d{1,2} [A-Z][a-z]{2}(?: \d{4})?, \d\d:\d\d(?::\d\d)?", "<time>"),
        # The worlds may be made before and after midnight.
        (r"\b\d{1,2} [A-Z][a-z]{2} \d{4}\b|\b\d{4}-\d\d-\d\d\b", "<day>"),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>"),
        (r"\b[0-9a-f]{32}\b", "<id>"),
        # Of a snapshot, which has the name of its world.
        (r"(?<![0-9a-f])[0-9a-f]{20}(?![0-9a-f])", "<code>"),
        (r"world-\w", "<world>"),
        (r'csrfmiddlewaretoken" value="\w+', "<csrf>"),
        # How long it is until something ends.
        (r"\b\d+ days(?: \d+ hours?)?\b", "<time>"),
        (r'"pseudonym":\d+', '"pseudonym":<drawn>'),
        (r"evh_[0-9a-z]{8}_[\w-]+", "<token>"),
        (r"whsec_[\w+/=]+", "<secret>"),
        (r"/s/[0-9a-z]{8}/[\w-]+/", "/s/<link>/"),
        (r'("key":"|name="key" value="|<code>)[0-9a-f]{8}\b', r"\1<key>"),
        (r'("code":"|/views/|/v/|[?&]view=)[2-9a-z]{10}\b', r"\1<code>"),
    )
]
Seen = tuple[int, list[tuple[str, str]], str]
_UNVERSIONED = {"system_id": None, "version": None, "versioned_at": None}


def make_world(people: People, slug: str, runs: int = 9) -> str:
    """A blind collection with runs of three teams, in one order everywhere: nine sent, the others copies of these.

    Afterwards two teams send replicates: guests two of `seeds`, others one.
    """
    make_collection(people, slug, blind=True, documents=9)
    for index in range(3):
        for role, team in (("participant", "guests"), ("member", "lab"), ("other", "others")):
            content = (GOOD, POOR, GOOD + "7 Q0 a 1 1.0 good\n")[index]
            form = {
                "team": team,
                "tag": f"run-{index}",
                "metadata": json.dumps({"k": index}),
                "system": "dense",
            }
            content = content.replace("Q0 c", f"Q0 c{role[0]}")
            assert submit_form(people.api[role], slug, content, **form).status_code == 202
    sent = list(Run.objects.filter(collection__slug=slug).order_by("created_at"))
    # In this order whatever time the sending takes, and before all that is sent afterwards.
    last = sent[-1].created_at
    later = [last + timedelta(microseconds=number) for number in range(runs)]
    Run.objects.bulk_create(
        _copy(sent[number % 9], number, later[number]) for number in range(9, runs)
    )
    for role, team, content in (
        ("participant", "guests", GOOD),
        ("participant", "guests", POOR),
        ("other", "others", GOOD),
    ):
        form = {"team": team, "replicate": "seeds", "metadata": '{"k": 7}'}
        content = content.replace("Q0 c", f"Q0 s{role[0]}")
        assert submit_form(people.api[role], slug, content, **form).status_code == 202
    return slug


def _copy(run: Run, number: int, later: datetime) -> Run:
    known = {field.attname: getattr(run, field.attname) for field in Run._meta.concrete_fields}
    new = {"id": uuid.uuid4(), "digest": None, "tag": f"run-{number}", "created_at": later}
    return Run(**{**known, **new, **_UNVERSIONED})


def run_world_a(people: People, runs: int = 9) -> None:
    """One version of judgements, everything evaluated."""
    add_qrels(people, make_world(people, "world-a", runs))
    while evaluate_all():
        # The end of a replicate's evaluation queues its run.
        pass


def run_world_b(people: People, runs: int = 9) -> None:
    """Three versions, the second active; some runs evaluated, one failed, one under way, others waiting."""
    make_world(people, "world-b", runs)
    for qrels in (LATE, SMALL, QRELS):
        add_qrels(people, "world-b", qrels)
        while qrels is LATE and evaluate_all():
            pass
    people.api["owner"].post("/api/v1/collections/world-b/qrels/2/activate/")
    evaluations = Evaluation.objects.filter(qrels__version=2, qrels__collection__slug="world-b")
    waiting = list(evaluations.order_by("pk"))
    failed = {"error_code": "stored_file_corrupt", "error_message": "gone", "since": timezone.now()}
    Evaluation.objects.filter(pk=waiting[0].pk).update(state="failed", **failed)
    Evaluation.objects.filter(pk=waiting[3].pk).update(state="cancelled", error_code="run_deleted")


def run_world_c(people: People, runs: int = 9) -> None:
    """No judgements at all."""
    make_world(people, "world-c", runs)


def only(slug: str) -> None:
    """Lists show what is visible, and what is assigned: one world at a time."""
    Assignment.objects.exclude(pool__collection__slug=slug).delete()
    Collection.objects.exclude(slug=slug).update(visibility="private")
    Collection.objects.filter(slug=slug).update(visibility="public")


def values_of(people: People, slug: str, run: str) -> dict[str, Any]:
    """What stands for each parameter; keys are random, so that there is none."""
    return {**arguments(people, slug, run), "key": "00000000", "share": "00000000"}


def masked(text: str) -> str:
    for mask, instead in MASKS:
        text = mask.sub(instead, text)
    return text


def seen(answer: Any) -> Seen:
    """An answer as far as two worlds may be told apart by it."""
    body = masked(body_of(answer).decode(errors="surrogateescape"))
    # A tag is a digest: as it is.
    headers = [
        (name, value if name == "ETag" else masked(value))
        for name, value in sorted(answer.items())
        if name not in UNCOMPARED
    ]
    return answer.status_code, headers, body


def answered(
    people: People, role: str, address: Address, method: str, path: str, body: Any = None
) -> Seen:
    """Return what somebody sees of an answer, after which everything is as before."""
    client: Any = (people.browsers if address.is_page else people.api)[role]
    cookies = copy.copy(client.cookies)
    with transaction.atomic():
        if isinstance(client, APIClient) and method != "GET":
            form = "multipart" if "file" in (body or {}) else "json"
            answer = getattr(client, method.lower())(path, body, format=form)
        else:
            answer = getattr(client, method.lower())(path, body)
        result = seen(answer)
        transaction.set_rollback(True)
    client.cookies = cookies
    return result
