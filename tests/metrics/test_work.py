"""What a request computes is known before it begins, and bounded; few dear requests are answered at once; work ends
when its client has left."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from rest_framework.test import APIClient

from metrics.engine.measures.grammar import parse_measure
from metrics.services import work
from metrics.services.answer_store import forget_all
from metrics.services.values.effort import seconds_of_measure
from runs.attention import attention, check_client, keep_going, present_attention
from runs.errors import ClientLeft, Unavailable
from runs.models import Run, User
from runs.services.audit.slots import SLOTS, Slots
from runs.services.storage.files import read_stored
from tests.conftest import GOOD, POOR, client_of, upload
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]
SMALL = "/api/v1/collections/small"
BOARD = f"{SMALL}/leaderboard/"
# Measures that nothing stores.
ODD = ",".join(f"nDCG(dis='jk',b={base})@{base}" for base in range(3, 13))
GONE = "waitress.client_disconnected"


@pytest.fixture(scope="module")
def runs(submit: Callable[..., Run]) -> list[Run]:
    return [submit(GOOD), submit(POOR)]


@pytest.fixture
def all_is_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "CHEAP_SECONDS", 0.0)
    monkeypatch.setattr("runs.services.audit.slots._WAIT_SECONDS", 0.1)


def problem(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json().get("code")


@contextmanager
def taken(key: str, places: int) -> Iterator[None]:
    """All places of a key are somebody else's."""
    with ExitStack() as stack:
        for _ in range(places):
            slot = SLOTS.take_one(key, places)
            assert slot is not None
            stack.enter_context(slot)
        yield


# Of everything that computes what is not stored: an address, its parameters, and the parameter that
# an error names.
DEAR = {
    "board": ("leaderboard/", {"measures": ODD}, "measures"),
    "sort": ("leaderboard/", {"sort": "nDCG@13"}, "measures"),
    "intervals": ("leaderboard/", {"measures": ODD, "statistics": "intervals"}, "measures"),
    "export": ("leaderboard/export/csv/", {"measures": ODD}, "measures"),
    "what-if": ("what-if/", {"measures": ODD}, "measures"),
    "difference": ("difference/", {"measure": "nDCG@13"}, "measures"),
    "orders": ("orders/", {"measures": ODD, "resamples": "100"}, "measures"),
    "design": ("design/", {"measures": ODD}, "measures"),
    "what-if chart": ("charts/what-if.svg", {"measures": ODD}, "measures"),
    "curves chart": ("charts/curves.svg", {"measures": "nDCG"}, "depth"),
    "rankings chart": ("charts/rankings.svg", {"topic": "1"}, "topic"),
}
DEAR_OF_RUN = {
    "values": ("values/", {"measures": ODD}, "measures"),
    "curve": ("curve/", {"measures": "nDCG,DCG", "per_topic": "true"}, "depth"),
    "precision-recall": ("precision-recall/", {"rel": "all"}, "depth"),
    "ranking": ("ranking/", {"topic": "1"}, "topic"),
    "curve chart": ("charts/curve.svg", {}, "depth"),
    "topics chart": ("charts/topics.svg", {"measure": "nDCG@13"}, "measures"),
    "ranking chart": ("charts/ranking.svg", {"topic": "1"}, "topic"),
}
PAIRED = ("difference", "rankings chart")


