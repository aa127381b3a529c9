"""A collection with everybody who may meet it, for the tests that ask every address as everybody."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from evalhub.campaigns.exports.snapshot_files import sealed
from evalhub.campaigns.services.manifest import manifest_of
from evalhub.campaigns.services.snapshots import keep_snapshot
from evalhub.pools.models import Pool
from evalhub.pools.services.assigning import assign_topics, documents_to_judge
from evalhub.pools.services.judging import judge_document
from evalhub.pools.services.pools import Contributor, freeze_pool, plan_pool, store_draft
from evalhub.pools.services.recipes import Method, Recipe
from evalhub.suites.models import Suite
from evalhub.suites.services.suites import MemberRequest, create_suite, members_of
from metrics.engine.errors import EvalHubError
from metrics.engine.measures.grammar import parse_measure
from metrics.services.comparisons.comparison import ComparisonQuery
from metrics.services.comparisons.stored import compare, queue_comparison
from runs.models import (
    Agreement,
    ApiToken,
    Campaign,
    CampaignMember,
    Collection,
    Delivery,
    Entry,
    Experiment,
    ExperimentRun,
    ExternalMeasure,
    Invitation,
    InvitationLink,
    Membership,
    Note,
    Participation,
    Phase,
    Release,
    Run,
    ShareLink,
    Signature,
    Snapshot,
    System,
    TableValues,
    Team,
    User,
    View,
    Webhook,
)
from runs.services.sharing.shares import Shared, create_share
from runs.services.tracking.labels import move_label
from runs.services.webhooks.signing import new_secret, seal
from tests.conftest import (
    GOOD,
    POOR,
    QRELS,
    SESSIONS,
    client_of,
    evaluate_all,
    evaluate_all_sessions,
    upload,
)

# The reader is the owner with a token that may only read.
ROLES = ("anonymous", "participant", "member", "owner", "other", "staff", "reader")
TOPICS = "1\tone\n2\ttwo\n3\tthree\n"
# The chart of an address that has others than a run.
CHARTS = {
    "collection-chart": "what-if",
    "session-chart": "curves",
    "stored-comparison-chart": "significance",
}
KNOWN = "1 a\n1 expected 2\n2 u\n"


@dataclass
class People:
    """The users by role, and a client with a token and one with a session for each."""

    users: dict[str, User]
    api: dict[str, APIClient]
    browsers: dict[str, Client]


def make_people() -> People:
    """`lab` organises: an owner and a member; `guests` submit: the participant; the other owns a team of their own,
    and is invited to the lab."""
    users = {
        role: User.objects.create_user(role) for role in ("participant", "member", "owner", "other")
    }
    users["staff"] = User.objects.create_user("staff", is_staff=True)
    for slug, members in {
        "lab": {"owner": "owner", "member": "member"},
        "guests": {"participant": "member"},
        "others": {"other": "owner"},
    }.items():
        team = Team.objects.create(slug=slug, name=slug)
        for name, role in members.items():
            Membership.objects.create(team=team, user=users[name], role=role)
    lab = Team.objects.get(slug="lab")
    Invitation.objects.create(team=lab, user=users["other"], invited_by=users["owner"])
    api = {"anonymous": client_of(None), **{role: client_of(user) for role, user in users.items()}}
    api["reader"] = client_of(users["owner"], ["read"])
    users["reader"] = users["owner"]
    browsers = {role: Client() for role in ROLES}
    for role, user in users.items():
        browsers[role].force_login(user)
    return People(users, api, browsers)


def make_collection(people: People, slug: str, **fields: Any) -> str:
    """A collection of the lab's with topics and judgements; returns its slug."""
    answer = people.api["owner"].post(
        "/api/v1/collections/",
        {
            "slug": slug,
            "name": "A collection",
            "team": "lab",
            "measures": ["nDCG@10", "AP"],
            **fields,
        },
    )
    assert answer.status_code == 201, answer.content
    assert (
        upload(people.api["owner"], f"collections/{slug}/topics/", TOPICS, "put").status_code == 200
    )
    return slug


