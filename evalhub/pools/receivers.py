"""Receivers of `runs.hooks`: stored files that pools need, and runs that were pooled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.dispatch import receiver

from evalhub.pools.models import Pool, PoolRun
from runs import hooks
from runs.models import Phase


@receiver(hooks.pooled_runs)
def runs_of_shown_pools(*, phase: Phase, **_: Any) -> list[UUID] | None:
    pools = Pool.objects.filter(phase=phase, shown_at__isnull=False)
    if not pools.exists():
        return None

    pooled = PoolRun.objects.filter(pool__in=pools).exclude(depth=0)
    return list(pooled.values_list("run_id", flat=True))


@receiver(hooks.stored_files)
def files_of_pools(*, sha256: str, **_: Any) -> Iterator[tuple[str, int, str]]:
    pools = Pool.objects.select_related("collection").only(
        "sha256", "size", "number", "collection__slug"
    )
    for pool in pools.filter(sha256=sha256) if sha256 else pools:
        yield pool.sha256, pool.size, str(pool)
