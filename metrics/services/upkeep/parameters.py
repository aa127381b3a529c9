"""Check that searched parameters are those of the runs' metadata and costs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from django.db.models import Exists, OuterRef

from metrics.services.upkeep.findings import Finding
from runs.models import Parameter, ParameterKey
from runs.services.tracking.parameters import MAX_KEYS, find_differing, store_parameters


def find_in_parameters() -> Iterator[Finding]:
    """Yield the runs whose rows differ, together for some hundred runs, and keys without a run."""
    for collection, runs in find_differing():
        text = (
            f"{len(runs)} runs of collection {collection} are searched by other parameters than "
            f"they have, such as run {runs[0].pk}; --repair writes them again"
        )
        yield Finding("parameters_differ", text, partial(store_parameters, collection, runs))

    rows = Parameter.objects.filter(key=OuterRef("pk"))
    has_kind = (
        Exists(rows.filter(**{f"{kind}__isnull": False}))
        for kind in ("number", "folded", "boolean")
    )

    unused = ParameterKey.objects.filter(unit="", note="")
    for has_values in has_kind:
        unused = unused.exclude(has_values)

    if count := unused.count():
        text = (
            f"{count} names of parameters have no run; a collection has room for {MAX_KEYS:,}, "
            "--repair removes them"
        )
        yield Finding("unused_parameters", text, unused.delete, note=True)
