"""The app of what is computed from them: evaluations and their vectors."""

from django.apps import AppConfig


class MetricsConfig(AppConfig):
    name = "metrics"
    verbose_name = "Evaluations"
