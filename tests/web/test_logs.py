"""Log lines: complete for who operates the service, and without anything that is nobody's business."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError
from rest_framework.test import APIClient

from evalhub.operating.logs import FORMATTERS, ContextFilter
from evalhub.serving import evaluation_log
from metrics.models import Evaluation
from metrics.services.values import evaluate as evaluate_module
from metrics.tasks import evaluate
from runs.models import ApiToken, Team, User
from tests.conftest import GOOD, QRELS, client_of, upload

pytestmark = pytest.mark.words
Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Everything that is logged from DEBUG on, as JSON lines."""
    written, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(written), root.level
    handler.setFormatter(FORMATTERS["json"]())
    handler.addFilter(ContextFilter())
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture
def lines(stream: io.StringIO) -> Lines:
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def access(lines: Lines) -> dict[str, Any]:
    return [line for line in lines() if line["logger"] == "evalhub.access"][-1]


def test_a_request_has_one_line_with_its_view_its_user_and_no_query(
    api: APIClient, alice: User, lines: Lines
) -> None:
    api.get("/api/v1/collections/?limit=7")
    line = access(lines)
    assert {name: line[name] for name in ("method", "path", "view", "status", "user", "level")} == {
        "method": "GET", "path": "/api/v1/collections/", "view": "collections", "status": 200, "user": alice.pk,
        "level": "INFO",
    }  # fmt: skip
    assert 0 <= line["seconds"] < 60
    assert "limit" not in json.dumps(lines())


def test_anonymous_requests_name_no_user(anonymous: APIClient, lines: Lines) -> None:
    anonymous.get("/api/v1/collections/")
    assert "user" not in access(lines)


def test_a_sane_request_id_is_kept_in_answer_and_log(anonymous: APIClient, lines: Lines) -> None:
    answer = anonymous.get("/api/v1/collections/none/", headers={"X-Request-ID": "trace-7.of_9"})
    assert answer["X-Request-ID"] == access(lines)["request_id"] == "trace-7.of_9"
    # Two refusals alike are alike to the byte: nothing is to be read from their difference.
    assert "request_id" not in answer.json()


