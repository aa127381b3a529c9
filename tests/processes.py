"""Run the tests in several processes, `--processes`, which are forked when all tests are collected.

To collect the tests takes as long as two thousand of them run, and here it is done once. The processes take the tests
of one file after the other; the first process hands them out and reports. Tests of servers wait half of their time, so
that more than half of the processes begin with these, and the others with the slow tests of everything else.

With EVALHUB_TEST_ON=both, what depends on the kind of database then runs once more on the PostgreSQL of
EVALHUB_TEST_DATABASE_URL: as a process finds no more to do on SQLite, another one takes its place.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connections

Group = list[pytest.Item]
# What asks a database: the engine and the commands on files do not, and servers are tested on both as it is.
FOLDERS = {"runs", "metrics", "web", "campaigns"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, help="how many processes run the tests")


@cache
def place_in_order(path: Path) -> int:
    """The part of all tests that a file belongs to: of the shared servers, of servers, of the browser, others."""
    if path.parent.name == "reliability":
        return 1 - bool(re.search(r"\b(server|embedded|separate): Server\b", path.read_text()))
    return 2 if path.parent.name == "browser" else 3


def asks_the_database(item: pytest.Item) -> bool:
    """Whether a test depends on the kind of database: what a page says does not, and every page is asked by others."""
    has = item.get_closest_marker
    if (
        item.path.parent.name not in FOLDERS
        or has("sqlite")
        or (has("words") and not has("queries"))
    ):
        return False
    return bool(item.get_closest_marker("django_db")) or "db" in getattr(item, "fixturenames", ())


def grouped(items: Iterable[pytest.Item]) -> list[Group]:
    """The tests that stay in one process: those of a file, and all that share servers or a browser."""
    shared = {0: "servers", 2: "browser"}
    groups: dict[Any, Group] = {}
    for item in items:
        groups.setdefault(shared.get(place_in_order(item.path), item.path), []).append(item)
    return list(groups.values())


@dataclass
class Round:
    """The groups of tests that run on one kind of database, and the numbers of those that nobody has taken yet."""

    on: str
    groups: list[Group]
    left: deque[int] = field(init=False)

    def __post_init__(self) -> None:
        self.left = deque(range(len(self.groups)))

    def take(self, *, last: bool) -> int | None:
        """The number of the first group that is left, or of the last one."""
        if not self.left:
            return None
        return self.left.pop() if last else self.left.popleft()


@dataclass
class Running:
    """A process of tests: its number, the round that it works on, and the test that it has begun."""

    process: ForkProcess
    number: int
    round: int
    begun: str = "no test"


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    options = session.config.option
    if options.processes < 2 or options.collectonly or session.testsfailed:
        return None
    rounds = [Round("sqlite", grouped(session.items))]
    if os.environ.get("EVALHUB_TEST_ON") == "both":
        rounds.append(Round("services", grouped(filter(asks_the_database, session.items))))
    # What is run is what the progress is a share of.
    session.testscollected = sum(len(group) for one in rounds for group in one.groups)
    session.shouldfail = _hand_out(session, rounds) or session.shouldfail
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


def _hand_out(session: pytest.Session, rounds: list[Round]) -> str:
    """Give each process a group when it asks for one, and note its reports; returns which one died in what test."""
    hook, config, died = session.config.hook, session.config, ""
    running: dict[Any, Running] = {}

    def start(number: int, turn: int) -> None:
        line, far = multiprocessing.Pipe()
        made = multiprocessing.get_context("fork").Process(
            target=_work, args=(session, number, rounds[turn], far, [*running, line])
        )
        made.start()
        far.close()
        running[line] = Running(made, number, turn)

    for number in range(config.option.processes):
        start(number, 0)
    try:
        while running:
            for line in wait(list(running)):
                one = running[line]
                try:
                    said = line.recv()  # type: ignore[union-attr]
                except EOFError:
                    one.process.join()
                    del running[line]
                    if one.process.exitcode:
                        died = (
                            f"a process of tests ended with {one.process.exitcode} in {one.begun}"
                        )
                    elif one.round + 1 < len(rounds):
                        start(one.number, one.round + 1)
                    continue
                if said is None:
                    stops = session.shouldfail or session.shouldstop
                    # Of a later round, which has no servers, all begin with the slow tests.
                    last = one.round > 0 or one.number > config.option.processes // 2
                    line.send(None if stops else rounds[one.round].take(last=last))  # type: ignore[union-attr]
                elif isinstance(said, str):
                    one.begun = said
                else:
                    report = hook.pytest_report_from_serializable(config=config, data=said)
                    hook.pytest_runtest_logreport(report=report)
    finally:
        for one in running.values():
            one.process.join()
    return died


class Reports:
    """Sends the reports of a process to the first one; that nothing happened before or after a test is none."""

    def __init__(self, config: pytest.Config, line: Connection) -> None:
        self._config, self._line = config, line

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            if connections["default"].vendor != "sqlite":
                report.nodeid += " on PostgreSQL"
            self._line.send(
                self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
            )


def _work(
    session: pytest.Session, number: int, round: Round, line: Connection, others: list[Connection]
) -> None:
    """Run the tests of one group after the other; for a process of its own."""
    for other in others:
        other.close()
    config: Any = session.config
    # What the processes would share otherwise: the file of captured output, the terminal, folders and databases.
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    config.get_terminal_writer()._file = io.StringIO()
    folders = config._tmp_path_factory
    os.environ["EVALHUB_TEST_SHARED"] = str(folders.getbasetemp())
    folders._basetemp = folders.getbasetemp() / f"{round.on}-{number}"
    folders._basetemp.mkdir(mode=0o700)
    os.environ["EVALHUB_TEST_PROCESS"] = str(number)
    # By this name pytest-django tells its databases apart.
    config.workerinput = {"workerid": f"gw{number}"}
    config.pluginmanager.register(Reports(config, line))
    if round.on == "services":
        _use_services()

    def ask() -> Group:
        line.send(None)
        given = line.recv()
        return [] if given is None else round.groups[given]

    try:
        group = ask()
        while group:
            item = group.pop(0)
            group = group or ask()
            line.send(item.nodeid)
            config.hook.pytest_runtest_protocol(item=item, nextitem=group[0] if group else None)
    finally:
        # As after an interruption: no server may be left.
        session._setupstate.teardown_exact(None)


def _use_services() -> None:
    """Turn to PostgreSQL, in a process that has asked no database yet."""
    from evalhub.settings import _database

    url = os.environ["EVALHUB_TEST_DATABASE_URL"]
    limits = (settings.EVALHUB_LOCK_SECONDS, settings.EVALHUB_DATABASE_SILENCE_SECONDS)
    made = {"default": _database(url, settings.EVALHUB_DATA, *limits)}
    settings.EVALHUB_DATABASE_URL = url
    connections.settings.update(connections.configure_settings(made))
    del connections["default"]
