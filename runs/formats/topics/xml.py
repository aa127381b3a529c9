"""Topics in TREC's XML: `<topics><topic number="1"><query>...`, and topics with text only."""

from __future__ import annotations

from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl, Locator

from defusedxml import DefusedXmlException
from defusedxml.sax import make_parser

from runs.errors import FileReport
from runs.formats.topics.definition import TopicList, TopicText, gather_texts, take_id

TOPIC_TAGS = {"topic", "top", "query"}
# Attributes that distinguish elements of one name, as in <subtopic number="2">.
_DISTINGUISHING = ("number", "id", "name")


def read(content: str, report: FileReport) -> list[TopicText]:
    """Return the topics, wherever they are in the tree.

    DTDs and entities are refused, and external references are not followed.
    """
    topics = TopicList(report)
    parser = make_parser()
    parser.forbid_dtd = True
    parser.setContentHandler(_TopicHandler(topics, parser))

    try:
        parser.feed(content)
        parser.close()
    except SAXParseException as error:
        report.problem(
            error.getLineNumber() or 0, "bad_xml", f"not well-formed XML: {error.getMessage()}"
        )
    except DefusedXmlException:
        report.problem(
            parser.getLineNumber() or 0,
            "bad_xml",
            "a document type or an entity is declared; remove it",
        )

    return topics.topics


class _TopicHandler(ContentHandler):
    """Collects topics; `depth` is 0 outside a topic, 1 in it, 2 in one of its elements."""

    def __init__(self, topics: TopicList, locator: Locator) -> None:
        super().__init__()
        self.locator = locator
        self.topics = topics
        self.depth = self.line = 0
        self.attributes: dict[str, str] = {}
        self.parts: dict[str, list[str]] = {}
        self.current: list[str] = []

    def startElement(self, name: str, attrs: AttributesImpl) -> None:
        attributes = {key.lower(): value for key, value in attrs.items()}
        if self.depth == 1:
            self._begin_text(name.lower(), attributes)

        if self.depth or name.lower() in TOPIC_TAGS:
            self.depth += 1

        if self.depth == 1:
            self._begin_topic(attributes)

    def characters(self, content: str) -> None:
        if self.depth:
            self.current.append(content)

    def endElement(self, name: str) -> None:
        if not self.depth:
            return

        self.depth -= 1
        if self.depth == 0:
            self._end_topic()
        elif self.depth == 1:
            self.current = self.parts["text"]

    def _begin_topic(self, attributes: dict[str, str]) -> None:
        self.line = self.locator.getLineNumber() or 0
        self.attributes = attributes
        self.parts = {"text": []}
        self.current = self.parts["text"]

    def _begin_text(self, name: str, attributes: dict[str, str]) -> None:
        suffix = next((f".{attributes[key]}" for key in _DISTINGUISHING if key in attributes), "")
        self.current = self.parts.setdefault(name + suffix, [])
        self.current.append("\n\n")

    def _end_topic(self) -> None:
        texts = gather_texts((name, "".join(parts)) for name, parts in self.parts.items())
        topic_id = take_id(self.attributes) or take_id(texts)
        pairs = [*self.attributes.items(), *texts.items()]
        self.topics.add(self.line, topic_id, gather_texts(pairs))
