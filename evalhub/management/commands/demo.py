"""evalhub demo: load a lab's leaderboard and two campaigns, and serve them."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TextIO

import httpx
from django.conf import settings
from django.core.management import CommandError, CommandParser
from django.urls import reverse

from evalhub.example.campaigns import (
    FIRST,
    PARTICIPANT,
    SECOND,
    load_first_round,
    load_second_round,
    release_first_round,
)
from evalhub.example.collection import read_corpus
from evalhub.example.known_items import SUITE_SLUG, load_suite
from evalhub.example.loading import LAB_SLUG, Loader, load_lab
from evalhub.example.runs import LAB
from evalhub.management import command
from evalhub.management.commands.serve import (
    add_server_arguments,
    begin,
    check_address,
    make_supervisor,
    migrate_apart,
)
from evalhub.operating.checks import OWN_CHECKS
from evalhub.operating.examples import examples
from evalhub.operating.simulation import (
    LABELS,
    MEASURES,
    TEXTBOOK_QRELS,
    TEXTBOOK_RUN,
    simulate_collection,
)
from evalhub.serving.supervisor import AlreadyServed, exclusive
from metrics.models import EVALUATIONS, SubmissionEvaluation
from runs.models import ALL_SCOPES, ApiToken, Run, Snapshot, Team, User
from runs.services.accounts.teams import create_team
from runs.services.accounts.tokens import issue_token

_NAME, _TEAM = "demo", "sea-lab"
_START_SECONDS, _EVALUATE_SECONDS = 60.0, 120.0
# The textbook's collection is older than the others, which lists put first.
_TEXTBOOK_DAYS = 200
# Rows of the printed leaderboard.
_PRINTED = 5
_STATE = SubmissionEvaluation.State


class Command(command.Command):
    help = "Load a lab's leaderboard and two campaigns into the data folder, and serve the site."
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        add_server_arguments(parser)
        parser.add_argument("--no-serve", action="store_true", help="exit after the printout")
        parser.add_argument(
            "--examples",
            action="store_true",
            help="also load the collections that the documentation quotes: a simulated one, and "
            "the data of published numbers",
        )

    def handle(self, **options: Any) -> None:
        try:
            with exclusive(settings.EVALHUB_DATA):
                self._run(options)
        except AlreadyServed as error:
            raise CommandError(str(error), returncode=2) from error

    def _run(self, options: dict[str, Any]) -> None:
        check_address(options["bind"])
        site = f"http://{options['bind']}"
        with _Progress(self.stdout) as progress:
            progress.say(f"preparing the database in {settings.EVALHUB_DATA}")
            migrate_apart()
            begin(self.stderr.write)
            user, password = _account(_NAME), secrets.token_urlsafe(9)
            # A new token; those of earlier demonstrations are revoked.
            ApiToken.objects.filter(user=user).delete()
            token = issue_token(user=user, name=_NAME, scopes=ALL_SCOPES)[1]

            progress.say("starting the web server and the worker")
            supervisor = make_supervisor(options)
            supervisor.start()

        try:
            with _Progress(self.stdout) as progress:
                _load(user, site, progress.say, with_examples=options["examples"])
                for account in (user, _account(PARTICIPANT)):
                    account.set_password(password)
                    account.save(update_fields=["password"])

                progress.say("waiting for the web server")
                _wait_for_server(site)

            self.stdout.write(_welcome(site, password, token))
            self.stdout.write(_read_leaderboard(site))
            self.stdout.flush()

            if not options["no_serve"]:
                supervisor.wait()
        finally:
            supervisor.stop()


class _Progress:
    """A line for each step, and a dot for each second that it takes."""

    def __init__(self, output: Any) -> None:
        self._output: TextIO = output
        self._lock = threading.Lock()
        self._line_open = False
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> _Progress:
        self._ticker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._ticker.join()
        self._write("\n")

    def say(self, text: str) -> None:
        with self._lock:
            self._write(f"\ndemo: {text} " if self._line_open else f"demo: {text} ")
            self._line_open = True

    def _tick(self) -> None:
        while not self._over.wait(1):
            with self._lock:
                if self._line_open:
                    self._write(".")

    def _write(self, text: str) -> None:
        # The wrapper of Django ends every text with a new line unless it is told what else.
        self._output.write(text, ending="")  # type: ignore[call-arg]
        self._output.flush()


def _account(name: str) -> User:
    return User.objects.filter(username=name).first() or User.objects.create_user(name)


def _load(user: User, site: str, say: Callable[[str], object], *, with_examples: bool) -> None:
    """Load what is missing. An earlier start that was interrupted is completed."""
    team = Team.objects.filter(slug=_TEAM).first()
    lab = Loader(team=team or create_team(owner=user, slug=_TEAM, name="Sea lab"), user=user)
    own = Loader(team=user.personal_team, user=user)

    # The snapshot is what is stored last.
    if not Snapshot.objects.filter(campaign__slug=FIRST).exists():
        say("reading the 209 documents")
        corpus = read_corpus()
        say(f"a lab: ranking 30 topics in {len(LAB)} runs")
        load_lab(lab, corpus)
        say("a suite: two further tasks of its systems")
        load_suite(lab, corpus)
        say("a campaign that is over: 7 teams, 13 entries")
        load_first_round(lab, corpus)
        say("two topics of a textbook")
        _load_textbook(own)

    say("a campaign that is open")
    load_second_round(lab)
    if with_examples:
        say("the collections of the documentation")
        _load_examples(own)

    _wait_for_evaluations(say)
    say("releasing the results of the campaign")
    release_first_round(lab, site)


def _load_textbook(loader: Loader) -> None:
    collection = loader.create(
        "textbook",
        name="Textbook example",
        description="Two queries of Modern Information Retrieval, chapter 4.",
        level_labels=LABELS,
        measures=MEASURES,
    )
    loader.add_qrels(collection, TEXTBOOK_QRELS)
    loader.add_run(collection, "textbook", TEXTBOOK_RUN, days=_TEXTBOOK_DAYS)


def _load_examples(loader: Loader) -> None:
    simulated = simulate_collection()
    collection = loader.create(
        "simulated",
        name="Simulated collection",
        description="Simulated data: no real systems.",
        simulated=True,
        level_labels=LABELS,
        measures=MEASURES,
    )
    loader.add_topics(collection, simulated.topics)
    loader.add_documents(collection, simulated.documents)
    loader.add_qrels(collection, simulated.qrels)
    for tag, run in simulated.runs.items():
        loader.add_run(collection, tag, run)
    loader.add_sessions(collection, "sessions", simulated.sessions)

    for example in examples():
        collection = loader.create(
            example.slug,
            name=f"Example {example.name}",
            description=f"The example {example.name} of docs/sources.md.",
            documents=example.documents,
            level_labels={},
            measures=MEASURES,
        )
        for qrels in example.qrels:
            loader.add_qrels(collection, qrels)
        for tag, run in example.runs.items():
            loader.add_run(collection, tag, run)
        if example.sessions:
            loader.add_sessions(collection, example.name, example.sessions)


def _wait_for_evaluations(say: Callable[[str], object]) -> None:
    """Wait until nothing is queued. Raise CommandError after some time without progress."""
    before, deadline = -1, 0.0
    while waiting := sum(
        kind._default_manager.filter(state__in=(_STATE.QUEUED, _STATE.EVALUATING)).count()
        for kind in EVALUATIONS.values()
    ):
        if waiting != before:
            say(f"evaluating: {waiting} to go")
            before, deadline = waiting, time.monotonic() + _EVALUATE_SECONDS
        if time.monotonic() > deadline:
            raise CommandError(
                f"{waiting} evaluations are not done after {_EVALUATE_SECONDS:.0f} s; the log of "
                "the worker is above"
            )

        time.sleep(0.3)


def _wait_for_server(site: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{site}/api/v1/measures/").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            time.sleep(0.1)

    raise CommandError(
        f"the web server did not answer within {_START_SECONDS:.0f} s; its log is above"
    )


def _welcome(site: str, password: str, token: str) -> str:
    lab = reverse("collection-page", args=[LAB_SLUG])
    ids = dict(Run.objects.filter(collection__slug=LAB_SLUG).values_list("tag", "pk"))
    runs = f"runs={ids['fusion']}&runs={ids['bm25-long']}"
    pages = [
        ("The leaderboard of a lab, and how it got there", f"{lab}?chart=over-time"),
        ("Two of its systems, topic by topic, document by document", f"{lab}comparison/?{runs}"),
        ("Systems on three collections at once", reverse("suite-page", args=[SUITE_SLUG])),
        ("A campaign after its release", reverse("campaign-page", args=[FIRST])),
    ]
    entering = reverse("campaign-page", args=[SECOND])

    return "\n".join(
        [
            "",
            f"EvalHub: {site}/    (Ctrl-C ends it)",
            f"Log in as  {_NAME}  (organises everything) or  {PARTICIPANT}  (of the team Dogger, "
            f"which can enter runs at {entering})",
            f"Password   {password}",
            "",
            "Four things to look at:",
            *(
                f"  {number}. {text}:\n     {site}{path}"
                for number, (text, path) in enumerate(pages, 1)
            ),
            "",
            f"A token to try the API with: {token}    {site}/api/v1/docs/",
            "",
        ]
    )


def _read_leaderboard(site: str) -> str:
    """Return the first rows of the lab's leaderboard as text."""
    answer = httpx.get(
        f"{site}/api/v1/collections/{LAB_SLUG}/leaderboard/",
        params={"statistics": "intervals,tiers"},
        timeout=60,
    )
    board = answer.raise_for_status().json()
    names, rows = board["measures"], board["results"]
    columns = "".join(f"{name:>11}" for name in names)
    lines = [f"{'rank':>4}  {'run':<16}{columns}   95% CI of {board['sort']}"]

    for row in rows[:_PRINTED]:
        values = "".join(f"{row['values'][name]['mean']:11.4f}" for name in names)
        sort = row["values"][board["sort"]]
        interval = f"{sort['low']:.4f} - {sort['high']:.4f}"
        lines.append(f"{row['rank']:>4}  {row['run']['tag']:<16}{values}   {interval}")

    return "\n".join([*lines, f"      and {len(rows) - _PRINTED} more runs"])
