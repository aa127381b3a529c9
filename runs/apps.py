"""The app of everything that users bring: teams, collections, runs."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    verbose_name = "Collections and runs"
