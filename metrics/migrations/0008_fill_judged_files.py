"""Note for every evaluation of an earlier release which files it was made from: those that its run names."""

from __future__ import annotations

from typing import Any

from django.db import migrations
from django.db.models import OuterRef, Subquery, Value
from django.db.models.functions import Coalesce, Concat

_FILES = {"Evaluation": ("Run", Concat("sha256", "known_sha256")), "SessionEvaluation": ("SessionSet", "sha256")}
_ROWS = 2000


def fill(apps: Any, schema_editor: Any) -> None:
    for model, (of, files) in _FILES.items():
        key = {"Run": "run", "SessionSet": "session_set"}[of]
        named = apps.get_model("runs", of).objects.filter(pk=OuterRef(f"{key}_id")).order_by().values_list(files)
        evaluations = apps.get_model("metrics", model).objects
        unbound = evaluations.filter(state="evaluated", judged_files="").order_by("pk").values_list("pk", flat=True)
        last = 0
        while batch := list(unbound.filter(pk__gt=last)[:_ROWS]):
            # What has lost its run stays as it is, for fsck to find.
            evaluations.filter(pk__in=batch).update(judged_files=Coalesce(Subquery(named), Value("")))
            last = batch[-1]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("metrics", "0007_judged_files"), ("runs", "0012_install")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
