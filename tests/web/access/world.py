"""One world for all requests: a collection with one of everything, and beside it what only some may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rest_framework.test import APIClient

from runs.models import (
    ALL_SCOPES,
    ApiToken,
    Campaign,
    Collection,
    Experiment,
    Membership,
    Run,
    Team,
    User,
    View,
    Webhook,
)
from tests.conftest import GOOD, client_of, evaluate_all
from tests.web.access.addresses import Address
from tests.web.access.rules import (
    GUESTS,
    INVITED,
    ORGANISERS,
    OWNER,
    PARTICIPANT,
    ROLES,
    Roles,
)
from tests.web.worlds import (
    People,
    add_qrels,
    arguments,
    make_collection,
    make_people,
    make_runs,
    run_ids,
    submit_form,
)

NO_ID = "00000000-0000-4000-8000-000000000000"
# Names of what is not there.
_BY_ID = (
    "comparison",
    "run",
    "run_id",
    "session_set",
    "experiment",
    "note",
    "webhook",
    "delivery",
    "release",
    "entry",
    "pool",
    "assigned_pool",
)
_BY_NAME = (
    "collection", "slug", "team", "label", "code", "artifact", "system", "username", "invited", "entrant", "key",
    "participant", "campaign", "phase", "share", "campaign_link", "account_link", "suite",
)  # fmt: skip
ABSENT = {
    **dict.fromkeys(_BY_ID, NO_ID),
    **{name: f"absent-{name}" for name in _BY_NAME},
    "snapshot": "ab" * 10,
}


@dataclass(frozen=True)
class World:
    """The people, what stands for each parameter, and the words that only some of them may read."""

    people: People
    values: dict[str, Any]
    other: str
    secrets: dict[str, Roles]
    tokens: dict[tuple[str, str], APIClient]

    def client(self, address: Address, method: str, role: str) -> Any:
        """Return a browser, or a client whose token has the one scope that is needed."""
        if address.is_page:
            return self.people.browsers[role]
        return self.tokens.get((role, address.scope(method)), self.people.api[role])


def make_world() -> World:
    people = make_people()
    for role in ROLES[1:]:
        User.objects.filter(username=role).update(email=f"mail-of-{role}@example.org")
    add_qrels(people, make_collection(people, "one"))
    values = arguments(people, "one", make_runs(people, "one"))
    secrets = {**_name_apart(values), **_make_hidden(people)}
    secrets |= {f"mail-of-{role}@": frozenset({role}) | ORGANISERS for role in ROLES[1:]}
    tokens = {
        (role, scope): client_of(people.users[role], [scope])
        for role in ROLES[1:]
        for scope in ALL_SCOPES
    }
    return World(people, values, run_ids("one")[1], secrets, tokens)


def _name_apart(values: dict[str, Any]) -> dict[str, Roles]:
    """Give the objects that few may see names that stand nowhere else."""
    Experiment.objects.filter(pk=values["experiment"]).update(goal="goal-of-guests")
    Webhook.objects.filter(pk=values["webhook"]).update(url="https://127.0.0.1/hook-of-lab/")
    ApiToken.objects.filter(key=values["key"]).update(name="token-of-owner")
    return {
        "goal-of-guests": GUESTS,
        "token-of-owner": OWNER,
        "hook-of-lab": ORGANISERS,
        "P. Articipant": PARTICIPANT | ORGANISERS,
        values["share"]: ORGANISERS,
        values["release"]: ORGANISERS,
        values["entry"]: PARTICIPANT | ORGANISERS,
    }


def _make_hidden(people: People) -> dict[str, Roles]:
    """Make what stands beside the collection: runs of a blind and of a private one, and what one
    team or one user keeps to itself."""
    lab, others = (Team.objects.get(slug=slug) for slug in ("lab", "others"))
    add_qrels(people, make_collection(people, "dark", blind=True))
    hidden = make_collection(people, "secret-collection", visibility="private", name="secret-name")
    add_qrels(people, hidden)
    for role, slug, team in (
        ("participant", "dark", "guests"),
        ("member", "dark", "lab"),
        ("other", "dark", "others"),
        ("owner", hidden, "lab"),
    ):
        content = GOOD.replace("Q0 c", f"Q0 doc-of-{role}-in-{slug}")
        answer = submit_form(people.api[role], slug, content, team=team, tag=f"{role}-in-{slug}")
        assert answer.status_code == 202, answer.content
    evaluate_all()
    gone = submit_form(people.api["participant"], "one", GOOD, team="guests", tag="withdrawn-run")
    evaluate_all()
    assert people.api["participant"].delete(f"/api/v1/runs/{gone.json()['id']}/").status_code == 204

    Experiment.objects.create(team=others, slug="plan-of-others", name="plan-of-others")
    collection = Collection.objects.get(slug="one")
    fields = {"scope": View.Scope.ME, "owner": people.users["member"], "query": "measures=AP"}
    View.objects.create(collection=collection, code="personal", name="view-of-member", **fields)
    Campaign.objects.create(slug="draft-of-lab", name="draft-of-lab", team=lab)
    quiet = Team.objects.create(slug="quiet-team", name="quiet-team")
    Membership.objects.create(team=quiet, user=people.users["other"], role="owner")
    runs = {run.tag: str(run.pk) for run in Run.objects.exclude(collection=collection)}
    seen = {
        "participant-in-dark": PARTICIPANT | ORGANISERS,
        "member-in-dark": frozenset({"member"}) | ORGANISERS,
        "other-in-dark": INVITED | ORGANISERS,
        "owner-in-secret-collection": ORGANISERS,
    }
    return {
        **seen,
        **{runs[tag]: roles for tag, roles in seen.items()},
        "secret-name": ORGANISERS,
        "withdrawn-run": PARTICIPANT | ORGANISERS,
        "plan-of-others": INVITED | {"staff"},
        "view-of-member": frozenset({"member"}),
        "draft-of-lab": ORGANISERS,
        "quiet-team": INVITED | {"staff"},
    }
