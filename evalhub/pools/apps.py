"""The app of pools and judgements. Nothing in `runs` or `metrics` depends on its tables."""

from django.apps import AppConfig


class PoolsConfig(AppConfig):
    name = "evalhub.pools"
    verbose_name = "Pools"

    def ready(self) -> None:
        # Registered when Django is complete: receivers read the models.
        import evalhub.pools.receivers  # noqa: F401
