"""The measures of a collection, by the names under which their values are stored."""

from __future__ import annotations

from contextlib import suppress

from metrics.engine.errors import MeasureError
from runs.models import Collection


def own_measures(collection: Collection) -> set[str]:
    """Return the names of the collection's own measures as their values are stored.

    They are those of this release, with the number of documents where they need it. A measure that
    it cannot compute has none.
    """
    names = set()
    for name in collection.measures:
        with suppress(MeasureError):
            names.add(collection.measure(name).name)
    return names
