"""The administration of accounts, teams, collections and what was submitted; metrics.admin has what is computed."""

from runs.admin import accounts, collections, submissions, teams, trail

__all__ = ["accounts", "collections", "submissions", "teams", "trail"]
