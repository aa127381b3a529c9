"""evalhub demo: submit simulated and textbook collections over REST, print results and serve them."""

from __future__ import annotations

import secrets
import time
from typing import Any

import httpx
from django.conf import settings
from django.core.management import CommandError, CommandParser, call_command

from evalhub.management import command
from evalhub.management.commands.serve import (
    add_server_arguments,
    begin,
    check_address,
    make_supervisor,
)
from evalhub.operating.checks import OWN_CHECKS
from evalhub.operating.examples import Example, examples
from evalhub.operating.simulation import (
    LABELS,
    MEASURES,
    TEXTBOOK_QRELS,
    TEXTBOOK_RUN,
    simulate_collection,
)
from evalhub.serving.supervisor import AlreadyServed, exclusive
from runs.models import ALL_SCOPES, ApiToken, User
from runs.services.accounts.tokens import issue_token

_SIMULATED, _TEXTBOOK = "simulated", "textbook"
_START_SECONDS, _EVALUATE_SECONDS = 60.0, 120.0


class Command(command.Command):
    help = (
        "Fill the data folder with a simulated collection, print its leaderboard, and serve the "
        "site."
    )
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        add_server_arguments(parser)
        parser.add_argument("--no-serve", action="store_true", help="exit after the printout")

    def handle(self, **options: Any) -> None:
        try:
            with exclusive(settings.EVALHUB_DATA):
                self._run(options)
        except AlreadyServed as error:
            raise CommandError(str(error), returncode=2) from error

    def _run(self, options: dict[str, Any]) -> None:
        check_address(options["bind"])
        self._say(f"preparing the database in {settings.EVALHUB_DATA}")
        call_command("migrate", verbosity=0)
        begin(self.stderr.write)
        user = User.objects.filter(username="demo").first() or User.objects.create_user("demo")
        # A new token; those of earlier demonstrations are revoked.
        ApiToken.objects.filter(user=user).delete()
        token = issue_token(user=user, name="demo", scopes=ALL_SCOPES)[1]
        password = secrets.token_urlsafe(12)
        user.set_password(password)
        user.save(update_fields=["password"])
        supervisor = make_supervisor(options)
        self._say("starting the web server and the worker")
        supervisor.start()

        try:
            url = f"http://{options['bind']}"
            headers = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=f"{url}/api/v1/", headers=headers, timeout=30) as http:
                self._fill(http)
                self._print_results(http)

            if options["no_serve"]:
                return

            self.stdout.write(
                f"\nThe site: {url}/    the API: {url}/api/v1/docs/    Ctrl-C ends it"
            )
            self.stdout.write(f"Log in with the name demo and the password {password}")
            self.stdout.write(f"A token to try the API with: {token}")
            self.stdout.flush()
            supervisor.wait()
        finally:
            supervisor.stop()

    def _fill(self, http: httpx.Client) -> None:
        _wait_for_server(http)
        self._say("uploading the simulated collection: 50 topics, judgements of 4 levels")
        simulated = simulate_collection()
        _create_collection(
            http, _SIMULATED, "Simulated collection", "Simulated data: no real systems."
        )
        _send(
            http.put(
                f"collections/{_SIMULATED}/topics/",
                files={"file": ("topics.jsonl", simulated.topics)},
            )
        )

        _send(
            http.put(
                f"collections/{_SIMULATED}/documents/",
                files={"file": ("documents.tsv", simulated.documents)},
            )
        )

        _send(
            http.post(
                f"collections/{_SIMULATED}/qrels/", files={"file": ("qrels", simulated.qrels)}
            )
        )

        for number, (tag, run) in enumerate(simulated.runs.items(), 1):
            self._say(f"submitting run {number} of {len(simulated.runs)}: {tag}")
            _send(http.post(f"collections/{_SIMULATED}/runs/", files={"file": (tag, run)}))

        self._say("uploading a session log: 8 searchers, 8 topics, 2 systems in a Latin square")
        log = {"file": ("sessions.jsonl", simulated.sessions)}
        _send(http.post(f"collections/{_SIMULATED}/sessions/", files=log, data={"tag": "sessions"}))
        self._say("uploading the textbook example: 2 topics, 1 run")
        _create_collection(
            http,
            _TEXTBOOK,
            "Textbook example",
            "Two queries of Modern Information Retrieval, chapter 4.",
        )

        _send(
            http.post(f"collections/{_TEXTBOOK}/qrels/", files={"file": ("qrels", TEXTBOOK_QRELS)})
        )
        _send(http.post(f"collections/{_TEXTBOOK}/runs/", files={"file": ("run", TEXTBOOK_RUN)}))
        all_examples = examples()
        self._say(f"uploading {len(all_examples)} examples of docs/sources.md")
        for example in all_examples:
            _upload(http, example)

        expected = {_SIMULATED: len(simulated.runs), _TEXTBOOK: 1}
        expected |= {example.slug: len(example.runs) for example in all_examples if example.runs}
        for collection, runs in expected.items():
            self._wait_for_evaluations(http, collection, runs)

        for collection in (
            _SIMULATED,
            *(example.slug for example in all_examples if example.sessions),
        ):
            self._wait_for_sessions(http, collection)

    def _wait_for_evaluations(self, http: httpx.Client, collection: str, runs: int) -> None:
        deadline, evaluated = time.monotonic() + _EVALUATE_SECONDS, -1
        while time.monotonic() < deadline:
            board = _send(http.get(f"collections/{collection}/leaderboard/", params={"limit": 1}))
            if board["ranked"] != evaluated:
                evaluated = board["ranked"]
                self._say(f"evaluated {evaluated} of {runs} runs of {collection}")

            if evaluated >= runs:
                return

            time.sleep(0.1)

        raise CommandError(
            f"{collection}: not evaluated after {_EVALUATE_SECONDS:.0f} s: {board['states']}"
        )

    def _wait_for_sessions(self, http: httpx.Client, collection: str) -> None:
        deadline = time.monotonic() + _EVALUATE_SECONDS
        while time.monotonic() < deadline:
            path = f"collections/{collection}/session-leaderboard/"
            states = _send(http.get(path, params={"limit": 1}))["states"]
            if states.keys() == {"evaluated"}:
                self._say(f"evaluated the session log of {collection}")
                return

            time.sleep(0.1)

        raise CommandError(
            f"{collection}: the session log is not evaluated after {_EVALUATE_SECONDS:.0f} s: "
            f"{states}"
        )

    def _print_results(self, http: httpx.Client) -> None:
        path = f"collections/{_SIMULATED}"
        statistics = {"statistics": "intervals,tiers"}
        board = _send(http.get(f"{path}/leaderboard/", params=statistics))
        self.stdout.write(f"\n{_board_text(board)}")

        comparison = _send(http.get(f"{path}/comparison/", params={"measure": "nDCG@10"}))
        self.stdout.write(f"\n{_comparison_text(comparison)}")

        sessions = _send(http.get(f"{path}/session-comparison/", params={"measure": "nsDCG"}))
        self.stdout.write(f"\n{_sessions_text(sessions)}")

    def _say(self, text: str) -> None:
        self.stdout.write(f"demo: {text}")
        self.stdout.flush()


