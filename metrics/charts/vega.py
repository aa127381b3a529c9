"""Altair, loaded with the first chart: a fifteenth of what a server's start takes, and 28 MB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metrics.engine.late import Late

if TYPE_CHECKING:
    import altair as alt
else:
    alt = Late("altair")

__all__ = ["alt"]
