"""evalhub delete_collection: delete an empty collection."""

from __future__ import annotations

from typing import Any

from django.core.management import CommandError, CommandParser

from evalhub.management import command
from evalhub.operating.checks import OWN_CHECKS
from runs.errors import Conflict
from runs.models import Collection
from runs.services.collections.collections import delete_collection


class Command(command.Command):
    help = "Delete a collection that has no judgements, runs, session sets or phases."
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")

    def handle(self, **options: Any) -> None:
        collection = Collection.objects.filter(slug=options["slug"]).first()
        if collection is None:
            raise CommandError(f"there is no collection {options['slug']!r}")

        try:
            delete_collection(collection=collection)
        except Conflict as error:
            raise CommandError(error.message) from error
