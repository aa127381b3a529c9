"""The composition root as an app: base templates, style sheet, system checks."""

from django.apps import AppConfig


class EvalHubConfig(AppConfig):
    name = "evalhub"
    verbose_name = "EvalHub"
