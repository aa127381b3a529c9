"""Fixtures of all tests: accounts, a client with a token, a small collection, and the real data where it is at hand."""

from __future__ import annotations

import gc
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connections
from django.test import override_settings
from rest_framework.test import APIClient
from whitenoise.middleware import WhiteNoiseMiddleware

from metrics.models import Evaluation, SessionEvaluation
from metrics.questions.unchanged import MEMORY
from metrics.services.sessions.evaluate import evaluate_sessions
from metrics.services.values.evaluate import evaluate
from runs.models import ALL_SCOPES, ApiToken, Run, User
from runs.services.marker import remember
from runs.services.rates import RATES
from tests.processes import asks_the_database, place_in_order
from tests.readers import tried

# Compiled kernels and databases make times uneven; a failing example is what counts. A change is tried with the same
# examples each time; `make fuzz`, or a number of examples, draws new ones.
EXAMPLES = os.environ.get("EVALHUB_TEST_EXAMPLES")
DRAWN_ANEW = EXAMPLES or os.environ.get("EVALHUB_TEST_READER_EXAMPLES")
hypothesis.settings.register_profile(
    "evalhub", deadline=None, derandomize=not DRAWN_ANEW, max_examples=int(EXAMPLES or "25")
)
hypothesis.settings.register_profile("quick", deadline=None, derandomize=True, max_examples=5)
hypothesis.settings.load_profile("evalhub")


# They need libraries that are not here: `make integrations` runs them.
collect_ignore = ["integrations"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--first-cases",
        action="store_true",
        help="run the first case only of a test that has several",
    )


def pytest_configure() -> None:
    """SQLite's test database is in memory, one for each process; only Django's own backend is known for it.

    Passwords are hashed cheaply: each takes a quarter of a second otherwise, as it does on the servers of tests.
    Garbage is looked for when there may be much of it, and not while tests are collected, which all stay: a tenth of
    the time of all tests goes into it otherwise.
    """
    gc.set_threshold(50_000)
    gc.disable()
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    if connections["default"].vendor == "sqlite":
        connections.settings["default"]["TEST"]["NAME"] = ":memory:"


# Of the folders of tests.
NUMBERS = itertools.count(1)
SERVICES = ("EVALHUB_TEST_DATABASE_URL", "EVALHUB_TEST_REDIS_URL")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what needs a service or data that the environment does not name; run nothing on another database that would
    not notice."""
    missing = [name for name in SERVICES if not os.environ.get(name)]
    if missing and os.environ.get("EVALHUB_TEST_REQUIRED"):
        raise pytest.UsageError(f"EVALHUB_TEST_REQUIRED is set, but not {' and '.join(missing)}")
    # First the files that wait for servers half of their time, and at the end the slow ones that do not:
    # tests/processes.py takes from both ends, so that the short ones are left to the last.
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (place_in_order(item.path), item.path in slow))
    for item in items:
        if item.path.parent.name in ("browser", "reliability"):
            item.add_marker("slow")
        if missing and item.get_closest_marker("services"):
            item.add_marker(pytest.mark.skip(reason=f"set {' and '.join(missing)}"))
        if not os.environ.get("EVALHUB_REAL_DATA") and item.get_closest_marker("real_data"):
            item.add_marker(pytest.mark.skip(reason="set EVALHUB_REAL_DATA"))
    if config.option.first_cases:
        known: set[tuple[Path, str]] = set()
        cases = [(item.path, item.nodeid.split("[", maxsplit=1)[0]) for item in items]
        later = {number for number, case in enumerate(cases) if case in known or known.add(case)}
        config.hook.pytest_deselected(items=[items[number] for number in later])
        items[:] = [item for number, item in enumerate(items) if number not in later]
    if os.environ.get("EVALHUB_TEST_ON") == "services":
        config.hook.pytest_deselected(items=[item for item in items if not asks_the_database(item)])
        items[:] = [item for item in items if asks_the_database(item)]


def pytest_collection_finish() -> None:
    """Thousands of tests and all their modules stay until the end: no search for garbage looks at them again."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if tried:
        terminalreporter.write_line(
            f"readers: {tried.total():,} examples of {len(tried)} properties"
        )


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real collections; tests that use it are marked real_data."""
    return Path(os.environ["EVALHUB_REAL_DATA"])


@pytest.fixture(autouse=True, scope="session")
def quick_services() -> Iterator[None]:
    """What would take long in every test, and is none of its business.

    To put Vega into one script takes seconds: tests/metrics/test_charts.py does it once, the browser's tests too. Every
    client of a test makes the middleware anew, which would look through all folders of static files each time. And no
    test has killed a web server, but those of servers.
    """
    search, found = WhiteNoiseMiddleware.add_files_from_finders, {}

    def search_once(middleware: WhiteNoiseMiddleware) -> None:
        if not found:
            search(middleware)
            found.update(middleware.files)
        middleware.files.update(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", search_once)
        patch.setattr("metrics.charts.bundle._made", lambda: b"window.vegaEmbed = null;")
        patch.setattr("evalhub.management.commands.fsck.abandoned_folders", list)
        yield


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A folder of the test's own. pytest's reads the names of all that there are before it makes one."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{next(NUMBERS)}-{name}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path: Path) -> Iterator[Path]:
    """Every test has a data folder, a cache, remembered answers and rates of its own.

    The folder needs no marker of its install unless the test settles it.
    """
    folder = tmp_path / "data"
    folder.mkdir()
    remember(unmarked=True)
    cache.clear()
    MEMORY.forget()
    RATES.forget()
    with override_settings(EVALHUB_DATA=folder):
        yield folder


@pytest.fixture
def alice(db: None) -> User:
    return User.objects.create_user("alice")


@pytest.fixture
def bob(db: None) -> User:
    return User.objects.create_user("bob")


def client_of(user: User | None, scopes: Iterable[str] = ALL_SCOPES) -> APIClient:
    """An API client with a token of the user, or without one."""
    client = APIClient()
    if user:
        _, token = ApiToken.objects.issue(user=user, name="test", scopes=scopes)
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return client


@pytest.fixture
def api(alice: User) -> APIClient:
    """Alice's client."""
    return client_of(alice)