def add_qrels(people: People, slug: str, qrels: str = QRELS) -> None:
    assert upload(people.api["owner"], f"collections/{slug}/qrels/", qrels).status_code == 201


def submit_form(client: APIClient, slug: str, content: str, **fields: Any) -> Any:
    form = {"file": SimpleUploadedFile("run", content.encode()), **fields}
    return client.post(f"/api/v1/collections/{slug}/runs/", form, format="multipart")


def make_runs(people: People, slug: str) -> str:
    """Two evaluated runs of the participant's team; returns the id of the one with known documents."""
    guest = people.api["participant"]
    known = SimpleUploadedFile("known", KNOWN.encode())
    first = submit_form(guest, slug, GOOD, team="guests", known=known, metadata='{"k1": 0.9}')
    second = submit_form(guest, slug, POOR, team="guests")
    assert (first.status_code, second.status_code) == (202, 202), first.content + second.content
    evaluate_all()
    run: str = first.json()["id"]
    return run


def arguments(people: People, slug: str, run: str) -> dict[str, Any]:
    """A value for every parameter of every address."""
    spare, _ = ApiToken.objects.issue(user=people.users["owner"], name="spare")
    delivery = make_delivery(slug)
    return {
        "collection": slug,
        "slug": slug,
        "run": run,
        "run_id": run,
        "version": 1,
        "measure": "AP",
        "declared": make_declared(slug, run),
        "team": "lab",
        "username": "member",
        "invited": "other",
        "key": spare.key,
        "comparison": make_comparison(slug),
        "kind": "csv",
        "chart": "curve",
        "form": "svg",
        "session_set": make_session_set(people, slug),
        "session": "s2",
        "webhook": str(delivery.webhook_id),
        "delivery": str(delivery.pk),
        "space": "param",
        "parameter": "k1",
        "topic": "1",
        "label": make_label(run),
        "code": make_view(slug),
        "share": make_share(people, slug)[0].key,
        "artifact": make_artifact(people, run),
        "experiment": make_experiment(run),
        "note": make_note(people, run),
        "system": make_system(),
        **make_pool(people, slug),
        "suite": make_suite(people, slug),
        "file_form": "tsv",
        **make_campaign(people, slug, run),
    }


def make_declared(slug: str, run: str) -> str:
    """A measure of value tables of which the run has a value."""
    collection = Collection.objects.get(slug=slug)
    measure, new = ExternalMeasure.objects.get_or_create(
        collection=collection, name="ms", defaults={"direction": "lower", "version": 1}
    )
    if new:
        row = TableValues(measure=measure, run_id=run)
        row.write({"1": 12.5})
        row.save()
    return str(measure.name)


def make_suite(people: People, slug: str) -> str:
    """A suite of the lab's with the collection alone; those of other collections go."""
    Suite.objects.exclude(versions__members__collection__slug=slug).delete()
    name = f"suite-{slug}"
    if not Suite.objects.filter(slug=name).exists():
        lab, owner = Team.objects.get(slug="lab"), people.users["owner"]
        members = members_of([MemberRequest(slug, "AP")], owner)
        create_suite(slug=name, name="A suite", team=lab, members=members, user=owner)
    return name


def make_pool(people: People, slug: str) -> dict[str, Any]:
    """A frozen pool of the collection's runs, which the member and the owner judge."""
    collection = Collection.objects.get(slug=slug)
    pool = Pool.objects.filter(collection=collection).first()
    if pool is None:
        runs = Run.objects.filter(collection=collection, deleted_at=None)
        contributors = [
            Contributor(run=run, team=run.team) for run in runs.ranked().order_by("tag")
        ]
        recipe = Recipe(method=Method.DEPTH, k=2, only_new=False)
        plan = plan_pool(collection=collection, recipe=recipe, contributors=contributors, seed=1)
        pool = store_draft(plan=plan, user=people.users["owner"])
        pool = freeze_pool(pool=pool, user=people.users["owner"])

    for role in ("member", "owner"):
        user = people.users[role]
        assignment, *_ = assign_topics(pool=pool, user=user, copies=2, by=people.users["owner"])
        doc_id = min(documents_to_judge(assignment))
        judge_document(assignment=assignment, doc_id=doc_id, level=1, user=user)

    return {"pool": str(pool.pk), "assigned_pool": str(pool.pk)}


