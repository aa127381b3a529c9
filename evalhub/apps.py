"""The composition root as an app: base templates, style sheet, system checks."""

from importlib import import_module

from django.apps import AppConfig


class EvalHubConfig(AppConfig):
    name = "evalhub"
    verbose_name = "EvalHub"

    def ready(self) -> None:
        # Registered when Django is complete: the checks read the settings.
        import_module("evalhub.operating.checks")
