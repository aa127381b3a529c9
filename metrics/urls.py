"""Pages of values, leaderboards and comparisons."""

from __future__ import annotations

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
