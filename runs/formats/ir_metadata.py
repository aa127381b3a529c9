"""The ir_metadata header of a run file: YAML in comment lines between ir_metadata.start and ir_metadata.end."""

from __future__ import annotations

import base64
import math
import re
import textwrap
from datetime import date

import yaml

MAX_BYTES = 100_000
MAX_DEPTH = 20
_START, _END = b"ir_metadata.start", b"ir_metadata.end"
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


class _Unusable(ValueError):
    """Why a header cannot be used."""


class _Loader(yaml.SafeLoader):
    """Refuses aliases, whose expansion can be exponential, and deep nesting before it recurses."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            raise _Unusable("it uses anchors or aliases")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _Unusable(f"it is nested more than {MAX_DEPTH} deep")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def read_ir_metadata(comment_lines: list[bytes]) -> tuple[dict[str, object] | None, str | None]:
    """Return the header's mapping, valid as JSON, or None; and why an existing header cannot be used."""
    try:
        lines = _header_lines(comment_lines)
        if lines is None:
            return None, None
        plain = _plain(_load(_yaml_text(lines)))
        if not isinstance(plain, dict):
            raise _Unusable("it is not a mapping of keys to values")
        return plain, None
    except _Unusable as error:
        return None, f"the ir_metadata header is ignored: {error}"


def _header_lines(comment_lines: list[bytes]) -> list[bytes] | None:
    marks = [line.strip().lstrip(b"#").strip() for line in comment_lines]
    if _START not in marks:
        return None
    start = marks.index(_START)
    if _END not in marks[start:]:
        raise _Unusable("it has no line ir_metadata.end")
    return comment_lines[start + 1 : marks.index(_END, start)]


def _yaml_text(lines: list[bytes]) -> str:
    if sum(map(len, lines)) > MAX_BYTES:
        raise _Unusable(f"it has more than {MAX_BYTES:,} bytes")
    try:
        text = b"\n".join(line.rstrip(b"\r\n").removeprefix(b"#") for line in lines).decode()
    except UnicodeDecodeError as error:
        raise _Unusable("it is not UTF-8") from error
    return textwrap.dedent(text)


def _load(text: str) -> object:
    try:
        return yaml.load(text, _Loader)  # noqa: S506, a SafeLoader without aliases
    except _Unusable:
        raise
    except yaml.MarkedYAMLError as error:
        where = f" in its line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise _Unusable(f"bad YAML: {str(error.problem)[:200]}{where}") from error
    except Exception as error:  # PyYAML lets KeyError, AttributeError and more out for odd scalars
        raise _Unusable("bad YAML") from error


def _plain(value: object) -> object:
    """Return the value in JSON's types; nothing is dropped, and values that JSON lacks become strings."""
    if isinstance(value, dict):
        plain = {str(_plain(key)): _plain(item) for key, item in value.items()}
        if len(plain) != len(value):
            raise _Unusable("two of its keys are the same")
        return plain
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
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
        raise _Unusable("a text has a NUL or half a surrogate pair")
    return text
