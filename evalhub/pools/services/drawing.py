"""Draw by a seed: the same on every machine and in every release."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from evalhub.pools.models import Pool


def draw_order(seed: int, *of: str, doc_ids: Iterable[str]) -> list[str]:
    """Return documents in an order drawn from a seed and from what it is for.

    The order of two documents does not depend on the others: it is that of the SHA-256 of the seed,
    `of` and the document.
    """
    start = hashlib.sha256("\t".join((str(seed), *of)).encode() + b"\t")

    def key(doc_id: str) -> bytes:
        digest = start.copy()
        digest.update(doc_id.encode())
        return digest.digest()

    return sorted(doc_ids, key=key)


def file_order(pool: Pool, topic_id: str, doc_ids: Iterable[str], assessor: str = "") -> list[str]:
    """Return documents of a topic in the order in which an assessor gets them.

    It is drawn from the seed of the pool and the name of the assessor, so that a place in it says
    nothing of ranks and runs.
    """
    return draw_order(pool.seed, "file", assessor, topic_id, doc_ids=doc_ids)
