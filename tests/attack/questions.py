"""The dearest permitted request of every address that is read: twenty at once, of one account and of nobody.

What a question asks for shrinks until it is not refused any more; the same answer is never asked
for twice, so that no memory of answers helps the server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

import httpx

from evalhub.client.version import VERSION
from tests.attack.many import AT_ONCE, ask_all
from tests.attack.target import Target

# Each step halves the measures and quarters the resamples.
STEPS = 10
_MOST_MEASURES, _MOST_COMPARED, _MOST_CURVES, _MOST_DRAWS, _MOST_COMBINATIONS = (
    100,
    20,
    20,
    10_000_000,
    50,
)
_MOST_RANKS = 10_000
_NUMBERS = count(1)
_API = "/api/v1/"
_BOARD, _RUN, _SET = (
    f"{_API}collections/{{collection}}/",
    f"{_API}runs/{{run}}/",
    f"{_API}session-sets/{{set}}/",
)
_PAGE = "/collections/{collection}/"
_RECALL = "points=101&per_topic=true&rel=all&confidence={share}"
# Of something that the attacker has none of.
_NOBODYS = "00000000-0000-4000-8000-000000000000"
_SESSIONS = "design=two_way&resamples={draws}&seed={n}"
_TESTS = "tests=randomisation,bootstrap,randomised_tukey_hsd&resamples={draws}&seed={n}"

# The dearest known question to every address that is read, by its name. Where nothing varies,
# nothing is computed.
DEAREST: dict[str, str] = {
    "leaderboard": _BOARD + "leaderboard/?measures={odd}&limit=200",
    "leaderboard-export": _BOARD + "leaderboard/export/csv/?measures={odd}",
    "comparison": _BOARD + "comparison/?measures={compared}&" + _TESTS,
    "comparison-export": _BOARD + "comparison/export/csv/?measures={compared}&" + _TESTS,
    "difference": _BOARD + "difference/?runs={run},{other}&measure={one}",
    "what-if": _BOARD + "what-if/?measures={combinations}",
    "orders": _BOARD + "orders/?measures={compared}&resamples={ranks}&seed={n}",
    "agreement": _BOARD + "qrels/2/agreement/?with=1&measure={one}&resamples={ranks}&seed={n}",
    "agreement-export": _BOARD
    + "qrels/2/agreement/export/csv/?with=1&measure={one}&resamples={ranks}&seed={n}",
    "reusability": _BOARD + "reusability/?measures={compared}&by=run&depth=10",
    "reusability-export": _BOARD + "reusability/export/csv/?measures={compared}&by=run&depth=10",
    "reusability-page": _PAGE + "reusability/?measures={compared}&by=run&depth=10",
    "undecided": _BOARD + "undecided/?runs={run},{other}&measure=DCG",
    "design": _BOARD + "design/?measures={compared}&test=randomisation&resamples={draws}&seed={n}&trials={trials}",
    "importance": _BOARD + "importance/?measure={one}&seed={n}",
    "importance-export": _BOARD + "importance/export/csv/?measure={one}&seed={n}",
    "frontier": _BOARD + "frontier/?y={one}&across=true&filter=-tag:n{n}",
    "frontier-export": _BOARD + "frontier/export/csv/?y={one}&across=true&filter=-tag:n{n}",
    "run-values": _RUN + "values/?measures={odd}",
    "run-curve": f"{_API}runs/{{large}}/curve/?measures={{curves}}&depth=1000&per_topic=true",
    "run-precision-recall": f"{_API}runs/{{large}}/precision-recall/?{_RECALL}",
    "run-ranking": f"{_API}runs/{{large}}/ranking/?topic=101&limit=200&offset={{n}}",
    "run-chart": f"{_API}runs/{{large}}/charts/curve.pdf?measure=nDCG&depth=1000&confidence={{share}}",
    "collection-chart": _BOARD + "charts/significance.svg?measures={compared}&" + _TESTS,
    "session-board": _BOARD + "session-leaderboard/?measures={sessions}&statistics=intervals",
    "session-board-export": _BOARD + "session-leaderboard/export/csv/?measures={sessions}&statistics=all&seed={n}",
    "session-comparison-export": _BOARD + "session-comparison/export/csv/?test=bootstrap&" + _SESSIONS,
    "session-comparison": _BOARD + "session-comparison/?test=randomisation&" + _SESSIONS,
    "session-values": _SET + "values/?measures={sessions}&limit=10000",
    "session-curves": _SET + "curves/?measure={session}&per_session=true",
    "session-queries": _SET + "queries/?measure={session}",
    "session-chart": _SET + "charts/curves.pdf?measure={session}",
    "one-session": _SET + "sessions/u1-101/?documents=10000&measure={session}",
    "stored-comparison-chart": f"{_API}comparisons/{{comparison}}/charts/significance.pdf",
    "collection-page": _PAGE + "?measures={odd}&statistics=all&rank_resamples={draws}&seed={n}",
    "board-piece": _PAGE + "board/?measures={odd}",
    "comparison-page": _PAGE + "comparison/?measures={compared}&" + _TESTS,
    "what-if-page": _PAGE + "what-if/?family=nDCG&dis=jk&b=2.1{n}&depth=200",
    "run-page": "/runs/{large}/?measures={odd}",
    "run-topics-page": "/runs/{large}/topics/?measures={odd}",
    "run-curves-page": "/runs/{large}/curves/?measures={odd}&depth=1000",
    "ranking-page": "/runs/{large}/ranking/?topic=101&offset={n}",
    "sessions-page": _PAGE + "sessions/?measure={session}&test=randomisation&" + _SESSIONS,
    "session-set-page": "/session-sets/{set}/?measure={session}",
    "session-page": "/session-sets/{set}/sessions/u1-101/?measure={session}&documents=100",
    "collection-values": _BOARD + "values/?measures={compared}",
    "collection-curves": _BOARD + "curves/?measures={curves}&depth=1000&readings=true",
    "collection-precision-recall": _BOARD + "precision-recall/?points=101&rel=all&confidence={share}",
    "collection-values-export": _BOARD + "values/export/csv/?measures={compared}",
    "run-values-export": _RUN + "values/export/csv/?measures={odd}",
    "judgements": _BOARD + "judgements/",
    "judgements-page": _PAGE + "judgements/",
    "difficulty": _BOARD + "difficulty/?measure={one}&sort=disagreement",
    "topic": _BOARD + "topic/?topic=101&measure={one}",
    "heat-map-export": _BOARD + "heat-map/export/csv/?measure={one}",
    "topics-page": _PAGE + "topics/?measure={one}",
    "topic-page": _PAGE + "topics/101/?measure={one}",
    "heat-map-page": _PAGE + "heat-map/?measure={one}&limit=200&topic_limit=250",
    "orders-page": _PAGE + "orders/?measures={compared}&resamples={ranks}&seed={n}",
    "agreement-page": _PAGE + "qrels/2/agreement/?with=1&measure={one}&resamples={ranks}&seed={n}",
    "importance-page": _PAGE + "parameters/importance/?measure={one}&seed={n}",
    "frontier-page": _PAGE + "frontier/?y={one}&across=true&filter=-tag:n{n}",
    "design-page": _PAGE + "design/?measures={compared}&seed={n}",
    "home": "/",
    "client-page": "/client/",
    "client-wheel": f"/client/evalhub_client-{VERSION}-py3-none-any.whl",
    "collections-page": "/collections/?search=a+b+c+d",
    "favicon": "/favicon.ico",
    "api-root": _API,
    "measures-page": "/measures/?search={n}",
    "measure-suggestions": "/measures/suggestions/?measures={odd},n",
    "parameters": _BOARD + "parameters/?limit=100&filter=-tag:n{n} has:parameters",
    "configurations": _BOARD + "configurations/?filter=-tag:n{n}",
    "configurations-export": _BOARD + "configurations/export/csv/?filter=-tag:n{n}",
    "configurations-page": _PAGE + "configurations/?filter=-tag:n{n}",
    "parameters-page": _PAGE + "parameters/?filter=-tag:n{n} has:parameters",
    # Nothing is computed for these.
    "collections": f"{_API}collections/?limit=200",
    "collection": _BOARD,
    "collection-audit": _BOARD + "audit/?limit=200",
    "topics": _BOARD + "topics/?limit=200",
    "documents": _BOARD + "documents/?limit=200",
    "topic-attributes": _BOARD + "topic-attributes/?limit=200",
    "measure-declarations": _BOARD + "external-measures/?limit=200",
    "measure-declaration": _BOARD + "external-measures/ms/",
    "declared-values": _BOARD + "external-measures/ms/values/",
    "value-tables": _BOARD + "value-tables/?limit=200",
    "qrels-list": _BOARD + "qrels/?limit=200",
    "qrels": _BOARD + "qrels/1/",
    "qrels-file": _BOARD + "qrels/1/file/",
    "runs": _BOARD + "runs/?limit=200&tag=attack",
    "run": _RUN,
    "run-states": f"{_API}runs/?id={{run}},{{large}}",
    "run-file": f"{_API}runs/{{large}}/file/",
    "run-known": _RUN + "known/",
    "run-history": _RUN + "history/",
    "artifacts": _RUN + "artifacts/?limit=200",
    "artifact": _RUN + "artifacts/notes.txt/",
    "run-artifacts-page": "/runs/{run}/files/edit/",
    "run-parents": _RUN + "parents/",
    "run-tree": _RUN + "tree/",
    "run-links": _RUN + "links/",
    "run-lineage-page": "/runs/{run}/lineage/",
    "run-parameters-edit-page": "/runs/{run}/parameters/edit/",
    "run-parameters-page": "/runs/{run}/parameters/",
    "run-files-page": "/runs/{run}/files/",
    "describe-parameter": _PAGE + "parameters/describe/",
    "parameter-table": _BOARD + "parameters/csv/?filter=-tag:n{n}",
    "edit-parameters-page": _PAGE + "parameters/edit/?filter=-tag:n{n}",
    "rename-parameter-page": _PAGE + "parameters/rename/?name=k1",
    "labels": _BOARD + "labels/?limit=200",
    "label": _BOARD + "labels/main/",
    "citation": _BOARD + "citation/",
    "shares": f"{_API}shares/?limit=200",
    "shares-page": "/shares/",
    "open-share": "/s/00000000/",
    "shared-page": "/shared/00000000/",
    "shared-file": "/shared/00000000/export/csv/",
    "shared-chart": "/shared/00000000/charts/means.svg",
    "views": _BOARD + "views/?limit=200",
    "view": f"{_API}views/2222222222/",
    "views-page": _PAGE + "views/",
    "view-page": "/v/2222222222/",
    "experiments": f"{_API}experiments/?limit=200&collection=attack",
    "experiment": f"{_API}experiments/{_NOBODYS}/",
    "experiment-notes": f"{_API}experiments/{_NOBODYS}/notes/",
    "campaigns": f"{_API}campaigns/?limit=200",
    "campaign": f"{_API}campaigns/attack/",
    "campaign-notices": f"{_API}campaigns/attack/notices/?limit=200",
    "campaign-outbox": f"{_API}campaigns/attack/outbox/?limit=200",
    "campaign-audit": f"{_API}campaigns/attack/audit/?format=csv",
    "campaign-config": f"{_API}campaigns/attack/config/?format=yaml",
    "agreements": f"{_API}campaigns/attack/agreements/?limit=200",
    "participations": f"{_API}campaigns/attack/teams/?limit=200",
    "participation": f"{_API}campaigns/attack/teams/mallory/",
    "participants": f"{_API}campaigns/attack/teams/mallory/members/?limit=200",
    "phases": f"{_API}campaigns/attack/phases/?limit=200",
    "phase": f"{_API}campaigns/attack/phases/task/",
    "entries": f"{_API}campaigns/attack/phases/task/entries/?limit=200",
    "allowance": f"{_API}campaigns/attack/phases/task/allowance/",
    "packets": f"{_API}campaigns/attack/phases/task/packets/",
    "phase-topics": f"{_API}campaigns/attack/phases/task/topics/?format=csv",
    "campaign-topics-page": "/campaigns/attack/desk/phases/task/topics/",
    "snapshots": f"{_API}campaigns/attack/snapshots/?limit=200",
    "snapshot": f"{_API}snapshots/00000000000000000000/",
    "snapshot-archive": f"{_API}snapshots/00000000000000000000/archive/",
    "snapshot-page": "/s/00000000000000000000/",
    "snapshot-file": "/s/00000000000000000000.tar.zst",
    "suites": f"{_API}suites/?limit=200",
    "suite": f"{_API}suites/attack/",
    "suite-versions": f"{_API}suites/attack/versions/?limit=200",
    "suite-board": f"{_API}suites/attack/leaderboard/?order=borda&resamples=10000",
    "suite-board-export": f"{_API}suites/attack/leaderboard/export/csv/?order=borda&resamples=10000",
    "suite-comparison": f"{_API}suites/attack/comparison/?systems=attack/a,attack/b",
    "suite-comparison-export": f"{_API}suites/attack/comparison/export/csv/?systems=attack/a,attack/b",
    "suites-page": "/suites/?page=2",
    "suite-page": "/suites/attack/?order=borda&resamples=10000",
    "suite-comparison-page": "/suites/attack/comparison/?systems=attack/a,attack/b",
    "new-suite-page": "/new-suite/",
    "new-suite-version-page": "/suites/attack/new-version/",
    "phase-pools": f"{_API}campaigns/attack/phases/task/pools/?limit=200",
    "collection-pools": f"{_API}collections/attack/pools/?limit=200",
    "pool": f"{_API}pools/{_NOBODYS}/",
    "pool-statistics": f"{_API}pools/{_NOBODYS}/statistics/",
    "pool-file": f"{_API}pools/{_NOBODYS}/files/1.tsv",
    "pool-archive": f"{_API}pools/{_NOBODYS}/files.zip",
    "pool-assignments": f"{_API}pools/{_NOBODYS}/assignments/?limit=200",
    "pool-documents": f"{_API}pools/{_NOBODYS}/documents/?topic=1&limit=200",
    "pool-judgements": f"{_API}pools/{_NOBODYS}/judgements/?history=true&limit=200",
    "pool-conflicts": f"{_API}pools/{_NOBODYS}/conflicts/?conflict_at=1&limit=200",
    "pool-adjudications": f"{_API}pools/{_NOBODYS}/adjudications/?limit=200",
    "pool-agreement": f"{_API}pools/{_NOBODYS}/agreement/?resamples=10000",
    "pool-qrels": f"{_API}pools/{_NOBODYS}/qrels/?limit=200",
    "judging-page": "/judging/",
    "judge-page": f"/pools/{_NOBODYS}/judge/?topic=1&place=1",
    "judging-desk-page": f"/pools/{_NOBODYS}/judging/",
    "collection-pools-page": "/collections/attack/pools/?page=2",
    "new-pool-page": "/collections/attack/new-pool/",
    "phase-pools-page": "/campaigns/attack/phases/task/pools/?page=2",
    "new-phase-pool-page": "/campaigns/attack/phases/task/new-pool/",
    "pool-page": f"/pools/{_NOBODYS}/",
    "pool-act-page": f"/pools/{_NOBODYS}/act/",
    "campaigns-page": "/campaigns/",
    "new-campaign-page": "/new-campaign/",
    "campaign-page": "/campaigns/attack/",
    "campaign-leaderboard-page": "/campaigns/attack/leaderboard/",
    "campaign-rules-page": "/campaigns/attack/rules/",
    "campaign-cite-page": "/campaigns/attack/cite/",
    "campaign-desk-page": "/campaigns/attack/desk/",
    "campaign-links": f"{_API}campaigns/attack/links/?limit=200",
    "campaign-links-page": "/campaigns/attack/desk/invitations/",
    "campaign-teams-page": "/campaigns/attack/desk/teams/",
    "campaign-audit-page": "/campaigns/attack/desk/audit/?page=2",
    "campaign-entries-page": "/campaigns/attack/desk/entries/",
    "campaign-own-entry-page": "/campaigns/attack/desk/enter/",
    "campaign-notices-page": "/campaigns/attack/desk/notices/",
    "campaign-agreements-page": "/campaigns/attack/desk/agreements/",
    "campaign-settings-page": "/campaigns/attack/desk/settings/",
    "campaign-new-phase-page": "/campaigns/attack/desk/new-phase/",
    "campaign-phase-page": "/campaigns/attack/desk/phases/task/",
    "campaign-act-page": "/campaigns/attack/acts/publish/",
    "campaign-team-page": "/campaigns/attack/team/",
    "campaign-enter-page": "/campaigns/attack/team/task/",
    "campaign-entry-page": f"/campaigns/attack/entries/{_NOBODYS}/",
    "packet": f"{_API}campaigns/attack/phases/task/packet/",
    "phase-results": f"{_API}campaigns/attack/phases/task/results/?reference=best_of_team",
    "phase-board": f"{_API}campaigns/attack/phases/task/board/?view=all&limit=200&statistics=all",
    "phase-board-export": f"{_API}campaigns/attack/phases/task/board/export/csv/?view=all",
    "phase-board-page": "/campaigns/attack/phases/task/?view=all",
    "campaign-snapshot-page": "/campaigns/attack/desk/snapshot/?phase=task",
    "campaign-config-page": "/campaigns/attack/desk/file/",
    "campaign-copy-page": "/campaigns/attack/desk/copy/",
    "phase-releases": f"{_API}campaigns/attack/phases/task/releases/?limit=200",
    "phase-release": f"{_API}releases/{_NOBODYS}/",
    "entry": f"{_API}entries/{_NOBODYS}/",
    "run-notes": _RUN + "notes/?limit=200",
    "collection-notes": _BOARD + "notes/?limit=200",
    "my-runs": f"{_API}me/runs/?limit=200&filter=-tag:n{{n}} has:parameters",
    "my-withdrawn-runs": f"{_API}me/runs/withdrawn/?limit=200",
    "systems": f"{_API}systems/?limit=200",
    "system-page": "/systems/mallory/dense/",
    "system-change-page": "/systems/mallory/dense/change/",
    "system": f"{_API}systems/mallory/dense/",
    "session-sets": _BOARD + "sessions/?limit=200",
    "session-set": _SET,
    "session-set-file": _SET + "file/",
    "session-lengths": _SET + "lengths/",
    "session-searchers": _SET + "searchers/?by=system",
    "session-evaluations": _SET + "evaluations/",
    "evaluations": _BOARD + "evaluations/",
    "run-evaluations": _RUN + "evaluations/",
    "stored-comparison": f"{_API}comparisons/{{comparison}}/?limit=200",
    "stored-comparison-export": f"{_API}comparisons/{{comparison}}/export/csv/",
    "stored-comparison-page": "/comparisons/{comparison}/",
    "stored-comparison-status": "/comparisons/{comparison}/status/",
    "queue-comparison": _PAGE + "comparison/queue/",
    "run-status": "/runs/{run}/status/",
    "session-set-status": "/session-sets/{set}/status/",
    "measures": f"{_API}measures/",
    "measure": f"{_API}measures/alpha_nDCG/",
    "measure-page": "/measures/alpha_nDCG/",
    "me": f"{_API}me/",
    "teams": f"{_API}teams/?limit=200",
    "team-webhooks": f"{_API}teams/mallory/webhooks/?limit=200",
    "collection-webhooks": _BOARD + "webhooks/?limit=200",
    "webhook": f"{_API}webhooks/{_NOBODYS}/",
    "deliveries": f"{_API}webhooks/{_NOBODYS}/deliveries/?limit=200",
    "team-invitations": f"{_API}teams/mallory/invitations/",
    "invitations": f"{_API}invitations/",
    "members": f"{_API}teams/mallory/members/",
    "account-invitations": f"{_API}account-invitations/?limit=200",
    "tokens": f"{_API}tokens/?limit=200",
    "audit": f"{_API}audit/?limit=200",
    "version": f"{_API}version/",
    "schema": f"{_API}schema/",
    "api-docs": f"{_API}docs/",
    "login": "/login/",
    "submit-page": _PAGE + "submit/",
    "submit-sessions-page": _PAGE + "submit-sessions/",
    "new-collection-page": "/new-collection/",
    "value-tables-page": _PAGE + "value-tables/",
    "manage-page": _PAGE + "manage/",
    "manage-topics-page": _PAGE + "manage/topics/?page=2",
    "manage-documents-page": _PAGE + "manage/documents/",
    "manage-judgements-page": _PAGE + "manage/judgements/",
    "manage-measures-page": _PAGE + "manage/measures/",
    "manage-access-page": _PAGE + "manage/access/",
    "manage-quota-page": _PAGE + "manage/quota/",
    "manage-withdrawn-page": _PAGE + "manage/withdrawn/",
    "manage-audit-page": _PAGE + "manage/audit/?page=2",
    "run-change-page": "/runs/{run}/change/",
    "session-set-change-page": "/session-sets/{set}/change/",
    "experiments-page": "/experiments/",
    "experiment-page": f"/experiments/{_NOBODYS}/",
    "my-runs-page": "/runs/?filter=-tag:n{n} has:parameters",
    "run-notes-page": "/runs/{run}/notes/",
    "collection-notes-page": _PAGE + "notes/",
    "experiment-notes-page": f"/experiments/{_NOBODYS}/notes/",
    "teams-page": "/teams/",
    "team-page": "/teams/mallory/",
    "join-page": "/join/?code=x",
    "join-campaign-page": "/join-campaign/?code=x",
    "register-page": "/register/",
    "forgotten-password-page": "/forgotten-password/",
    "provider-login": "/login/organisation/",
    "provider-callback": "/login/organisation/callback/?state=x&code=x",
    "new-provider-account-page": "/login/organisation/new/",
    "new-password-page": "/new-password/?code=1-x",
    "invite-page": "/invite/",
    "first-account-page": "/first-account/",
    "account-page": "/account/",
    "tokens-page": "/tokens/",
    "team-webhooks-page": "/teams/mallory/webhooks/",
    "collection-webhooks-page": _PAGE + "webhooks/",
    "healthz": "/healthz",
    "readyz": "/readyz",
    "metrics": "/metrics",
}  # fmt: skip
_VARIES = (
    "{n}",
    "{odd}",
    "{one}",
    "{share}",
    "{compared}",
    "{combinations}",
    "{curves}",
    "{sessions}",
    "{session}",
)
COMPUTED = {
    name: text for name, text in DEAREST.items() if any(varied in text for varied in _VARIES)
}


def address(template: str, names: dict[str, str], step: int = 0) -> str:
    """The address with its names, and with measures and numbers that nobody has asked for yet."""
    n = next(_NUMBERS)
    measures = max(1, _MOST_MEASURES >> step)
    return template.format(
        n=n,
        share=f"0.9{n:06d}",
        draws=max(1, _MOST_DRAWS >> 2 * step),
        ranks=max(100, _MOST_RANKS >> step),
        trials=max(1, 1000 >> step),
        one=_odd(n, 0),
        odd=",".join(_odd(n, index) for index in range(measures)),
        compared=",".join(_odd(n, index) for index in range(max(1, _MOST_COMPARED >> step))),
        combinations=",".join(
            _gains(n, index) for index in range(max(1, _MOST_COMBINATIONS >> step))
        ),
        curves=",".join(_gains(n, index) for index in range(max(1, _MOST_CURVES >> step))),
        sessions=",".join(
            f"sDCG(b=2.1{n:05d}{index:02d})@{index + 1}" for index in range(min(50, measures))
        ),
        session=f"sDCG(b=2.1{n:05d})",
        **names,
    )


def _odd(n: int, index: int) -> str:
    return f"alpha_nDCG(alpha=0.1{n:05d}{index:02d})@{100 - index % 20}"


def _gains(n: int, index: int) -> str:
    return f"nDCG(dis='jk',b=2.1{n:05d}{index:02d})"


def permitted(target: Target, template: str) -> int:
    """The first step at which the question is not refused for its size."""
    for step in range(STEPS):
        with target.client(timeout=120) as client:
            try:
                answer = client.get(address(template, target.names, step))
            except httpx.HTTPError:
                return step
        if answer.status_code not in (400, 413, 414, 422):
            return step
    return STEPS


def questions(name: str, *, known: bool) -> Callable[[Target, Counter[str]], None]:
    """Twenty at once of the dearest permitted request to an address."""

    def attack(target: Target, answers: Counter[str]) -> None:
        step = permitted(target, DEAREST[name])
        addresses = [address(DEAREST[name], target.names, step) for _ in range(AT_ONCE)]
        ask_all(target, [partial(_get, path) for path in addresses], answers, known=known)

    return attack


def plain_questions(target: Target, answers: Counter[str]) -> None:
    """Twenty at once to every other address, one address after the other."""
    addresses = [
        address(text, target.names) for name, text in DEAREST.items() if name not in COMPUTED
    ]
    ask_all(target, [partial(_get, path) for path in addresses for _ in range(AT_ONCE)], answers)


def _get(path: str, client: httpx.Client) -> httpx.Response:
    return client.get(path)


def computed() -> Iterator[str]:
    """The addresses whose answers are computed."""
    yield from COMPUTED
