"""What every address must answer to everybody: it follows from the objects that the address names and from its view.

A new address needs no line here unless it names objects of a new kind.
"""

from __future__ import annotations

from typing import NamedTuple

from runs.models import Scope
from runs.web.permissions import Access
from tests.web.access.addresses import Address

# `lab` organises: its owner and a member; the participant submits for `guests` and takes part in
# the campaign; the other is a stranger, who is invited to the lab.
ROLES = ("anonymous", "participant", "member", "owner", "other", "staff")
Roles = frozenset[str]
ALL, SIGNED_IN = frozenset(ROLES), frozenset(ROLES[1:])
LAB, ORGANISERS = frozenset({"member", "owner", "staff"}), frozenset({"owner", "staff"})
GUESTS, PARTICIPANT = frozenset({"participant", "staff"}), frozenset({"participant"})
OWNER, INVITED, NOBODY = frozenset({"owner"}), frozenset({"other"}), frozenset[str]()


class Thing(NamedTuple):
    """Who sees an object, who manages it, and who adds to it or changes it with the scope `submit`."""

    seen: Roles
    manage: Roles = NOBODY
    add: Roles = NOBODY


_COLLECTION = Thing(ALL, ORGANISERS, SIGNED_IN)
_RUN = Thing(ALL, NOBODY, GUESTS)
_TEAM = Thing(LAB, ORGANISERS)
_ORGANISED = Thing(ORGANISERS, ORGANISERS)
_CAMPAIGN = Thing(ALL, ORGANISERS, PARTICIPANT)
# Its team and the organisers see it.
_SEEN_BY_BOTH = PARTICIPANT | ORGANISERS
# What the parameters of an address name. The last of an address decides who may change it.
THINGS = {
    "": Thing(ALL, SIGNED_IN, SIGNED_IN),
    "collection": _COLLECTION,
    "slug": _COLLECTION,
    "comparison": Thing(ALL),
    "code": Thing(ALL, NOBODY, ORGANISERS),
    "run": _RUN,
    "run_id": _RUN,
    "session_set": _RUN,
    "label": _RUN,
    "artifact": _RUN,
    "note": _RUN,
    "experiment": Thing(GUESTS, NOBODY, GUESTS),
    "system": Thing(LAB, LAB),
    "team": _TEAM,
    "username": _TEAM,
    "invited": _TEAM,
    "webhook": _ORGANISED,
    "delivery": _ORGANISED,
    "release": _ORGANISED,
    "key": Thing(OWNER, OWNER),
    "share": _ORGANISED,
    "campaign": _CAMPAIGN,
    "phase": _CAMPAIGN,
    "agreement": _CAMPAIGN,
    "entrant": Thing(_SEEN_BY_BOTH, frozenset({"staff"}), PARTICIPANT),
    "participant": Thing(_SEEN_BY_BOTH, NOBODY, PARTICIPANT),
    "entry": Thing(_SEEN_BY_BOTH, ORGANISERS, PARTICIPANT),
    "snapshot": Thing(ALL, ORGANISERS),
    "campaign_link": _CAMPAIGN,
    "account_link": Thing(frozenset({"staff"}), frozenset({"staff"})),
    "suite": Thing(ALL, ORGANISERS),
    "pool": _ORGANISED,
    # The member is an assessor of it.
    "assigned_pool": Thing(LAB, ORGANISERS, LAB),
}
# Parts of an address that name no object with readers of its own.
PLAIN = {
    "act",
    "chart",
    "declared",
    "ending",
    "file_form",
    "form",
    "kind",
    "measure",
    "name",
    "parameter",
    "session",
    "space",
    "topic",
    "version",
}
# What is not there for those who do not see its collection.
INSIDE = {"collection", "slug", "comparison", "code", "run", "run_id", "session_set"}
GROUPS = {
    Access.SIGNED_IN: SIGNED_IN,
    Access.ORGANISERS: ORGANISERS,
    Access.TEAM: GUESTS,
    Access.TEAM_OR_ORGANISERS: _SEEN_BY_BOTH,
    Access.PARTICIPANTS: PARTICIPANT,
    Access.AUTHOR: PARTICIPANT,
    Access.MEMBER_OR_OWNERS: LAB,
    Access.INVITED: INVITED,
    Access.ADMINISTRATORS: frozenset({"staff"}),
}
UNKNOWN_TO_OTHERS = {Access.INVITED, Access.ADMINISTRATORS}
# The only forms that are sent without an account.
OPEN_FORMS = {
    "login",
    "logout",
    "first-account-page",
    "join-page",
    "join-campaign-page",
    "register-page",
    "forgotten-password-page",
    "new-password-page",
    "new-provider-account-page",
}
# What a page of a share link shows needs the secret of the link; nobody has it here.
SECRET_LINKS = {"open-share", "shared-page", "shared-file", "shared-chart"}
# What is withdrawn is there for its team.
WITHDRAWN = {"run-restore", "session-set-restore"}
LOGIN, FORBIDDEN, HIDDEN, ALLOWED = "login", "forbidden", "hidden", "allowed"


