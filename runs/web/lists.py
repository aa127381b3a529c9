"""Lists of rows, each answered by the function that fills its shape."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Model
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response

Row = TypeVar("Row", bound=Model)


class AnswerList(generics.ListAPIView[Row]):
    """A page of a list: `answer` makes a TypedDict of a row, `serializer_class` is its shape.

    The description of the API reads the model from `queryset`, which is empty.
    """

    answer: staticmethod[[Any], Any]

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response([self.answer(row) for row in page])
