"""Attributes of topics: the files that are read and refused, and what a collection keeps of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from runs.errors import InvalidFile
from runs.formats.topics.attributes import read_attributes
from runs.formats.topics.reading import read_topics
from runs.models import AuditEvent, Collection, TopicAttributes
from runs.services.collections.topic_attributes import attribute_keys
from tests.conftest import upload

SMALL = "/api/v1/collections/small/topic-attributes/"


def test_columns_and_lines_of_json_are_the_same() -> None:
    columns = "\ufeffTopic\tType\tLanguage\tYear\r\n\n301\tnavigational \ten\t1999\r\n302\tnav. \u00e9\t\n"
    lines = [
        {"qid": 301, "Type": "navigational", "language": "en", "year": 1999},
        {"topic": "302", "type": "nav. \u00e9", "language": None},
    ]
    expected = {
        "301": {"type": "navigational", "language": "en", "year": "1999"},
        "302": {"type": "nav. \u00e9"},
    }
    for content in (columns, "\n".join(map(json.dumps, lines))):
        attributes, report = read_attributes(content.encode())
        assert attributes.topics == expected
        assert not report.counts


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        ("", [(0, "no_topics")]),
        ("topic\ttype\n", [(0, "no_topics")]),
        ("301\tnavigational\n", [(1, "bad_header")]),
        ("topic\n301\n", [(1, "bad_header")]),
        ("topic\ttype\tType\n301\ta\tb\n", [(1, "duplicate_key")]),
        ("topic\tWords\t1st\n301\ta\tb\n", [(1, "reserved_key"), (1, "bad_key")]),
        ("topic\t" + "\t".join(f"k{n}" for n in range(51)), [(1, "too_many_keys")]),
        (
            "topic\ttype\n301\ta\tb\n\ta\n3 1\ta\n302\t" + "x" * 101 + "\n302\ta\u202eb\n",
            [
                (2, "too_many_columns"),
                (3, "missing_topic_id"),
                (4, "bad_topic_id"),
                (5, "text_too_long"),
                (6, "duplicate_topic"),
                (6, "bad_value"),
            ],
        ),
        ("topic\ta\n" + "".join(f"{n}\t{n}\n" for n in range(201)), [(202, "too_many_values")]),
        (b"topic\ta\n1\t\xff\n", [(2, "undecodable_bytes")]),
        (
            '{"topic": "1", "a": ["x"]}\n{\n{"topic": true}\n{"a": "x"}\n{"topic": 1, "a": 1e999}',
            [(1, "bad_json"), (2, "bad_json"), (3, "bad_json"), (4, "missing_topic_id"), (5, "bad_json")],
        ),
        ('{"topic": 1, "Type": "a", "type": "b"}', [(1, "bad_json")]),
        ('{"topic": 1, "a": ' + "[" * 50_000, [(1, "bad_json")]),
        ('{"topic": 1, "a": "' + "x" * 200_000 + '"}', [(1, "text_too_long")]),
    ],
)  # fmt: skip
def test_problems_have_a_line_and_a_code(
    content: str | bytes, problems: list[tuple[int, str]]
) -> None:
    with pytest.raises(InvalidFile) as refused:
        read_attributes(content.encode() if isinstance(content, str) else content)
    report = refused.value.report
    assert [(problem.line, problem.code) for problem in report.problems] == problems


@pytest.mark.django_db
def test_attributes_are_replaced_listed_and_deleted(
    api: APIClient, anonymous: APIClient, collection: str
) -> None:
    file = "topic\ttype\n1\tshort\n2\tlong\n"
    checked = upload(api, "collections/small/topic-attributes/?dry_run=true", file, "put")
    assert checked.json()["keys"] == {"type": 2}
    assert not TopicAttributes.objects.exists()

    upload(api, "collections/small/topic-attributes/", "topic\told\n1\tx\n", "put")
    body = upload(api, "collections/small/topic-attributes/", file + "nowhere\tlong\n", "put")
    assert (body.status_code, body.json()["topics"]) == (200, 3)
    assert body.json()["warnings"]["counts"] == {"topic_outside": 1}
    assert anonymous.get(SMALL).json()["results"] == [
        {"topic_id": "1", "attributes": {"type": "short"}},
        {"topic_id": "2", "attributes": {"type": "long"}},
        {"topic_id": "nowhere", "attributes": {"type": "long"}},
    ]

    bad = upload(api, "collections/small/topic-attributes/", file + "1\tshort\n", "put")
    assert (bad.status_code, bad.json()["errors"][0]["line"]) == (422, 4)
    assert TopicAttributes.objects.count() == 3
    assert "type: short" in anonymous.get("/collections/small/topics/1/").content.decode()

    # They stay with topics of the same id.
    upload(api, "collections/small/topics/", "1\tanother\n", "put")
    assert TopicAttributes.objects.count() == 3

    assert anonymous.delete(SMALL).status_code == 401
    assert [api.delete(SMALL).status_code for _ in range(2)] == [204, 204]
    events = AuditEvent.objects.filter(action__startswith="topic_attributes.").order_by("pk")
    assert [(event.action, event.before["topics"], event.after) for event in events] == [
        ("topic_attributes.replaced", 0, {"topics": 1, "keys": ["old"]}),
        ("topic_attributes.replaced", 1, {"topics": 3, "keys": ["type"]}),
        ("topic_attributes.deleted", 3, {}),
    ]


@pytest.mark.django_db
def test_pages_know_the_keys_without_reading_the_attributes(
    api: APIClient, collection: str, django_assert_num_queries: Any
) -> None:
    file = "topic\ttype\tnone\tage\n1\tshort\t\t\n2\tlong\t\t3\n"
    upload(api, "collections/small/topic-attributes/", file, "put")
    stored = Collection.objects.get(slug="small")
    with django_assert_num_queries(0):
        assert attribute_keys(stored) == ["age", "type"]

    # Of attributes that a release without the column stored.
    stored.attribute_keys = None
    assert attribute_keys(stored) == ["age", "type"]
    api.delete(SMALL)
    assert attribute_keys(Collection.objects.get(slug="small")) == []


@pytest.mark.django_db
def test_they_are_deleted_with_their_collection(api: APIClient, collection: str) -> None:
    upload(api, "collections/small/topic-attributes/", "topic\ta\n1\tx\n", "put")
    Collection.objects.get(slug=collection).delete()
    assert not TopicAttributes.objects.exists()


# Attributes inside a file of topics


def lines_of(*records: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def test_lines_of_topics_have_attributes() -> None:
    content = lines_of(
        {"_id": "1", "text": "cats", "attributes": {"Type": " short ", "year": 1999, "none": None}},
        {"_id": "2", "text": "dogs", "attributes": {}},
        {"_id": "3", "text": "birds"},
        {"_id": "4", "text": "fish", "attributes": "a text, as before"},
    )
    _, topics, _ = read_topics(content.encode())
    assert [(topic.title, topic.attributes) for topic in topics] == [
        ("cats", {"type": "short", "year": "1999"}),
        ("dogs", {}),
        ("birds", None),
        ("fish", None),
    ]
    assert [topic.fields for topic in topics] == [{}, {}, {}, {"attributes": "a text, as before"}]


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({"words": "4"}, "reserved_key"),
        ({"1st": "a"}, "bad_key"),
        ({"type": ["a"]}, "bad_json"),
        ({"type": "a", "TYPE": "b"}, "bad_json"),
        ({"type": "x" * 101}, "text_too_long"),
        ({"type": "a\u202eb"}, "bad_value"),
        ({f"k{n}": "a" for n in range(51)}, "too_many_keys"),
    ],
)
def test_attributes_of_topics_are_checked_as_in_a_file_of_their_own(
    attributes: dict[str, Any], code: str
) -> None:
    content = lines_of({"_id": "1", "text": "a"}, {"_id": "2", "attributes": attributes})
    with pytest.raises(InvalidFile) as refused:
        read_topics(content.encode())
    assert [(problem.line, problem.code) for problem in refused.value.report.problems] == [
        (2, code)
    ]


@pytest.mark.django_db
def test_a_file_of_topics_replaces_attributes_only_if_it_has_some(
    api: APIClient, anonymous: APIClient, collection: str
) -> None:
    topics, first = "collections/small/topics/", {"_id": "1", "text": "cats"}
    upload(api, "collections/small/topic-attributes/", "topic\told\n1\tx\n2\ty\n", "put")
    answer = upload(api, topics, lines_of(first), "put")
    assert (answer.status_code, answer.json()["attributes"]) == (200, None)
    assert TopicAttributes.objects.count() == 2

    content = lines_of({**first, "attributes": {"type": "short"}}, {"_id": "2", "text": "dogs"})
    checked = upload(api, f"{topics}?dry_run=true", content, "put")
    assert checked.json()["attributes"] == {"type": 1}
    assert TopicAttributes.objects.count() == 2
    answer = upload(api, topics, content, "put")
    assert (answer.json()["topics"], answer.json()["attributes"]) == (2, {"type": 1})
    assert anonymous.get(SMALL).json()["results"] == [
        {"topic_id": "1", "attributes": {"type": "short"}}
    ]
    assert attribute_keys(Collection.objects.get(slug="small")) == ["type"]

    # A file with a problem changes nothing.
    bad = upload(api, topics, lines_of({**first, "attributes": {"topic": "1"}}), "put")
    assert (bad.status_code, bad.json()["errors"][0]["code"]) == (422, "reserved_key")
    assert Collection.objects.get(slug="small").topics.count() == 2
    actions = AuditEvent.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions)[-2:] == ["topics.replaced", "topic_attributes.replaced"]
