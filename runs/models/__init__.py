"""What people bring, as tables."""

from runs.models.accounts import ApiToken, Membership, Team, User
from runs.models.collections import DEFAULT_MEASURES, Collection, Qrels, Topic
from runs.models.runs import Run

__all__ = [
    "DEFAULT_MEASURES",
    "ApiToken",
    "Collection",
    "Membership",
    "Qrels",
    "Run",
    "Team",
    "Topic",
    "User",
]
