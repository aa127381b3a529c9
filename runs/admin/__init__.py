"""The administration of accounts, teams, collections, submissions, experiments and notes.

metrics.admin has the computed objects.
"""

from runs.admin import accounts, collections, experiments, submissions, teams, trail

__all__ = ["accounts", "collections", "experiments", "submissions", "teams", "trail"]
