"""The app of what people bring: teams, collections, runs."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    verbose_name = "Collections and runs"
