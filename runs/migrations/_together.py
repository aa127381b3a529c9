"""Create the tables of a new database with one look at their models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.migrations.operations import CreateModel
from django.db.migrations.operations.base import Operation


class CreateTogether(Operation):
    """Create the models of these operations as they are after all of them, each with its constraints and indexes.

    Django makes its classes of models anew after every operation, which takes most of the time of a new database: here
    it makes them once.
    """

    reduces_to_sql = True
    reversible = True

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations

    def state_forwards(self, app_label: str, state: Any) -> None:
        # Made again when they are asked for next.
        state.__dict__.pop("apps", None)
        for operation in self.operations:
            operation.state_forwards(app_label, state)

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        for name in self._created():
            model = to_state.apps.get_model(app_label, name)
            if self.allow_migrate_model(schema_editor.connection.alias, model):
                schema_editor.create_model(model)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        for name in reversed(self._created()):
            model = from_state.apps.get_model(app_label, name)
            if self.allow_migrate_model(schema_editor.connection.alias, model):
                schema_editor.delete_model(model)

    def describe(self) -> str:
        return f"Create {len(self._created())} models"

    def _created(self) -> list[str]:
        return [operation.name for operation in self.operations if isinstance(operation, CreateModel)]
