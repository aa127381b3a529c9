"""The evaluation of a collection's runs: measures, number of documents, precision of scores."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request

from metrics.engine.errors import MeasureError
from metrics.engine.measures.grammar import Measure, split_names
from runs.errors import InvalidInput
from runs.models import Collection
from runs.pages.collections.manage.sections import ChangingSection, change_fields
from runs.web.forms import fields_of
from runs.web.parameters import check_fields

_SCORES = {
    Collection.Scores.FLOAT64.value: "double, as trec_eval 10",
    Collection.Scores.FLOAT32.value: "single, as trec_eval 9",
}


class MeasuresPage(ChangingSection):
    """Add measures to a collection, remove one, put one first; set documents and precision."""

    address, template = "manage-measures-page", "runs/manage/measures.html"

    def section_context(self, request: Request, collection: Collection) -> dict[str, Any]:
        stored = {"documents": collection.documents or "", "scores": collection.scores}
        names = ("documents", "scores", "add")
        fields = fields_of(request, *names) if request.method == "POST" else {}
        return {
            "measures": [_row(collection, name) for name in collection.measures],
            "precisions": _SCORES,
            "form_values": {**stored, **fields},
        }

    def change(self, request: Request, collection: Collection) -> str:
        form: Any = request.data
        # The text field and the button that adds a name may come together, unlike fields that a
        # page declares.
        check_fields(form, ("csrfmiddlewaretoken", "add", "remove", "first", "documents", "scores"))

        names = list(collection.measures)
        if "remove" in form or "first" in form:
            name = str(form.get("remove", form.get("first")))
            if name not in names:
                raise InvalidInput(
                    f"{name[:100]} is not a measure of this collection; load the page again"
                )

            names.remove(name)
            if "first" in form:
                names.insert(0, name)
            if not names:
                raise InvalidInput("a collection has at least one measure; add another one first")
            done = f"{name} is the first measure now." if "first" in form else f"{name} removed."
        elif "add" in form:
            # The last value is that of the button that adds a name, if it was pressed.
            new_names = split_names(str(form.getlist("add")[-1]))
            if not new_names:
                raise InvalidInput("type the name of a measure, such as nDCG@20", pointer="/add")
            names += new_names
            done = f"{', '.join(new_names)} added."
        else:
            documents = str(form.get("documents", "")).strip()
            fields = {"documents": documents or None, "scores": form.get("scores")}
            change_fields(request, collection, fields)
            return "Changes saved."

        change_fields(request, collection, {"measures": names})
        return done


def _row(collection: Collection, name: str) -> tuple[str, Measure | None]:
    """Return a stored name with its measure, which a later release may no longer have."""
    try:
        return name, collection.measure(name)
    except MeasureError:
        return name, None
