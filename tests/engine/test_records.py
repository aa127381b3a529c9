"""`frozen` and `mutable` make what `dataclass` makes, without generated code."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import pytest

from metrics.engine.records import frozen, mutable


@frozen
class Shelf:
    name: str
    width: int = 80
    books: list[str] = field(default_factory=list)

    @cached_property
    def label(self) -> str:
        return f"{self.name} ({self.width})"


@dataclass(frozen=True)
class Other:
    name: str
    width: int = 80
    books: list[str] = field(default_factory=list)


@mutable
class Stack:
    name: str
    width: int = 80
    books: list[str] = field(default_factory=list)


@dataclass
class OtherStack:
    name: str
    width: int = 80
    books: list[str] = field(default_factory=list)


@frozen
class Pair:
    first: Any
    second: Any


ARGUMENTS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("a",), {}),
    (("a", 90), {}),
    (("a",), {"books": ["b"]}),
    (("a", 80, []), {}),
    ((), {"books": ["b"], "name": "a"}),
]
WRONG: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    (("a", 1, [], 4), {}),
    (("a",), {"name": "b"}),
    (("a",), {"height": 1}),
    ((), {"width": 1, "height": 1}),
]


@pytest.mark.parametrize(("make", "like"), [(Shelf, Other), (Stack, OtherStack)])
@pytest.mark.parametrize(("values", "named"), ARGUMENTS)
def test_an_object_is_that_of_a_dataclass(
    make: Any, like: Any, values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    made, other = make(*values, **named), like(*values, **named)
    assert repr(made) == repr(other).replace(like.__name__, make.__name__)
    assert is_dataclass(made)
    assert asdict(made) == asdict(other)
    assert [(each.name, each.type) for each in fields(made)] == [
        (each.name, each.type) for each in fields(other)
    ]
    assert make.__match_args__ == like.__match_args__
    assert replace(made, width=1) == make(made.name, 1, made.books)
    assert copy.copy(made) == copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize("make", [Shelf, Other, Stack, OtherStack])
@pytest.mark.parametrize(("values", "named"), WRONG)
def test_wrong_arguments_are_refused(
    make: Callable[..., Any], values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match=make.__name__):
        make(*values, **named)


def test_every_object_has_a_list_of_its_own() -> None:
    one, two = Shelf("a"), Shelf("a")
    one.books.append("b")
    assert (one.books, two.books) == (["b"], [])


def test_objects_are_equal_by_class_and_values_and_keys_of_a_dictionary() -> None:
    assert Pair(1, "x") == Pair(1.0, "x") != Pair(1, "y")
    assert Shelf("a") != Other("a")
    assert {Pair(1, "x"): "found"}[Pair(1, "x")] == "found"
    with pytest.raises(TypeError, match="unhashable"):
        hash(Shelf("a"))


def test_what_is_mutable_is_changed_and_has_no_hash() -> None:
    stack = Stack("a")
    stack.width = 1
    assert stack == Stack("a", 1)
    assert Stack.__hash__ is None
    with pytest.raises(TypeError, match="unhashable"):
        hash(Stack("a"))


def test_what_is_frozen_is_neither_assigned_nor_deleted_but_computed_once() -> None:
    shelf = Shelf("a")
    with pytest.raises(FrozenInstanceError, match="'name' of Shelf"):
        shelf.name = "b"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="'name' of Shelf"):
        del shelf.name
    assert shelf.label is shelf.label
    assert shelf == Shelf("a")
    assert replace(shelf, name="b").label == "b (80)"