@pytest.fixture
def anonymous(db: None) -> APIClient:
    return client_of(None)


QRELS = """\
1 0 a 2
1 0 b 0
1 0 c 1
2 0 x 1
2 0 y 0
3 0 z 3
"""
GOOD = """\
1 Q0 a 1 3.0 good
1 Q0 c 2 2.0 good
1 Q0 b 3 1.0 good
2 Q0 x 1 2.0 good
3 Q0 z 1 1.0 good
"""
POOR = """\
1 Q0 b 1 3.0 poor
1 Q0 u 2 2.5 poor
1 Q0 c 3 2.0 poor
2 Q0 y 1 2.0 poor
2 Q0 x 2 1.0 poor
"""
SESSIONS = """\
{"session_id": "s1", "topic_id": "1", "searcher": "u1", "system": "A", "queries": [{"documents": ["b", "a"]}]}
{"session_id": "s2", "topic_id": "1", "searcher": "u1", "system": "B", "queries": [{"documents": ["u"]}, \
{"text": "again", "documents": ["c", "b"]}]}
{"session_id": "s4", "topic_id": "2", "searcher": "u1", "system": "A", "queries": [{"documents": ["x"]}]}
{"session_id": "s5", "topic_id": "2", "searcher": "u1", "system": "B", "queries": [{"documents": ["y"]}]}
"""


def upload(
    client: APIClient, path: str, content: str | bytes, method: str = "post", **query: Any
) -> Any:
    """Send a file as the body of a request to a path below /api/v1/."""
    body = content.encode() if isinstance(content, str) else content
    send = getattr(client, method)
    return send(
        f"/api/v1/{path}",
        body,
        content_type="text/plain",
        query_params={k: str(v) for k, v in query.items()},
    )


@pytest.fixture
def collection(api: APIClient) -> str:
    """A public collection of Alice's with three judged topics; returns its slug."""
    fields = {"slug": "small", "name": "Small", "measures": ["nDCG@10", "AP"]}
    answer = api.post("/api/v1/collections/", fields)
    assert answer.status_code == 201, answer.content

    assert upload(api, "collections/small/qrels/", QRELS).status_code == 201
    return "small"


def evaluate_all() -> int:
    """Evaluate what is queued, in this process, as a worker would."""
    queued = Evaluation.objects.filter(state=Evaluation.State.QUEUED).order_by("created_at", "pk")
    done = sum(evaluate(evaluation_id=pk) for pk in queued.values_list("pk", flat=True))
    return done + evaluate_all_sessions()


def evaluate_all_sessions() -> int:
    """The same of session sets alone."""
    queued = SessionEvaluation.objects.filter(state=Evaluation.State.QUEUED).order_by(
        "created_at", "pk"
    )
    return sum(evaluate_sessions(evaluation_id=pk) for pk in queued.values_list("pk", flat=True))


@pytest.fixture
def submit(api: APIClient, collection: str) -> Callable[..., Run]:
    """Submit a run of Alice's and evaluate it; returns it."""

    def send(content: str, **query: Any) -> Run:
        answer = upload(api, f"collections/{collection}/runs/", content, **query)
        assert answer.status_code == 202, answer.content

        evaluate_all()
        return Run.objects.get(pk=answer.json()["id"])

    return send
