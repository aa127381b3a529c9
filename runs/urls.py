"""Pages of collections and runs."""

from __future__ import annotations

from django.urls import URLPattern, path

from runs import views

urlpatterns: list[URLPattern] = [path("", views.home, name="home")]
