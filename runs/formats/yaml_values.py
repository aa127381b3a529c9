"""YAML as plain data: the types of JSON, without aliases, tags, deep nesting and repeated keys."""

from __future__ import annotations

import base64
import math
import re
from datetime import date

import yaml

MAX_DEPTH = 20
# Limits of a whole file.
MAX_BYTES = 1_000_000
MAX_NODES = 50_000
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
# libyaml reads a file of the largest size in a tenth of a second, PyYAML in ten.
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class UnusableYaml(ValueError):
    """Why a text cannot be used."""


class _StrictLoader(_Loader):  # type: ignore[misc,valid-type]
    """A loader of plain data that refuses repeated keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        keys: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in keys:
                raise UnusableYaml(
                    f"line {key.start_mark.line + 1} has the key {key.value[:40]!r} a second time"
                )
            keys.add(str(key.value))

        return super().construct_mapping(node, deep)  # type: ignore[no-any-return]


def read_yaml(content: bytes) -> object:
    """Return the data of a file, valid as JSON; times are texts.

    Raise UnusableYaml, which names the line, for bad YAML, more than one document, an anchor, an
    alias, a tag, more than MAX_BYTES, MAX_DEPTH levels or MAX_NODES values, and a repeated key. The
    events of the whole file are counted before anything is built.
    """
    if len(content) > MAX_BYTES:
        raise UnusableYaml(f"it has {len(content):,} bytes; at most {MAX_BYTES:,}")

    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise UnusableYaml("it is not UTF-8") from error

    try:
        _count(text)
        return plain_value(yaml.load(text, _StrictLoader))  # noqa: S506, a SafeLoader
    except UnusableYaml:
        raise
    except yaml.MarkedYAMLError as error:
        where = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UnusableYaml(f"bad YAML{where}: {str(error.problem)[:200]}") from error
    except Exception as error:  # PyYAML lets KeyError, AttributeError and more out for odd scalars
        raise UnusableYaml("bad YAML") from error


def _count(text: str) -> None:
    """Raise UnusableYaml for aliases, tags, and too many levels or values."""
    nodes, depth = 0, 0

    for event in yaml.parse(text, Loader=_Loader):
        if not isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
            continue

        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
            continue

        nodes += 1
        depth += isinstance(event, yaml.CollectionStartEvent)

        if event.anchor is not None:
            raise UnusableYaml(
                f"line {line} uses an anchor or an alias; write the value again instead"
            )

        if getattr(event, "tag", None) not in (None, "!"):
            raise UnusableYaml(f"line {line} uses a tag; leave it out")
        if depth > MAX_DEPTH:
            raise UnusableYaml(f"line {line} is nested more than {MAX_DEPTH} deep")
        if nodes > MAX_NODES:
            raise UnusableYaml(f"it has more than {MAX_NODES:,} values")


def plain_value(value: object) -> object:
    """Return the value in JSON's types; values that JSON lacks become strings."""
    if isinstance(value, dict):
        plain = {str(plain_value(key)): plain_value(item) for key, item in value.items()}
        if len(plain) != len(value):
            raise UnusableYaml("two of its keys are the same")
        return plain

    if isinstance(value, list | tuple | set):
        return [plain_value(item) for item in value]
    if value is None or isinstance(value, bool):
        return value

    return _plain_scalar(value)


def _plain_scalar(value: object) -> object:
    if isinstance(value, int):
        return value if value.bit_length() <= 64 else hex(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()

    text = str(value)
    if _UNSTORABLE.search(text):
        raise UnusableYaml("a text has a NUL or half a surrogate pair")

    return text


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, which git compares line by line."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _text)


def written_yaml(value: object) -> str:
    """Return data as YAML; keys keep their order."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
