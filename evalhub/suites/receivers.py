"""Receivers of `runs.hooks`: what suites have of a collection that is deleted."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from evalhub.suites.services.suites import delete_versions_with
from runs import hooks
from runs.models import Collection


@receiver(hooks.before_deletion)
def delete_versions(*, collection: Collection, **_: Any) -> None:
    delete_versions_with(collection)
