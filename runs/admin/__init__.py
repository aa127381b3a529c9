"""The administration of accounts, teams, collections and submissions; metrics.admin has the computed objects."""

from runs.admin import accounts, collections, submissions, teams, trail

__all__ = ["accounts", "collections", "submissions", "teams", "trail"]
