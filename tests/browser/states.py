"""Runs in the states that pass too quickly to be looked at, or never come about by themselves."""

from __future__ import annotations

from datetime import timedelta

# These run in a shell of the server, whose models they change; importing this needs none.
SLUG = "states"
STATES = ("queued", "failed", "stale", "stale-failed")


def make_account(name: str, password: str) -> None:
    from runs.models import User

    User.objects.create_superuser(name, password=password)


def arrange() -> None:
    """Make of four runs, evaluated under both versions of the judgements, one in each state."""
    from django.utils import timezone

    from metrics.models import Evaluation

    later = timezone.now() + timedelta(days=1)
    waits = {
        "state": "queued",
        "not_before": later,
        "attempts": 1,
        "error_code": "evaluation_error",
    }
    message = "the evaluation took longer than ten minutes, three times"
    failed = {
        "state": "failed",
        "attempts": 3,
        "error_code": "evaluation_timeout",
        "error_message": message,
    }
    for tag in STATES:
        own = Evaluation.objects.filter(run__collection__slug=SLUG, run__tag=tag)
        own.filter(qrels__active=True).update(**(failed if tag.endswith("failed") else waits))
        if not tag.startswith("stale"):
            own.filter(qrels__active=False).delete()


def take_part(name: str, agreement: str) -> None:
    """Let the personal team of an account take part in the campaign of the site, and another team wait."""
    from evalhub.campaigns.services.teams import change_state, register_team, sign
    from runs.models import Agreement, Campaign, Team, User

    cup, user = (
        Campaign.objects.select_related("team").get(slug="cup"),
        User.objects.get(username=name),
    )
    own = register_team(campaign=cup, team=user.personal_team, user=user, name="Walkers")
    change_state(participation=own, state="accepted", user=user)
    sign(agreement=Agreement.objects.get(sha256=agreement), user=user, typed_name="W. Alker")
    other = User.objects.create_user("waiter")
    register_team(
        campaign=cup, team=Team.objects.get(personal_of=other), user=other, name="Waiters"
    )
