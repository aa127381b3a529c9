"""The composition root as an app: base templates, style sheet, system checks."""

import atexit
import gc

from django.apps import AppConfig


class EvalHubConfig(AppConfig):
    name = "evalhub"
    verbose_name = "EvalHub"

    def ready(self) -> None:
        # Registered when Django is complete: the checks read the settings.
        import evalhub.operating.checks  # noqa: F401

        # A process that ends gives back its memory as a whole; Python would look through all of it
        # for garbage first, for up to half a second.
        atexit.register(gc.freeze)