def make_campaign(people: People, slug: str, run: str, *, alone: bool = True) -> dict[str, str]:
    """The parameters of a campaign of the lab's, open since long ago, with a withdrawn entry of the participant's;
    those of other collections go, unless it is not alone."""
    if alone:
        for kind in (Entry, Release, Snapshot):
            kind.objects.exclude(phase__collection__slug=slug).delete()
        Campaign.objects.exclude(phases__collection__slug=slug).delete()
    lab, guests = (Team.objects.get(slug=name) for name in ("lab", "guests"))
    fields = {"name": "Cup", "team": lab, "state": "published", "registration": "open"}
    cup, _ = Campaign.objects.get_or_create(slug=f"cup-{slug}", defaults=fields)
    times = {
        "opens_at": datetime(2020, 1, 1, tzinfo=UTC),
        "closes_at": datetime(2090, 1, 1, tzinfo=UTC),
    }
    task = {
        "name": "Task",
        "kind": "training",
        "collection": Collection.objects.get(slug=slug),
        **times,
    }
    phase, _ = Phase.objects.get_or_create(campaign=cup, slug="task", defaults=task)
    accepted = {"name": "Guests", "state": "accepted"}
    team, _ = Participation.objects.get_or_create(campaign=cup, team=guests, defaults=accepted)
    person = {"user": people.users["participant"], "participation": team}
    CampaignMember.objects.get_or_create(campaign=cup, **person)
    terms, _ = Agreement.objects.get_or_create(
        campaign=cup, title="Terms", text="Be fair.", sha256="ab" * 32
    )
    Signature.objects.get_or_create(agreement=terms, **person, typed_name="P. Articipant")
    entered = {"participation": team, "run_id": run, "state": "withdrawn"}
    entered["arrived_at"] = datetime(2021, 1, 1, tzinfo=UTC)
    entry, _ = Entry.objects.get_or_create(phase=phase, number=1, defaults=entered)
    return {
        "campaign": cup.slug,
        "phase": phase.slug,
        "act": "archive",
        "entrant": "guests",
        "participant": "participant",
        "agreement": terms.sha256,
        "entry": str(entry.pk),
        "snapshot": make_snapshot(cup, phase),
        "ending": "json",
        "campaign_link": make_link(campaign=cup),
        "account_link": make_link(created_by=people.users["staff"]),
        "release": str(
            Release.objects.get_or_create(phase=phase, audience=Release.Audience.TEAMS)[0].pk
        ),
    }


def make_snapshot(campaign: Campaign, phase: Phase) -> str:
    """The code of a snapshot of a phase, without entries."""
    manifest = sealed(manifest_of(campaign, [], whole=False, label="results"), {})
    user, snapshot_fields = (
        campaign.team.members.first(),
        {"campaign": campaign, "phase": phase, "label": "results"},
    )
    return keep_snapshot(
        **snapshot_fields, manifest=manifest, archive=lambda _: b"archive", user=user
    )[0].code


def make_link(**fields: Any) -> str:
    """The key of an invitation link with these fields, which nobody can open."""
    key = f"{len(fields)}{'camp' if 'campaign' in fields else 'acct'}"
    defaults = {"expires_at": timezone.now() + timedelta(days=1), **fields}
    return str(InvitationLink.objects.get_or_create(key=key, defaults=defaults)[0].key)


def make_artifact(people: People, run: str) -> str:
    """The name of a file beside a run of the participant's team."""
    form = {"file": SimpleUploadedFile("notes.txt", b"k1 = 0.9")}
    answer = people.api["staff"].post(f"/api/v1/runs/{run}/artifacts/", form, format="multipart")
    assert answer.status_code in (200, 201), answer.content
    name: str = answer.json()["name"]
    return name


