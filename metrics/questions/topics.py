"""The addresses of topics, and their parameters."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from metrics.questions.declared import declared
from metrics.services.boards.heat_map import HeatQuery
from metrics.services.boards.topics import TopicsQuery

# The parameters of the topics of a collection.
TOPICS = declared(TopicsQuery)
# The parameters of the picture of runs against topics, and those of the same as a file.
HEAT_MAP = declared(HeatQuery)
HEAT_FILE = declared(HeatQuery, "measure", "baseline", "scores", "topics")


def topic_address(topics_page: str, topic_id: str) -> str:
    """Return the address of the page of a topic, below that of the collection's topics.

    Browsers and proxies resolve slashes and dots in paths, even encoded ones: such ids are
    parameters.
    """
    if "/" in topic_id or topic_id in (".", ".."):
        return f"{topics_page}?{urlencode({'topic': topic_id})}"
    return f"{topics_page}{quote(topic_id, safe='')}/"