def test_a_problem_of_ours_tells_the_id_to_ask_the_operator_with(
    anonymous: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    anonymous.raise_request_exception = False
    for error, status in ((OperationalError("away"), 503), (ZeroDivisionError(), 500)):
        monkeypatch.setattr("runs.api.collections.collections.scored_collection", raising(error))
        answer = anonymous.get("/api/v1/collections/x/qrels/", headers={"X-Request-ID": "quote-me"})
        assert (answer.status_code, answer.json()["request_id"]) == (status, "quote-me")


@pytest.mark.parametrize("request_id", ["", "a b", "x" * 65, "line\nbreak", '"}{"', "\u00e9"])
def test_an_odd_request_id_is_replaced(anonymous: APIClient, request_id: str, lines: Lines) -> None:
    answers = [
        anonymous.get("/api/v1/measures/", headers={"X-Request-ID": request_id}) for _ in range(2)
    ]
    ids = [answer["X-Request-ID"] for answer in answers]
    assert ids[0] != ids[1]
    assert all(len(request_id) == 32 and request_id.isalnum() for request_id in ids)
    assert access(lines)["request_id"] == ids[1]


def test_every_line_of_a_request_bears_its_id(
    anonymous: APIClient, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the one that Django writes when every middleware is done."""
    monkeypatch.setattr("runs.api.collections.collections.scored_collection", explode)
    anonymous.raise_request_exception = False
    anonymous.get("/api/v1/collections/x/qrels/", headers={"X-Request-ID": "broken"})
    of_request = [
        line for line in lines() if line["logger"].startswith(("django.request", "evalhub"))
    ]
    assert [line["status"] for line in of_request if line["logger"] == "evalhub.access"] == [500]
    assert any("ZeroDivisionError" in line.get("traceback", "") for line in of_request)
    assert {line["request_id"] for line in of_request} == {"broken"}


def raising(error: Exception) -> Callable[..., Any]:
    def explode(*arguments: Any, **named: Any) -> Any:
        raise error

    return explode


explode = raising(ZeroDivisionError())


@pytest.mark.queries
def test_nothing_secret_is_logged(lines: Lines, stream: io.StringIO, db: None) -> None:
    """A whole life of two teams at the most talkative level: no token, password, judgement, or name of a team."""
    teams = {}
    for name in ("ursula", "walter"):
        user = User.objects.create_user(name, password=f"password-of-{name}")
        Team.objects.filter(personal_of=user).update(slug=f"team-{name}", name=f"The {name}s")
        teams[name] = client_of(user)
    first, other = teams.values()
    first.post("/api/v1/collections/", {"slug": "mine", "name": "Mine"})
    for client, tag in ((first, "good"), (other, "other")):
        assert (
            upload(first, "collections/mine/qrels/", QRELS + f"4 0 doc-{tag} 1\n").status_code
            == 201
        )
        assert upload(client, "collections/mine/runs/", GOOD, tag=tag).status_code == 202
    upload(first, "collections/mine/qrels/", "1 0 secret-document two\n")
    other.patch("/api/v1/collections/mine/", {"name": "Stolen"})
    answer = first.post("/api/v1/tokens/", {"name": "another"})
    token = answer.json()["token"]
    first.get(f"/api/v1/collections/?token={token}")
    first.get(f"/api/v1/collections/{token}/")
    logging.getLogger("any").warning("odd %s", token)
    first.post(
        "/admin/login/",
        {"username": "ursula", "password": "password-of-ursula"},
        format="multipart",
    )
    evaluate.apply(kwargs={"evaluation_id": Evaluation.objects.earliest("pk").pk})
    text = stream.getvalue()
    assert len([line for line in lines() if line["logger"] == "evalhub.access"]) == 11
    secrets = (
        token.split("_", 2)[2],
        "password-of",
        "secret-document",
        "doc-good",
        "team-",
        "The ursulas",
    )
    assert [secret for secret in secrets if secret in text] == []
    assert f"evh_{token.split('_')[1]}" not in text
    assert ApiToken.objects.count() == 3


def test_a_worker_says_which_evaluation_every_line_is_about_and_how_it_ended(
    api: APIClient, collection: str, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation_log.connect()
    run = upload(api, f"collections/{collection}/runs/", GOOD).json()["id"]
    evaluation = Evaluation.objects.get().pk
    monkeypatch.setattr(evaluate_module, "_compute", explode)
    evaluate.apply(kwargs={"evaluation_id": evaluation})
    failed = next(line for line in lines() if line["logger"] == "metrics.services.queue.leases")
    assert failed["evaluation"] == evaluation
    assert "ZeroDivisionError" in failed["traceback"]
    ended = next(line for line in lines() if line["logger"] == "evalhub.evaluation")
    assert ended.pop("seconds") >= 0
    assert {name: ended[name] for name in ("evaluation", "run", "state", "attempts", "code")} == {
        "evaluation": evaluation, "run": run, "state": "queued", "attempts": 1, "code": "evaluation_error",
    }  # fmt: skip


def test_one_record_is_one_line_in_either_form() -> None:
    """A path or a message cannot begin a line of its own; only a traceback has several in the form for the eye."""
    record = logging.LogRecord(
        "a", logging.WARNING, "f.py", 1, "two\nlines \u2028 %s", ("x\r\ny",), None
    )
    record.path = "/a%0Ab"
    assert (
        FORMATTERS["line"]()
        .format(record)
        .endswith("WARNING a two\\nlines \u2028 x\\r\\ny path=/a%0Ab")
    )
    assert json.loads(FORMATTERS["json"]().format(record))["message"] == "two\nlines \u2028 x\r\ny"
    assert "\n" not in FORMATTERS["line"]().format(record) + FORMATTERS["json"]().format(record)


def test_tracebacks_are_kept_and_tokens_and_rows_in_them_hidden() -> None:
    try:
        raise ValueError("evh_0123abcd_" + "s" * 43 + "\nDETAIL:  Failing row contains (1, sss).\n")
    except ValueError:
        record = logging.LogRecord("a", logging.ERROR, "f.py", 1, "failed", (), sys.exc_info())
    for formatter in FORMATTERS.values():
        text = formatter().format(record)
        assert "ValueError: evh_[hidden]" in text
        assert "sss" not in text