@pytest.mark.parametrize("name", [*DEAR, *DEAR_OF_RUN])
def test_everything_that_is_computed_has_a_limit_known_before(
    anonymous: APIClient, runs: list[Run], settings: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path, query, pointer = (DEAR | DEAR_OF_RUN)[name]
    address = f"{SMALL}/{path}" if name in DEAR else f"/api/v1/runs/{runs[0].pk}/{path}"
    query = {**query, "runs": ",".join(str(run.pk) for run in runs)} if name in PAIRED else query
    # Judged@10 and the collection's measures are stored; nothing that is read for an answer takes
    # longer than this.
    settings.EVALHUB_WORK_SECONDS = 1e-7
    monkeypatch.setattr("metrics.services.values.effort._VECTOR", 0.0)
    monkeypatch.setattr("metrics.services.values.effort._FILE_BYTE", 1.0)
    answer = anonymous.get(address, query)
    assert problem(answer) == (400, "too_much_work")
    assert answer.json()["errors"][0]["pointer"] == pointer
    limit = "15" if pointer == "topic" else "1e-07"
    assert "would take about" in (detail := answer.json()["detail"])
    assert f"the limit is {limit} s: " in detail
    monkeypatch.undo()
    settings.EVALHUB_WORK_SECONDS = 2
    assert anonymous.get(address, query).status_code == 200


def test_a_page_says_it_as_the_api_does(
    anonymous: APIClient, runs: list[Run], settings: Any
) -> None:
    settings.EVALHUB_WORK_SECONDS = 1e-4
    page = anonymous.get("/collections/small/", {"measures": ODD})
    assert page.status_code == 400
    assert b"name fewer measures or runs" in page.content


def test_what_is_remembered_takes_no_time(
    anonymous: APIClient, runs: list[Run], settings: Any
) -> None:
    assert anonymous.get(BOARD, {"measures": ODD}).status_code == 200
    settings.EVALHUB_WORK_SECONDS = 1e-6
    assert anonymous.get(BOARD, {"measures": ODD, "limit": "49"}).status_code == 200
    cache.clear()
    assert problem(anonymous.get(BOARD, {"measures": ODD, "limit": "48"})) == (400, "too_much_work")


def test_dear_measures_are_estimated_to_be_dear() -> None:
    """On 350 kB of judged view, which is 300 judged documents for each of 50 topics; measured in milliseconds."""
    measured = {"P@10": 0.1, "nDCG@1000": 0.5, "ERR": 0.5, "INST(max_rel=3)": 3.3, "alpha_nDCG@100": 30.2,
                "alpha_nDCG@10": 8.5, "nERR_IA@100": 29.9, "nNRBP": 19.3, "StRecall@100": 2.8, "Total": 1.4,
                "Compat": 1.2, "AvgPos(of='nDCG')@1000": 1.1}  # fmt: skip
    for name, milliseconds in measured.items():
        base, each = seconds_of_measure(parse_measure(name))
        assert milliseconds <= 1000 * (base + each * 350_000) <= max(10 * milliseconds, 1.0), name


def test_an_average_over_cutoffs_costs_as_much_as_the_measure_at_each() -> None:
    names = ("alpha_nDCG@10", "alpha_nDCG@50", "alpha_nDCG@100")
    alone = [seconds_of_measure(parse_measure(name)) for name in names]
    average = seconds_of_measure(parse_measure("AvgCut(of='alpha_nDCG',cutoffs='10,50,100')"))
    assert all(
        total >= sum(part) for total, part in zip(average, zip(*alone, strict=True), strict=True)
    )


def test_an_account_has_few_dear_requests_at_once(
    api: APIClient, alice: User, bob: User, runs: list[Run], all_is_dear: None
) -> None:
    with taken(f"user:{alice.pk}", 2):
        answer = api.get(BOARD, {"measures": ODD})
        assert problem(answer) == (429, "too_many_at_once")
        assert int(answer["Retry-After"]) >= 1
        assert "your account has 2 requests" in answer.json()["detail"]
        # Others have their own, and what costs nothing is not counted.
        assert client_of(bob).get(BOARD, {"measures": ODD}).status_code == 200
        page = api.get("/api/v1/collections/")
        assert page.status_code == 200
    assert api.get(BOARD, {"measures": ODD, "limit": "9"}).status_code == 200


@pytest.mark.parametrize(("key", "places"), [("anonymous", 2), ("address:127.0.0.1", 4)])
def test_readers_without_an_account_and_addresses_too(
    anonymous: APIClient, runs: list[Run], all_is_dear: None, key: str, places: int
) -> None:
    with taken(key, places):
        assert problem(anonymous.get(BOARD, {"measures": ODD})) == (429, "too_many_at_once")
        page = anonymous.get("/collections/small/", {"measures": ODD})
        assert page.status_code == 429
        assert b"requests that are being computed already" in page.content
    assert anonymous.get(BOARD, {"measures": ODD}).status_code == 200


def test_a_process_computes_for_few_at_once(
    anonymous: APIClient, runs: list[Run], all_is_dear: None
) -> None:
    slots = [SLOTS.take({}, 2)[0] for _ in range(2)]
    answer = anonymous.get(BOARD, {"measures": ODD})
    assert problem(answer) == (503, "server_busy")
    assert int(answer["Retry-After"]) >= 1
    for slot in slots:
        assert slot is not None
        slot.close()
    assert anonymous.get(BOARD, {"measures": ODD}).status_code == 200


def test_places_can_be_without_limit(
    anonymous: APIClient, runs: list[Run], all_is_dear: None, settings: Any
) -> None:
    settings.EVALHUB_DEAR_REQUESTS = 0
    with taken("anonymous", 2):
        assert anonymous.get(BOARD, {"measures": ODD}).status_code == 200


def test_places_are_free_after_every_answer(
    anonymous: APIClient, runs: list[Run], all_is_dear: None, settings: Any
) -> None:
    pair = {"runs": ",".join(str(run.pk) for run in runs)}
    for _ in range(3):
        cache.clear()
        forget_all()
        assert anonymous.get(BOARD, {"measures": ODD}).status_code == 200
        assert (
            anonymous.get(f"{SMALL}/comparison/", {"measures": "nDCG@13", **pair}).status_code
            == 200
        )
        assert anonymous.get(BOARD, {"measures": "nonsense"}).status_code == 400
        # A file is written while it is sent, and has its place to the end.
        file = anonymous.get(f"{SMALL}/comparison/export/csv/", pair)
        assert any((settings.EVALHUB_DATA / "slots").iterdir())
        assert b"".join(file.streaming_content).startswith(b"measure")
    assert not any((settings.EVALHUB_DATA / "slots").iterdir())


def test_a_curve_that_changes_at_every_rank_counts_all_of_them(
    anonymous: APIClient, runs: list[Run], settings: Any
) -> None:
    settings.EVALHUB_WORK_SECONDS = 0.003
    query = {"depth": "1000"}
    for name, code in (("nDCG", "nDCG"), ("F", "too_much_work"), ("nDCG,E", "too_much_work")):
        answer = anonymous.get(
            f"/api/v1/runs/{runs[0].pk}/curve/", {"measures": name, **query}
        ).json()
        assert code in (answer.get("code"), answer.get("curves", [{}])[0].get("measure")), name


def test_charts_of_one_reader_are_drawn_as_many_as_a_page_has(
    anonymous: APIClient, runs: list[Run]
) -> None:
    with taken("drawing:address:127.0.0.1", 8):
        assert problem(anonymous.get(f"{SMALL}/charts/means.svg")) == (429, "too_many_at_once")
    assert anonymous.get(f"{SMALL}/charts/means.svg").status_code == 200


def test_a_killed_process_lets_go_of_its_places(settings: Any, tmp_path: Path) -> None:
    program = """
        import os, sys, time
        from pathlib import Path
        from types import SimpleNamespace
        from runs.services.audit import slots
        slots.settings = SimpleNamespace(EVALHUB_DATA=Path(sys.argv[1]))
        held = slots.SLOTS.take_one("user:1", 1)
        print("taken" if held else "full", flush=True)
        time.sleep(60)
    """
    settings.EVALHUB_DATA = tmp_path
    arguments = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "taken\n"
        assert SLOTS.take_one("user:1", 1) is None
        process.kill()
    slot = Slots().take_one("user:1", 1)
    assert slot is not None
    slot.close()
    assert not any((tmp_path / "slots").iterdir())


def test_a_disk_that_takes_no_file_refuses_nobody(settings: Any, tmp_path: Path) -> None:
    settings.EVALHUB_DATA = tmp_path / "file"
    settings.EVALHUB_DATA.write_text("not a folder")
    for _ in range(3):
        assert SLOTS.take_one("user:1", 1) is not None


def test_work_ends_when_its_client_has_left(anonymous: APIClient, runs: list[Run]) -> None:
    calls = []

    def has_left() -> bool:
        calls.append(None)
        return len(calls) > 3

    answer = anonymous.get(BOARD, {"measures": ODD}, **{GONE: has_left})
    assert problem(answer) == (408, "client_left")
    assert len(calls) == 4
    assert anonymous.get(BOARD, {"measures": ODD}, **{GONE: lambda: False}).status_code == 200


def test_work_ends_at_its_time(anonymous: APIClient, runs: list[Run], settings: Any) -> None:
    settings.EVALHUB_ANSWER_SECONDS = 0
    answer = anonymous.get(BOARD, {"measures": ODD})
    assert problem(answer) == (503, "too_slow")
    assert int(answer["Retry-After"]) >= 1
    # What computes nothing has all the time it takes.
    assert anonymous.get("/api/v1/collections/").status_code == 200


def test_an_upload_is_read_no_further_when_its_client_has_left(
    api: APIClient, collection: str
) -> None:
    content = GOOD.replace("good", "left")
    answer = api.post(f"{SMALL}/runs/", content, content_type="text/plain", **{GONE: lambda: True})
    assert problem(answer) == (408, "client_left")
    assert not Run.objects.filter(tag="left").exists()
    assert upload(api, "collections/small/runs/", content).status_code == 202


def test_a_stored_file_is_not_taken_for_damaged_where_its_reader_leaves(runs: list[Run]) -> None:
    with attention(60, lambda: True), pytest.raises(ClientLeft):
        read_stored(runs[0].sha256, lambda opener: opener().read())
    with attention(0, bool), pytest.raises(Unavailable):
        read_stored(runs[0].sha256, lambda opener: keep_going())


def test_workers_and_commands_are_never_stopped() -> None:
    keep_going()
    check_client()
    present_attention().keep_going()
    work.begin(1e9, "this", "less", "measures")
