"""The administration of accounts, teams, collections, submissions, experiments, notes and campaigns.

metrics.admin has the computed objects.
"""

from runs.admin import accounts, campaigns, collections, experiments, submissions, teams, trail

__all__ = ["accounts", "campaigns", "collections", "experiments", "submissions", "teams", "trail"]
