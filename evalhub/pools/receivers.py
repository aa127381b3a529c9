"""Receivers of `runs.hooks`: the files of pools are stored files that are needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.dispatch import receiver

from evalhub.pools.models import Pool
from runs import hooks


@receiver(hooks.stored_files)
def files_of_pools(*, sha256: str, **_: Any) -> Iterator[tuple[str, int, str]]:
    pools = Pool.objects.select_related("collection").only(
        "sha256", "size", "number", "collection__slug"
    )
    for pool in pools.filter(sha256=sha256) if sha256 else pools:
        yield pool.sha256, pool.size, str(pool)