def make_label(run: str) -> str:
    """A label that names the latest other run of the run's team."""
    this = Run.objects.get(pk=run)
    others = Run.objects.filter(
        collection=this.collection, team=this.team, deleted_at=None
    ).exclude(pk=run)
    named = others.select_related("collection", "team").latest("created_at")
    return move_label(run=named, name="main", user=None)[0].name


def make_view(slug: str) -> str:
    """The code of a view of the leaderboard for all of its readers, which is the name of the collection."""
    fields = {
        "name": "AP",
        "query": "measures=AP&columns=param%3Ak1",
        "scope": View.Scope.COLLECTION,
    }
    view, _ = View.objects.get_or_create(
        code=slug, collection=Collection.objects.get(slug=slug), defaults=fields
    )
    return view.code


def make_share(people: People, slug: str, **fields: Any) -> tuple[ShareLink, str]:
    """The owner's link to a leaderboard, or to what the fields say, and its secret."""
    shared = Shared(
        **{"kind": "leaderboard", "collection": Collection.objects.get(slug=slug), **fields}
    )
    return create_share(shared=shared, by=people.users["owner"])


def make_experiment(run: str) -> str:
    """The id of an experiment of the run's team with the run; those of other collections go."""
    this = Run.objects.select_related("team").get(pk=run)
    Experiment.objects.exclude(runs__collection=this.collection).delete()
    experiment, _ = Experiment.objects.get_or_create(
        team=this.team, slug="study", defaults={"name": "Study"}
    )
    ExperimentRun.objects.get_or_create(experiment=experiment, run=this)
    return str(experiment.pk)


def make_note(people: People, run: str) -> str:
    """The id of the participant's note about a run."""
    return str(
        Note.objects.get_or_create(run_id=run, author=people.users["participant"], text="seen")[
            0
        ].pk
    )


def make_system() -> str:
    """A system of the lab's, of which the blind worlds have versions."""
    slug: str = System.objects.get_or_create(team=Team.objects.get(slug="lab"), slug="dense")[
        0
    ].slug
    return slug


def make_session_set(people: People, slug: str) -> str:
    """The id of an evaluated session set of the participant's team."""
    form = {"file": SimpleUploadedFile("log", SESSIONS.encode()), "team": "guests", "tag": "log"}
    answer = people.api["participant"].post(
        f"/api/v1/collections/{slug}/sessions/", form, format="multipart"
    )
    assert answer.status_code in (200, 202), answer.content
    evaluate_all_sessions()
    pk: str = answer.json()["id"]
    return pk


def make_delivery(slug: str) -> Delivery:
    """What is due to a webhook of the collection, at an address that nothing is sent to."""
    webhook = Webhook(
        collection=Collection.objects.get(slug=slug),
        url="https://127.0.0.1/",
        events=["run.failed"],
    )
    webhook.secret_sealed = seal(new_secret(), webhook.pk)
    webhook.save()
    return Delivery.objects.create(webhook=webhook, event="run.failed", body="{}")


def make_comparison(slug: str) -> str:
    """The id of a comparison that a worker made; one that nobody has, where there is nothing to compare."""
    collection = Collection.objects.get(slug=slug)
    query = ComparisonQuery([parse_measure("AP")], tests=["paired_t"])
    try:
        stored = queue_comparison(collection=collection, query=query)
    except EvalHubError:
        return "00000000-0000-4000-8000-000000000000"
    compare(comparison_id=str(stored.pk))
    return str(stored.pk)


def address(name: str, parameters: list[str], values: dict[str, Any]) -> str:
    own = {**values, "chart": CHARTS.get(name, values["chart"])}
    return reverse(name, kwargs={parameter: own[parameter] for parameter in parameters})


def body_of(answer: Any) -> bytes:
    content: bytes = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return content


def run_ids(slug: str) -> list[str]:
    """In the order of submission."""
    return [
        str(pk)
        for pk in Run.objects.filter(collection__slug=slug)
        .order_by("created_at")
        .values_list("pk", flat=True)
    ]
