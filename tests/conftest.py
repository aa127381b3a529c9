"""Fixtures of all tests: accounts, a client with a token, a small collection, and the real data
where it is at hand."""

from __future__ import annotations

import gc
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import vl_convert
from django.conf import settings
from django.core.cache import cache
from django.db import connections
from django.test import override_settings
from rest_framework.test import APIClient
from whitenoise.middleware import WhiteNoiseMiddleware

from metrics.models import Evaluation, SessionEvaluation, VectorUpdate
from metrics.services import answer_store
from metrics.services.sessions.evaluate import evaluate_sessions
from metrics.services.values.evaluate import evaluate
from metrics.services.values.missing import store_missing
from runs.models import ALL_SCOPES, ApiToken, Run, User
from runs.services.audit.rates import RATES
from runs.services.storage.install_marker import remember
from tests.readers import tried

# Compiled kernels and databases make times uneven; a failing example is what counts. A change is
# tried with the same examples each time; `make fuzz`, or a number of examples, draws new ones.
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
        help="run the first case only of a test that has several, unless it needs services",
    )


SERVICES = ("EVALHUB_TEST_DATABASE_URL", "EVALHUB_TEST_REDIS_URL")
MISSING = [name for name in SERVICES if not os.environ.get(name)]
# What asks a database: the engine and the commands on files do not, and servers are tested on both
# as it is.
DATABASE_FOLDERS = {"campaigns", "metrics", "pools", "runs", "suites", "web"}
# Tests of these wait for servers and browsers.
WAITING_FOLDERS = {"browser", "reliability"}
IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ


def pytest_configure() -> None:
    """Check the environment, and set up what Django has read of it.

    SQLite's test database is in memory, one for each process; only Django's own backend is known
    for it. Passwords are hashed cheaply: each takes a quarter of a second otherwise, as it does on
    the servers of tests. Garbage is looked for more rarely: thousands of collected tests stay until
    the end, and each search goes through them.
    """
    if MISSING and os.environ.get("EVALHUB_TEST_REQUIRED"):
        raise pytest.UsageError(f"EVALHUB_TEST_REQUIRED is set, but not {' and '.join(MISSING)}")
    gc.set_threshold(50_000)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # Many tests change what is stored behind the back of the services.
    settings.CACHES["answers"] = {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}
    answer_store.LEAST_SECONDS = 0.0
    if connections["default"].vendor == "sqlite":
        connections.settings["default"]["TEST"]["NAME"] = ":memory:"


def worker_group(item: pytest.Item) -> str:
    """Return the name of the tests that one worker runs: a file's, or all that share servers or a
    browser."""
    folder = item.path.parent.name
    if folder == "browser":
        return folder
    if folder == "reliability" and {"server", "embedded", "separate"} & {*item.fixturenames}:
        return "servers"
    return f"{folder}/{item.path.stem}"


