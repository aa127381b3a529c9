"""The site that the browser's tests and the screenshots look at: an open collection and a blind one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx

from evalhub.operating.simulation import simulate_collection
from tests.browser.states import SLUG, STATES
from tests.reliability.servers import (
    Server,
    embedded_server,
    wait_until_compared,
    wait_until_evaluated,
)

_MEASURES = ["nDCG@10", "AP", "RR", "P@10"]
_LABELS = {"0": "not relevant", "1": "marginal", "2": "fair", "3": "high"}
_RUNS = 4
ADMIN, PASSWORD = "root", "a long passphrase"
_OF_DESK = ("teams", "entries", "enter", "agreements", "settings", "notices", "audit")
# Of the account whose token fills the site.
TEAM = "admin"


@dataclass(frozen=True)
class Site:
    """Where the server is, the ids of its runs by tag, a topic of theirs, the ids of a session set, a comparison and an
    experiment, and of runs by state."""

    server: Server
    runs: dict[str, str]
    topic: str
    sample: bytes
    session_set: str
    comparison: str
    experiment: str
    states: dict[str, str]

    @property
    def url(self) -> str:
        return self.server.url

    def pages(self) -> dict[str, str]:
        """Every page that needs no login, by name."""
        run, other = list(self.runs.values())[:2]
        return {
            "home": "/",
            "collections": "/collections/",
            "leaderboard": "/collections/open/",
            "leaderboard-columns": "/collections/open/?columns=param:bm25.k1,param:model,cost:latency_ms&"
            "arrange=-param:bm25.k1",
            "leaderboard-best": "/collections/open/?versions=best",
            "system": f"/systems/{TEAM}/bm25/",
            "parameters": "/collections/open/parameters/",
            "saved-views": "/collections/open/views/",
            "no-parameters": "/collections/empty/parameters/",
            "configurations": f"/collections/open/configurations/?baseline={other}",
            "no-configurations": "/collections/empty/configurations/",
            "run-since": f"/runs/{run}/parameters/?baseline={other}",
            "importance": "/collections/open/parameters/importance/",
            "frontier": "/collections/open/frontier/?x=latency_ms",
            "no-frontier": "/collections/empty/frontier/",
            "comparison": "/collections/open/comparison/",
            "comparison-baseline": f"/collections/open/comparison/?baseline={other}&tests=paired_t&tests=sign",
            "comparison-kinds": "/collections/open/comparison/?tests=conover&tests=tukey_hsd&measures=AP,RR",
            "comparison-curves": "/collections/open/comparison/?curve=DCG&ranks=5,10,20&interp=interval&rel=2",
            "two-runs": f"/collections/open/comparison/?runs={run}&runs={other}&topic={self.topic}",
            "long-comparison": "/collections/open/comparison/?tests=randomised_tukey_hsd&resamples=5000000",
            "stored-comparison": f"/comparisons/{self.comparison}/",
            "no-comparison": "/collections/empty/comparison/",
            "blind-comparison": "/collections/blind/comparison/",
            "what-if": "/collections/open/what-if/?dis=jk&g3=10",
            "judgements": "/collections/open/judgements/",
            "topics": "/collections/open/topics/",
            "topic": f"/collections/open/topics/{self.topic}/",
            "blind-topics": "/collections/blind/topics/",
            "heat-map": "/collections/open/heat-map/?baseline=mean",
            "orders": "/collections/open/orders/",
            "design": "/collections/open/design/",
            "blind-judgements": "/collections/blind/judgements/",
            "blind": "/collections/blind/",
            "blind-what-if": "/collections/blind/what-if/",
            "empty": "/collections/empty/",
            "run": f"/runs/{run}/",
            "run-paired": f"/runs/{run}/topics/?other={other}",
            "run-curves": f"/runs/{run}/curves/?rel=all&measures=DCG",
            "run-made": f"/runs/{run}/parameters/",
            "run-files": f"/runs/{run}/files/",
            **{f"run-{state}": f"/runs/{known}/" for state, known in self.states.items()},
            "ranking": f"/runs/{run}/ranking/?topic={self.topic}",
            "sessions": "/collections/open/sessions/?measure=sDCG",
            "no-sessions": "/collections/empty/sessions/",
            "session-set": f"/session-sets/{self.session_set}/?measure=sDCG",
            "session": f"/session-sets/{self.session_set}/sessions/1/",
            "campaigns": "/campaigns/",
            "campaign": "/campaigns/cup/",
            "campaign-leaderboard": "/campaigns/cup/leaderboard/",
            "campaign-rules": "/campaigns/cup/rules/",
            "campaign-cite": "/campaigns/cup/cite/",
            "campaign-take-part": "/campaigns/cup/team/",
            "measures": "/measures/",
            "measures-none": "/measures/?search=zzzz",
            "measure": "/measures/nDCG/",
            "login": "/login/",
            "not-found": "/nowhere/",
        }

    def own_pages(self) -> dict[str, str]:
        """Those that need one; what is submitted by tests is not on the board that others look at."""
        run = next(iter(self.runs.values()))
        manage = "/collections/open/manage/"
        sections = (
            "topics", "judgements", "documents", "measures", "access", "quota", "withdrawn", "audit",
        )  # fmt: skip
        return {
            "submit": f"/collections/{SLUG}/submit/",
            "tokens": "/tokens/",
            "own-views": "/collections/open/views/",
            "share": "/shares/?kind=leaderboard&collection=blind",
            "shares": "/shares/",
            "webhooks": "/collections/open/webhooks/",
            "run-parameters": f"/runs/{run}/parameters/edit/",
            "run-artifacts": f"/runs/{run}/files/edit/",
            "edit-parameters": "/collections/open/parameters/edit/",
            "new-collection": "/new-collection/",
            "submit-sessions": "/collections/open/submit-sessions/",
            "teams": "/teams/",
            "own-home": "/",
            "run-change": f"/runs/{run}/change/",
            "run-lineage": f"/runs/{run}/lineage/",
            "system-change": f"/systems/{TEAM}/bm25/change/",
            "new-campaign": "/new-campaign/",
            "campaign-desk": "/campaigns/cup/desk/",
            **{f"campaign-{name}": f"/campaigns/cup/desk/{name}/" for name in _OF_DESK},
            "campaign-snapshot": "/campaigns/cup/desk/snapshot/?phase=task",
            "campaign-file": "/campaigns/cup/desk/file/",
            "campaign-copy": "/campaigns/cup/desk/copy/",
            "campaign-new-phase": "/campaigns/cup/desk/new-phase/",
            "campaign-phase": "/campaigns/cup/desk/phases/task/",
            "campaign-act": "/campaigns/cup/acts/extend/?phase=task",
            "phase-board": "/campaigns/cup/phases/task/?view=all",
            "campaign-team": "/campaigns/cup/team/",
            "campaign-enter": "/campaigns/cup/team/task/",
            "manage": manage,
            **{f"manage-{section}": f"{manage}{section}/" for section in sections},
            "manage-blind": "/collections/blind/manage/access/",
            "my-runs": "/runs/",
            "experiments": f"/experiments/?runs={run}",
            "experiment": f"/experiments/{self.experiment}/",
            "run-notes": f"/runs/{run}/notes/",
        }


@contextlib.contextmanager
def filled_site(folder: Path) -> Iterator[Site]:
    """A server on a folder of its own, with four simulated runs evaluated."""
    with embedded_server(folder, EVALHUB_WEBHOOKS="on") as server, server.client() as api:
        simulated = simulate_collection()
        for slug in ("open", "blind", "empty"):
            fields = {
                "slug": slug,
                "name": f"The {slug} collection",
                "measures": _MEASURES,
                "level_labels": _LABELS,
            }
            api.post("collections/", json={**fields, "blind": slug == "blind"}).raise_for_status()
        _upload(api, "put", "collections/open/topics/", simulated.topics)
        _upload(api, "put", "collections/open/documents/", simulated.documents)
        for slug in ("open", "blind"):
            _upload(api, "post", f"collections/{slug}/qrels/", simulated.qrels)
        chosen = list(simulated.runs.items())[-_RUNS:]
        runs = {tag: _upload(api, "post", "collections/open/runs/", run) for tag, run in chosen}
        for number, sent in enumerate(runs.values()):
            metadata = {
                "bm25": {"k1": 0.6 + number % 3 / 5, "b": 0.4},
                "model": f"BM25-{number}",
                "stemmed": True,
            }
            description = {
                "metadata": metadata,
                "costs": {"latency_ms": {"value": 12.1, "low": 11, "high": 14, "n": 200}},
            }
            api.patch(sent["url"], json=description).raise_for_status()
        view = {
            "name": "Much k1",
            "query": "filter=param:bm25.k1>0.7&columns=param:bm25.k1",
            "scope": "collection",
        }
        api.post("collections/open/views/", json=view).raise_for_status()
        parents = [
            {"run": run["id"], "relation": "fused", "weight": 0.5}
            for run in list(runs.values())[1:3]
        ]
        api.put(
            f"{next(iter(runs.values()))['url']}parents/", json={"parents": parents}
        ).raise_for_status()
        api.post("systems/", json={"slug": "bm25", "name": "BM25"}).raise_for_status()
        versions = [run["id"] for run in list(runs.values())[:3]]
        api.patch(f"systems/{TEAM}/bm25/", json={"add": versions}).raise_for_status()
        log = _upload(api, "post", "collections/open/sessions/?tag=log", simulated.sessions)
        for sent in (*runs.values(), log):
            wait_until_evaluated(api, sent["url"])
        comparison, experiment = _compare(api), _group(api, [run["id"] for run in runs.values()])
        sample = chosen[0][1] if isinstance(chosen[0][1], bytes) else chosen[0][1].encode()
        topic = sample.split(maxsplit=1)[0].decode()
        states = _make_states(api, simulated.qrels, sample)
        _make_campaign(server, api, sample)
        ids = {tag: run["id"] for tag, run in runs.items()}
        yield Site(server, ids, topic, sample, log["id"], comparison, experiment, states)


def _make_states(api: httpx.Client, qrels: str, sample: bytes) -> dict[str, str]:
    """A run for each of STATES, in a collection of their own, stale until they are arranged."""
    fields = {"slug": SLUG, "name": "The collection of states", "measures": _MEASURES}
    api.post("collections/", json=fields).raise_for_status()
    _upload(api, "post", f"collections/{SLUG}/qrels/", qrels)
    runs = {
        tag: _upload(api, "post", f"collections/{SLUG}/runs/?tag={tag}", sample) for tag in STATES
    }
    for run in runs.values():
        wait_until_evaluated(api, run["url"])
    # Another version, one line shorter: what was evaluated becomes stale.
    _upload(api, "post", f"collections/{SLUG}/qrels/", qrels[: qrels.rindex("\n", 0, -1) + 1])
    for run in runs.values():
        wait_until_evaluated(api, run["url"])
    return {tag: run["id"] for tag, run in runs.items()}


def _make_campaign(server: Server, api: httpx.Client, sample: bytes) -> None:
    """The campaign `cup` on the blind collection, in which the account that looks takes part with two entries."""
    now = datetime.now(UTC)
    text = "# Task\n\nRank *all* topics.\n\n| field | means |\n| - | - |\n| score | larger is better |\n"
    fields = {
        "slug": "cup",
        "name": "The cup",
        "summary": "Find it",
        "guidelines": text,
        "registration": "approval",
    }
    api.post("campaigns/", json=fields).raise_for_status()
    choice = {
        "key": "stage",
        "label": "First stage",
        "type": "choice",
        "choices": ["BM25", "other"],
        "help": "What?",
    }
    kinds = [{"key": "automatic", "label": "Automatic"}, {"key": "manual", "label": "Manual"}]
    days = {"opens_at": -1, "closes_at": 9, "late_closes_at": 12}
    times = {name: (now + timedelta(days=number)).isoformat() for name, number in days.items()}
    phase = {
        "slug": "task",
        "name": "Task",
        "collection": "blind",
        "zone": "AoE",
        "slots": 3,
        "attempts_daily": 9,
    }
    of_runs = {"form": [choice], "run_types": kinds, "measures": _MEASURES}
    api.post("campaigns/cup/phases/", json={**phase, **times, **of_runs}).raise_for_status()
    terms = {"title": "Terms", "text": "Be **fair**."}
    sha256 = api.post("campaigns/cup/agreements/", json=terms).raise_for_status().json()["sha256"]
    api.post("campaigns/cup/publish/").raise_for_status()
    commands = f"make_account({ADMIN!r}, {PASSWORD!r}); arrange(); take_part({ADMIN!r}, {sha256!r})"
    code = f"from tests.browser.states import arrange, make_account, take_part; {commands}"
    server.manage("shell", "-v", "0", "-c", code)
    entry_fields = {
        "run_type": "automatic",
        "answers": json.dumps({"stage": "BM25"}),
        "on_behalf_of": ADMIN,
        "reason": "shown",
    }
    for tag in ("walk", "stroll"):
        file = sample.replace(sample.split(maxsplit=6)[5], tag.encode())
        sent = api.post(
            "campaigns/cup/phases/task/entries/",
            files={"file": ("run", file)},
            data={**entry_fields, "tag": tag},
        )
        sent.raise_for_status()
    later = {"closes_at": (now + timedelta(days=10)).isoformat(), "reason": "power cut"}
    api.post("campaigns/cup/phases/task/extend/", json=later).raise_for_status()


def _compare(api: httpx.Client) -> str:
    """The id of a comparison that the worker made."""
    query = {"tests": ["randomisation"], "measures": _MEASURES[:2]}
    comparison = (
        api.post("collections/open/comparison/", json=query).raise_for_status().json()["comparison"]
    )
    wait_until_compared(api, comparison["url"])
    return str(comparison["id"])


def _group(api: httpx.Client, runs: list[str]) -> str:
    """The id of an experiment with a baseline, of which there is a note, as there is of a run."""
    experiment = api.post(
        "experiments/", json={"slug": "study", "goal": "Which one?", "runs": runs[:3]}
    ).raise_for_status()
    url = experiment.json()["url"]
    api.patch(url, json={"baseline": runs[0]}).raise_for_status()
    for about in (url, f"runs/{runs[0]}/"):
        api.post(
            f"{about}notes/", json={"text": "The index was old: https://example.org/log"}
        ).raise_for_status()
    return str(experiment.json()["id"])


def _upload(api: httpx.Client, method: str, path: str, content: str | bytes) -> dict[str, str]:
    answer = api.request(method, path, files={"file": ("file", content)})
    payload: dict[str, str] = answer.raise_for_status().json()
    return payload