class Unstated(Exception):
    """A view that does not say who may do something."""


def things_of(address: Address, *, private: bool = False) -> dict[str, Thing]:
    """Return the objects of an address by parameter; with `private`, where their collection is."""
    things = {}
    for name in address.parameters:
        if name not in {*THINGS, *PLAIN}:
            raise Unstated(f"say in THINGS or PLAIN of {__name__} what <{name}> is")
        if name in THINGS:
            things[name] = THINGS[name]
        if private and name in INSIDE:
            things[name] = THINGS[name]._replace(seen=ORGANISERS)
    if address.name in SECRET_LINKS:
        things["share"] = Thing(NOBODY)
    if address.name in WITHDRAWN:
        things = {name: thing._replace(seen=GUESTS) for name, thing in things.items()}
    return things


def allowed_to(address: Address, method: str, things: dict[str, Thing]) -> Roles:
    """Return who may use a method of those who see its objects. Raise Unstated if the view does not say it."""
    last = ([THINGS[""], *things.values()])[-1]
    access, scope = address.access(method), address.scope(method)
    if access and access is not Access.READERS:
        return GROUPS[access]
    form = address.is_form and address.is_signed_in("GET") and "POST" in address.methods
    if method == "GET" and form and access is None:
        return allowed_to(address, "POST", things)
    if method == "GET" or access is Access.READERS or address.name in OPEN_FORMS:
        return ALL
    if scope == Scope.READ:
        return SIGNED_IN
    may = {Scope.MANAGE: last.manage, Scope.SUBMIT: last.add}.get(scope, NOBODY)
    if not may:
        raise Unstated(
            f"{method} changes something, and its view says neither by `scopes` nor by `access` who may: "
            f"scopes are {getattr(address.view, 'scopes', {})}, the last object is {[*things][-1:]}"
        )
    return may


def expected(address: Address, method: str, role: str, *, private: bool = False) -> str:
    """Return what a request comes to: one of LOGIN, HIDDEN, FORBIDDEN and ALLOWED."""
    things = things_of(address, private=private)
    allowed = allowed_to(address, method, things)
    if role == "anonymous" and address.name not in OPEN_FORMS and address.is_signed_in(method):
        return LOGIN
    if address.access(method) in UNKNOWN_TO_OTHERS:
        return ALLOWED if role in allowed else HIDDEN
    if not all(role in thing.seen for thing in things.values()):
        return HIDDEN
    return ALLOWED if role in allowed else FORBIDDEN


def outcome(status: int, location: str) -> str:
    """Return what the status of an answer means, in the words of `expected`."""
    if status == 401 or (status == 302 and location.startswith("/login/?next=")):
        return LOGIN
    return {403: FORBIDDEN, 404: HIDDEN}.get(status, ALLOWED)
