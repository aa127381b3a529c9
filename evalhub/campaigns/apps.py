"""The app of campaigns.

Its tables are in `runs.models`, because who sees what of a collection depends on them.
"""

from django.apps import AppConfig


class CampaignsConfig(AppConfig):
    name = "evalhub.campaigns"
    verbose_name = "Campaigns"

    def ready(self) -> None:
        # Registered when Django is complete: receivers read the models.
        import evalhub.campaigns.receivers  # noqa: F401
