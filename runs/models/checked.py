"""Columns of JSON that are checked when they are read: valid JSON, and equal to their digest."""

from __future__ import annotations

import json
from typing import Any

from django.db import models
from django.db.models.fields.json import KeyTransform
from django.db.models.query_utils import DeferredAttribute

from runs.errors import StoredValueCorrupt


class StoredJSON(models.JSONField):
    """A JSON column that refuses stored text which is no longer JSON; Django returns the text."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        if value is None or isinstance(expression, KeyTransform):
            return super().from_db_value(value, expression, connection)

        try:
            return json.loads(value, cls=self.decoder)
        except ValueError as error:
            return self.unreadable(error)

    def unreadable(self, error: ValueError) -> Any:
        """Return the value to read instead, or raise StoredValueCorrupt."""
        name = f"{self.name} of a {self.model._meta.verbose_name}"
        message = (
            f"a stored value is damaged ({name}), and nothing is shown of it; "
            "evalhub fsck says in which row"
        )
        raise StoredValueCorrupt(message) from error

    def deconstruct(self) -> Any:
        """Return a plain JSON column for migrations, which it is in the database."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs


class ReadableJSON(StoredJSON):
    """A JSON column that returns None instead, which does not match its digest."""

    def unreadable(self, error: ValueError) -> Any:
        return None


class _Checked(DeferredAttribute):
    """Compare the topic ids with their digest when they are first read."""

    def __get__(self, instance: Any, cls: Any = None) -> Any:
        topic_ids = super().__get__(instance, cls)
        if instance is None:
            return topic_ids
        if topic_ids is not None and instance.__dict__.get("_sound_ids") is topic_ids:
            return topic_ids

        digest = instance.topic_ids_digest
        if topic_ids is None or digest not in (None, instance.digest_of_topic_ids(topic_ids)):
            raise StoredValueCorrupt(
                f"the stored topic ids of qrels v{instance.version} are damaged, and nothing is "
                "shown of them; evalhub fsck --repair reads them again from the file of the "
                "judgements"
            )

        instance.__dict__["_sound_ids"] = topic_ids
        return topic_ids

    def __set__(self, instance: Any, value: Any) -> None:
        # Python then calls `__get__` for every instance, not only for those with a deferred value.
        instance.__dict__[self.field.attname] = value


class TopicIds(ReadableJSON):
    """The topics of judgements, checked against `topic_ids_digest`, which old rows may lack."""

    descriptor_class = _Checked

    def value_from_object(self, obj: models.Model) -> Any:
        """Return the stored value, damaged or not, so that a backup keeps it."""
        return obj.__dict__[self.attname]

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Return the stored value for a backup that is restored."""
        return model_instance.__dict__[self.attname]
