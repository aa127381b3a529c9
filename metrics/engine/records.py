"""Dataclasses that take little time to define.

`dataclass` writes the methods of a class as text and compiles it, again at every start, which takes 0.3 ms for each
class. `evalhub eval` loads forty of them, and would take a tenth of its time on a small run for it.

`replace`, `fields` and type checkers see dataclasses. What no class here needs is left out: `__post_init__`, inherited
fields, and those that are not given, shown or compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)
_Methods = dict[str, Callable[..., Any] | None]


@dataclass_transform(field_specifiers=(field,))
def mutable(cls: _Class) -> _Class:
    """Make a class what `dataclass` makes of it, without generating code."""
    return _with_methods(cls, {"__hash__": None})


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: _Class) -> _Class:
    """Make a class what `dataclass(frozen=True)` makes of it, without generating code."""
    return _with_methods(cls, {"__setattr__": _refuse, "__delattr__": _refuse})


def _with_methods(cls: _Class, methods: _Methods) -> _Class:
    dataclass(init=False, repr=False, eq=False)(cls)
    names = tuple(each.name for each in fields(cls))
    values_of = attrgetter(*names)

    def equal(self: Any, other: object) -> bool:
        return (
            values_of(self) == values_of(other)
            if other.__class__ is self.__class__
            else NotImplemented
        )

    def show(self: Any) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"

    shared: _Methods = {
        "__init__": _initialiser(cls, names),
        "__eq__": equal,
        "__hash__": lambda self: hash(values_of(self)),
        "__repr__": show,
    }
    for name, method in (shared | methods).items():
        setattr(cls, name, method)
    return cls


def _initialiser(cls: type, names: tuple[str, ...]) -> Callable[..., None]:
    defaults = {each.name: each.default for each in fields(cls) if each.default is not MISSING}
    factories = {
        each.name: each.default_factory
        for each in fields(cls)
        if each.default_factory is not MISSING
    }
    every = frozenset(names)

    def initialise(self: Any, *values: Any, **named: Any) -> None:
        given = dict(zip(names, values, strict=False)) | named
        once = len(given) == len(values) + len(named)
        if len(given) < len(names):
            made = {name: make() for name, make in factories.items() if name not in given}
            given = defaults | made | given
        if not once or given.keys() != every:
            raise TypeError(f"wrong arguments for {cls.__qualname__}({', '.join(names)})")
        self.__dict__.update(given)

    return initialise


def _refuse(self: Any, name: str, value: Any = None) -> NoReturn:
    raise FrozenInstanceError(f"cannot change {name!r} of {self.__class__.__qualname__}")
