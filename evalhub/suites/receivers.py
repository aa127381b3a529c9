"""Receivers of `runs.hooks`: what suites have of a collection or a measure that is deleted."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from evalhub.suites.services.suites import check_not_averaged, delete_versions_with
from runs import hooks
from runs.models import Collection, ExternalMeasure


@receiver(hooks.before_deletion)
def delete_versions(*, collection: Collection, **_: Any) -> None:
    delete_versions_with(collection)


@receiver(hooks.before_measure_deletion)
def keep_averaged_measures(*, measure: ExternalMeasure, user: Any, **_: Any) -> None:
    check_not_averaged(measure, user)
