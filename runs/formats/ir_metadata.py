"""The ir_metadata header of a run file.

It is YAML in comment lines between ir_metadata.start and ir_metadata.end.
"""

from __future__ import annotations

import textwrap

import yaml

from runs.formats.yaml_values import MAX_DEPTH, UnusableYaml, plain_value

MAX_BYTES = 100_000
_START, _END = b"ir_metadata.start", b"ir_metadata.end"


class _Loader(yaml.SafeLoader):
    """Refuses aliases, which may expand exponentially, and deep nesting before it recurses."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            raise UnusableYaml("it uses anchors or aliases")

        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnusableYaml(f"it is nested more than {MAX_DEPTH} deep")

        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def read_ir_metadata(comment_lines: list[bytes]) -> tuple[dict[str, object] | None, str | None]:
    """Return the header's mapping, valid as JSON, or None; and why a header cannot be used."""
    try:
        lines = _header_lines(comment_lines)
        if lines is None:
            return None, None

        plain = plain_value(_load(_yaml_text(lines)))
        if not isinstance(plain, dict):
            raise UnusableYaml("it is not a mapping of keys to values")
        return plain, None
    except UnusableYaml as error:
        return None, f"the ir_metadata header is ignored: {error}"


def _header_lines(comment_lines: list[bytes]) -> list[bytes] | None:
    marks = [line.strip().lstrip(b"#").strip() for line in comment_lines]
    if _START not in marks:
        return None

    start = marks.index(_START)
    if _END not in marks[start:]:
        raise UnusableYaml("it has no line ir_metadata.end")
    return comment_lines[start + 1 : marks.index(_END, start)]


def _yaml_text(lines: list[bytes]) -> str:
    if sum(map(len, lines)) > MAX_BYTES:
        raise UnusableYaml(f"it has more than {MAX_BYTES:,} bytes")

    try:
        text = b"\n".join(line.rstrip(b"\r\n").removeprefix(b"#") for line in lines).decode()
    except UnicodeDecodeError as error:
        raise UnusableYaml("it is not UTF-8") from error

    return textwrap.dedent(text)


def _load(text: str) -> object:
    try:
        return yaml.load(text, _Loader)  # noqa: S506, a SafeLoader without aliases
    except UnusableYaml:
        raise
    except yaml.MarkedYAMLError as error:
        where = f" in its line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UnusableYaml(f"bad YAML: {str(error.problem)[:200]}{where}") from error
    except Exception as error:  # PyYAML lets KeyError, AttributeError and more out for odd scalars
        raise UnusableYaml("bad YAML") from error