def _wait_for_server(http: httpx.Client) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        try:
            if http.get("measures/").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            time.sleep(0.1)

    raise CommandError(
        f"the web server did not answer within {_START_SECONDS:.0f} s; its log is above"
    )


def _create_collection(
    http: httpx.Client, slug: str, name: str, description: str, **options: Any
) -> None:
    fields = {
        "slug": slug,
        "name": name,
        "description": description,
        "simulated": slug == _SIMULATED,
        "level_labels": LABELS,
        "measures": MEASURES,
        **options,
    }
    if http.get(f"collections/{slug}/").status_code == httpx.codes.NOT_FOUND:
        _send(http.post("collections/", json=fields))


def _upload(http: httpx.Client, example: Example) -> None:
    path = f"collections/{example.slug}"
    description = f"The example {example.name} of docs/sources.md."
    _create_collection(
        http,
        example.slug,
        f"Example {example.name}",
        description,
        documents=example.documents,
        level_labels={},
    )

    for number, qrels in enumerate(example.qrels, 1):
        _send(http.post(f"{path}/qrels/", files={"file": (f"qrels-{number}", qrels)}))

    for tag, run in example.runs.items():
        _send(http.post(f"{path}/runs/", files={"file": (tag, run)}))

    if example.sessions:
        log = {"file": ("sessions.jsonl", example.sessions)}
        _send(http.post(f"{path}/sessions/", files=log, data={"tag": example.name}))


def _send(response: httpx.Response) -> Any:
    """Return the JSON of a response. Raise CommandError for an error."""
    if response.is_error:
        raise CommandError(
            f"{response.request.method} {response.request.url}: {response.status_code} "
            f"{response.text[:500]}"
        )
    return response.json()


def _board_text(board: dict[str, Any]) -> str:
    names = board["measures"]
    lines = [f"SIMULATED collection, qrels version {board['qrels']}, ranked by {board['sort']}"]
    columns = "".join(f"{name:>11}" for name in names)
    lines.append(f"{'rank':>4}  {'run':<14}{columns}   95% CI          tier")

    for row in (row for row in board["results"] if row["statistics"]):
        values = "".join(f"{row['values'][name]['mean']:11.4f}" for name in names)
        sort = row["values"][board["sort"]]
        interval = f"{sort['low']:.4f} - {sort['high']:.4f}"
        lines.append(
            f"{row['rank']:>4}  {row['run']['tag']:<14}{values} {interval:>17}  "
            f"{row['statistics']['tier']:>4}"
        )

    lines.append(
        "By paired t (Holm) and Tukey's HSD runs in a tier do not differ significantly from its "
        f"best run by {board['sort']}."
    )
    return "\n".join(lines)


def _comparison_text(comparison: dict[str, Any]) -> str:
    tags = {run["id"]: run["tag"] for run in comparison["runs"]}
    beaten: dict[str, list[str]] = {tag: [] for tag in tags.values()}

    (measure,) = comparison["measures"]
    for pair in measure["pairs"]:
        if pair["tests"]["t_and_tukey"]["significant"]:
            beaten[tags[pair["a"]]].append(tags[pair["b"]])

    lines = [
        f"Significantly better in {measure['measure']} (paired t with Holm and Tukey's HSD, "
        f"{comparison['family']['pairs']} pairs, p < {comparison['alpha']}, "
        f"{measure['topics']['used']} topics):"
    ]
    for mean in measure["means"]:
        tag = tags[mean["run"]]
        lines.append(f"  {tag:<14} > {', '.join(beaten[tag]) or 'none'}")

    return "\n".join(lines)


def _sessions_text(comparison: dict[str, Any]) -> str:
    design = comparison["design"]["recognised"].replace("_", " ")
    lines = [f"Sessions by {comparison['measure']} ({design}):"]
    for system in comparison["systems"]:
        count = f"of {system['with_value']} sessions"
        lines.append(f"  {system['system']:<14} {system['mean']:.4f}  {count}")

    pair = comparison["pairs"][0]
    p_value = "no p" if pair["p_value"] is None else f"p = {pair['p_value']:.3g}"
    return "\n".join([*lines, f"  difference {pair['difference']:.4f}, {p_value}"])
