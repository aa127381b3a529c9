"""Topics in TREC's SGML, with or without closing tags.

<top> <num> Number: 301 <title> ... <desc> ... <narr> ... </top>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from runs.errors import FileReport
from runs.formats.topics.definition import TopicList, TopicText, gather_texts, take_id

# The tags that divide a topic, each with the label that TREC repeats after it. Other tags are part
# of the text.
SECTIONS = {
    "num": "number:",
    "identifier": "",
    "head": "",
    "dom": "domain:",
    "title": "topic:",
    "desc": "description:",
    "description": "description:",
    "smry": "summary:",
    "narr": "narrative:",
    "narrative": "narrative:",
    "con": "concept(s):",
    "fac": "factor(s):",
    "nat": "nationality:",
    "def": "definition(s):",
    "time": "time:",
    "query": "",
    "querytime": "",
    "querytweettime": "",
    "question": "",
}
_TOP = re.compile(r"<(/?)top(?:\s[^<>]*)?>", re.IGNORECASE)
_SECTION = re.compile(rf"<(/?)({'|'.join(SECTIONS)})(?:\s[^<>]*)?>", re.IGNORECASE)


def read(content: str, report: FileReport) -> list[TopicText]:
    """Return the topics. A section ends where the next one begins: closing tags may be missing."""
    topics = TopicList(report)

    for line, block in _blocks(content):
        texts = gather_texts(_sections(block))
        if "" in texts:
            report.warning(
                line,
                "text_outside_sections",
                f"{texts.pop('')[:100]!r} belongs to no tag and is ignored",
            )

        topics.add(line, take_id(texts), texts)

    return topics.topics


def _blocks(content: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each <top> and its content."""
    line, position = 1, 0
    for tag, end in _tags(_TOP, content):
        line += content.count("\n", position, tag.start())
        position = tag.start()
        if not tag[1]:
            yield line, content[tag.end() : end]


def _sections(block: str) -> Iterator[tuple[str, str]]:
    first = _SECTION.search(block)
    yield "", block[: first.start()] if first else block

    for tag, end in _tags(_SECTION, block):
        text = block[tag.end() : end]
        if tag[1]:
            yield "", text
            continue

        # TREC's files begin a section with its label, such as "Description:".
        name, text = tag[2].lower(), text.strip()
        label = SECTIONS[name]
        yield name, text[len(label) :] if text[: len(label)].lower() == label else text


def _tags(pattern: re.Pattern[str], content: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yield every tag with the position where the next one starts."""
    previous = None
    for tag in pattern.finditer(content):
        if previous:
            yield previous, tag.start()
        previous = tag

    if previous:
        yield previous, len(content)
