"""The app of suites. Nothing in `runs` or `metrics` depends on its tables."""

from django.apps import AppConfig


class SuitesConfig(AppConfig):
    name = "evalhub.suites"
    verbose_name = "Suites"

    def ready(self) -> None:
        # Registered when Django is complete: receivers read the models.
        import evalhub.suites.receivers  # noqa: F401
