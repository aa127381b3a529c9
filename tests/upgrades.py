"""The migrations one by one, as the databases of earlier versions came by them."""

from __future__ import annotations

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

Node = tuple[str, str]


class OneByOne(MigrationLoader):
    """Knows no migration that replaces others."""

    def load_disk(self) -> None:
        super().load_disk()
        found = self.disk_migrations or {}
        self.disk_migrations = {
            node: migration for node, migration in found.items() if not migration.replaces
        }


def upgrades() -> MigrationExecutor:
    executor = MigrationExecutor(connection)
    executor.loader = OneByOne(connection)
    return executor


def newest(*apps: str) -> list[Node]:
    return [
        node
        for node in upgrades().loader.graph.leaf_nodes()
        if node[0] in (apps or ("runs", "metrics"))
    ]