def depends_on_database(item: pytest.Item) -> bool:
    """Whether a test depends on the kind of database: what a page says does not, and every page is
    asked by others."""
    has = item.get_closest_marker
    if item.path.parent.name not in DATABASE_FOLDERS or has("sqlite"):
        return False
    if has("words") and not has("queries"):
        return False
    return bool(has("django_db")) or "db" in item.fixturenames


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Skip what needs a service or data that the environment does not name, select, group and sort."""
    # Before the hooks of others: pytest-xdist reads the groups, and `-m` the marker.
    for item in items:
        item.add_marker(pytest.mark.xdist_group(worker_group(item)))
        if "module_data" in item.fixturenames:
            # A savepoint in the transaction of the file: tests/shared_data.py.
            item.add_marker("django_db")
        if item.path.parent.name in WAITING_FOLDERS:
            item.add_marker("slow")
        if MISSING and item.get_closest_marker("services"):
            item.add_marker(pytest.mark.skip(reason=f"set {' and '.join(MISSING)}"))
        if not os.environ.get("EVALHUB_REAL_DATA") and item.get_closest_marker("real_data"):
            item.add_marker(pytest.mark.skip(reason="set EVALHUB_REAL_DATA"))

    selected = set(items)
    if config.option.first_cases:
        selected = set({item.nodeid.partition("[")[0]: item for item in reversed(items)}.values())
        selected |= {item for item in items if item.get_closest_marker("services")}
    if os.environ.get("EVALHUB_TEST_ON") == "services":
        selected = {item for item in selected if depends_on_database(item)}
    config.hook.pytest_deselected(items=[item for item in items if item not in selected])
    items[:] = [item for item in items if item in selected]

    yield

    # After them: pytest-django puts all tests without a database to the end, among them those of
    # the browser, which take the longest. Workers take the files in this order: those that wait
    # half of their time, then slow ones, then short ones.
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(
        key=lambda item: (
            item.path.parent.name not in WAITING_FOLDERS,
            item.path not in slow,
            item.path,
        )
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Report a test by a name that pytest takes: the workers of pytest-xdist add an @ and the
    group."""
    if not IS_WORKER:
        report.nodeid = re.sub(r"@[\w/]+$", "", report.nodeid)


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

    Every client of a test makes the middleware anew, which would look through all folders of static
    files each time. The same chart is on many pages. And no test has killed a web server, but those
    of servers.
    """
    search, files = WhiteNoiseMiddleware.add_files_from_finders, {}

    def search_once(middleware: WhiteNoiseMiddleware) -> None:
        if not files:
            search(middleware)
            files.update(middleware.files)
        middleware.files.update(files)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", search_once)
        patch.setattr(vl_convert, "vegalite_to_svg", lru_cache(256)(vl_convert.vegalite_to_svg))
        patch.setattr("evalhub.management.commands.fsck.abandoned_folders", list)
        yield


@pytest.fixture(autouse=True, scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """Name the folder in which tests/reliability/servers.py prepares a database, once for all
    workers."""
    folder = tmp_path_factory.getbasetemp()
    os.environ["EVALHUB_TEST_SHARED"] = str(folder if worker_id == "master" else folder.parent)


def forget() -> None:
    """Forget what the cache has, and how often users asked."""
    cache.clear()
    RATES.forget()


@pytest.fixture(autouse=True)
def own_data_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Every test has a data folder, a cache and rates of its own.

    The folder needs no marker of its install unless the test settles it. Where the tests of a file
    share their data (tests/shared_data.py), it is a copy of theirs.
    """
    folder = tmp_path / "data"
    if "module_data" in request.fixturenames:
        shutil.copytree(request.getfixturevalue("module_data"), folder)
    else:
        folder.mkdir()
    remember(unmarked=True)
    forget()
    with override_settings(EVALHUB_DATA=folder):
        yield folder


@pytest.fixture
def answers_kept() -> Iterator[None]:
    """Keep answers in the memory of the process, however quickly they are computed."""
    in_memory = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "answers"}
    with override_settings(CACHES={**settings.CACHES, "answers": in_memory}):
        answer_store.forget_all()
        yield
        answer_store.forget_all()


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


def make_collection(api: APIClient) -> str:
    """Make a public collection with three judged topics; return its slug."""
    fields = {"slug": "small", "name": "Small", "measures": ["nDCG@10", "AP"]}
    answer = api.post("/api/v1/collections/", fields)
    assert answer.status_code == 201, answer.content

    assert upload(api, "collections/small/qrels/", QRELS).status_code == 201
    return "small"


@pytest.fixture
def collection(api: APIClient) -> str:
    """A public collection of Alice's with three judged topics; returns its slug."""
    return make_collection(api)


def evaluate_all() -> int:
    """Evaluate what is queued, in this process, as a worker would."""
    queued = Evaluation.objects.filter(state=Evaluation.State.QUEUED).order_by("created_at", "pk")
    done = sum(evaluate(evaluation_id=pk) for pk in queued.values_list("pk", flat=True))
    updates = VectorUpdate.objects.filter(state=VectorUpdate.State.QUEUED)
    done += sum(store_missing(qrels_id=pk) for pk in updates.values_list("pk", flat=True))
    return done + evaluate_all_sessions()


def evaluate_all_sessions() -> int:
    """The same of session sets alone."""
    queued = SessionEvaluation.objects.filter(state=Evaluation.State.QUEUED).order_by(
        "created_at", "pk"
    )
    return sum(evaluate_sessions(evaluation_id=pk) for pk in queued.values_list("pk", flat=True))


def submit_run(api: APIClient, content: str, **query: Any) -> Run:
    """Submit a run to the small collection and evaluate it; return it."""
    answer = upload(api, "collections/small/runs/", content, **query)
    assert answer.status_code == 202, answer.content

    evaluate_all()
    return Run.objects.get(pk=answer.json()["id"])


@pytest.fixture
def submit(api: APIClient, collection: str) -> Callable[..., Run]:
    """Submit a run of Alice's and evaluate it; returns it."""
    return partial(submit_run, api)
