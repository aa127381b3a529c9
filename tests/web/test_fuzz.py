"""Whatever is sent, the API answers as it says it does (case A29)."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from django.db import connection

from metrics.engine.measures.grammar import parse_measure
from metrics.services.comparisons.comparison import ComparisonQuery
from metrics.services.comparisons.stored import queue_comparison
from runs.models import ApiToken, Run, Team
from tests.conftest import QRELS, upload
from tests.metrics.boards import describe, make_board, simulated
from tests.web.worlds import (
    add_qrels,
    make_artifact,
    make_campaign,
    make_collection,
    make_comparison,
    make_delivery,
    make_experiment,
    make_label,
    make_note,
    make_people,
    make_runs,
    make_session_set,
    make_share,
    make_system,
    make_view,
    run_ids,
)

# Takes two seconds to load, which the processes that only look for tests are spared.
if TYPE_CHECKING:
    from tests.web.fuzzing import World

# Of those made up, most are made on SQLite.
CASES = int(os.environ.get("EVALHUB_TEST_API_CASES", "120"))
ON_POSTGRESQL = CASES // 5
SEED = int(os.environ.get("EVALHUB_TEST_API_SEED", "1"))

# Addresses with the parameters that fill every part of their answers, which requests made by chance
# seldom do.
WHOLE_ANSWERS = (
    ("collections/{collection}/leaderboard/", {}),
    (
        "collections/{collection}/leaderboard/",
        {"measures": "nDCG@10,ASL", "statistics": "intervals", "limit": "1"},
    ),
    ("collections/large/leaderboard/", {"statistics": "all", "baseline": "{ranked}"}),
    ("collections/{collection}/what-if/", {"preset": "impatient,patient"}),
    ("collections/{collection}/difference/", {"runs": "{run},{other}", "measure": "ASL"}),
    ("collections/{collection}/values/", {"measures": "AP,ASL"}),
    (
        "collections/{collection}/curves/",
        {"measures": "DCG,nDCG,R", "readings": "true", "ranks": "1,5,20"},
    ),
    ("collections/{collection}/curves/", {"runs": "{run},{other}", "measures": "CG", "depth": "5"}),
    (
        "collections/{collection}/precision-recall/",
        {"rel": "all", "level": "1", "interp": "interval"},
    ),
    ("collections/{collection}/judgements/", {}),
    ("collections/{collection}/judgements/", {"qrels": "1,2"}),
    ("collections/{collection}/difficulty/", {"measure": "ASL", "sort": "disagreement"}),
    ("collections/{collection}/topic/", {"topic": "1"}),
    ("collections/{collection}/evaluations/", {}),
    ("collections/{collection}/parameters/", {}),
    ("collections/{collection}/configurations/", {"runs": "{run},{other}", "baseline": "{other}"}),
    (
        "collections/{collection}/configurations/export/csv/",
        {"runs": "{run},{other}", "baseline": "{other}"},
    ),
    ("collections/{collection}/labels/", {}),
    ("collections/{collection}/labels/main/", {}),
    ("collections/{collection}/views/", {}),
    ("collections/{collection}/leaderboard/", {"view": "{view}"}),
    ("views/{view}/", {}),
    ("shares/", {}),
    ("collections/{collection}/citation/", {"sort": "AP"}),
    ("collections/{collection}/notes/", {}),
    ("runs/{run}/notes/", {}),
    ("experiments/", {}),
    ("experiments/{experiment}/", {}),
    ("experiments/{experiment}/notes/", {}),
    ("campaigns/", {}),
    ("campaigns/cup-one/", {}),
    ("campaigns/cup-one/config/", {"format": "yaml"}),
    ("campaigns/cup-one/notices/", {}),
    ("campaigns/cup-one/outbox/", {}),
    ("campaigns/cup-one/audit/", {"phase": "task", "team": "guests", "action": "entry.made"}),
    ("campaigns/cup-one/phases/", {}),
    ("campaigns/cup-one/phases/task/", {}),
    ("campaigns/cup-one/teams/", {}),
    ("campaigns/cup-one/teams/guests/", {}),
    ("campaigns/cup-one/teams/guests/members/", {}),
    ("campaigns/cup-one/agreements/", {}),
    ("campaigns/cup-one/phases/task/entries/", {}),
    ("campaigns/cup-one/phases/task/allowance/", {"team": "guests"}),
    ("campaigns/cup-one/phases/task/releases/", {}),
    (
        "campaigns/cup-one/phases/task/board/",
        {"view": "all", "role": "competing", "statistics": "intervals"},
    ),
    ("campaigns/cup-one/phases/task/results/", {"team": "guests", "reference": "best_of_team"}),
    ("campaigns/cup-one/snapshots/", {}),
    ("snapshots/{snapshot}/", {}),
    ("snapshots/{snapshot}/archive/", {}),
    ("entries/{entry}/", {}),
    ("me/runs/", {}),
    ("me/runs/withdrawn/", {}),
    ("runs/", {"id": "{run},{other}"}),
    ("runs/{run}/history/", {}),
    ("runs/{run}/artifacts/", {}),
    ("systems/", {"collection": "large"}),
    ("systems/lab/dense/", {}),
    ("runs/{run}/parents/", {}),
    ("runs/{run}/tree/", {}),
    ("runs/{run}/links/", {}),
    ("me/", {}),
    ("runs/{run}/values/", {"measures": "nDCG@10,ASL,NormRecall(documents=99)"}),
    (
        "runs/{run}/curve/",
        {"measures": "DCG,nDCG,P(relative=True)", "readings": "true", "per_topic": "true"},
    ),
    ("runs/{run}/precision-recall/", {"rel": "all", "per_topic": "true"}),
    ("runs/{run}/ranking/", {"topic": "1"}),
    ("runs/{run}/evaluations/", {}),
    ("measures/", {}),
    ("measures/NormRecall/", {}),
    (
        "collections/large/comparison/",
        {"tests": "paired_t,sign,nemenyi", "measures": "AP,P@10", "limit": "3"},
    ),
    ("collections/large/comparison/", {"baseline": "{ranked}", "tests": "randomised_tukey_hsd"}),
    ("comparisons/{made}/", {}),
    ("comparisons/{waiting}/", {}),
    ("collections/large/design/", {"measures": "AP"}),
    ("collections/large/orders/", {"measures": "AP,P@10"}),
    ("collections/described/importance/", {"measure": "AP"}),
    ("collections/described/frontier/", {"y": "AP", "across": "true"}),
    ("collections/{collection}/session-leaderboard/", {}),
    ("collections/{collection}/session-leaderboard/", {"statistics": "all", "baseline": "A"}),
    ("collections/{collection}/session-comparison/", {"design": "unpaired", "measure": "sDCG"}),
    ("session-sets/{set}/values/", {"limit": "2"}),
    ("session-sets/{set}/curves/", {"per_session": "true"}),
    ("session-sets/{set}/queries/", {}),
    ("session-sets/{set}/lengths/", {}),
    ("session-sets/{set}/searchers/", {"by": "system"}),
    ("session-sets/{set}/evaluations/", {}),
    ("session-sets/{set}/sessions/1/", {}),
    ("collections/{collection}/webhooks/", {}),
    ("webhooks/{webhook}/", {}),
    ("webhooks/{webhook}/deliveries/", {}),
)


@pytest.fixture
def world(db: None) -> World:
    from tests.web.fuzzing import World

    people = make_people()
    for slug, blind in (("one", False), ("dark", True)):
        add_qrels(people, make_collection(people, slug, blind=blind))
        make_runs(people, slug)
    sets = [make_session_set(people, slug) for slug in ("one", "dark")]
    runs = [*run_ids("one"), *run_ids("dark")]
    spare, _ = ApiToken.objects.issue(user=people.users["owner"], name="spare")
    delivery = make_delivery("one")
    names = {
        "collection": ["one", "one", "dark"],
        "run": runs,
        "session_set": [sets[0], *sets],
        "sets": sets[:1],
        "session": ["s1", "2", "s9"],
        "systems": ["A,B"],
        "judged_by": ["topic", "session"],
        "runs": [runs[0], ",".join(runs[:2])],
        "baseline": runs[:1],
        "version": ["1", "2"],
        "qrels": ["1"],
        "measure": ["AP", "nDCG@10", "DCG", "P", "sDCG", "nsDCG(figure='avgpos')@3"],
        "measures": ["AP", "nDCG@10,P@3", "DCG", "sDCG,Query(of='AP')"],
        "team": ["lab", "guests", "others"],
        "username": ["member", "participant", "other"],
        "key": [spare.key],
        "webhook": [str(delivery.webhook_id)],
        "delivery": [str(delivery.pk)],
        "label": [make_label(runs[0])],
        "code": [make_view("one"), make_view("dark")],
        "share": [make_share(people, "one")[0].key],
        "artifact": [make_artifact(people, runs[0]), "another.txt"],
        "experiment": [make_experiment(runs[0])],
        "note": [make_note(people, runs[0])],
        "system": [make_system()],
        **{name: [value] for name, value in make_campaign(people, "one", runs[0]).items()},
    }
    return World(people, names)


@pytest.mark.slow
def test_no_request_made_from_the_description_breaks_anything(world: World) -> None:
    from tests.web.fuzzing import Fuzzer

    tally = Fuzzer(world).run(CASES if connection.vendor == "sqlite" else ON_POSTGRESQL, SEED)
    sys.stdout.write(f"{tally}\n")
    assert not tally.faults, "\n".join(tally.faults[:40])


def test_whole_answers_have_the_fields_of_their_description_and_no_others(world: World) -> None:
    from tests.web.fuzzing import Fuzzer

    board = make_board(
        Team.objects.get(slug="lab"),
        {"AP": simulated(5, 12), "P@10": simulated(5, 12, seed=6)},
        "large",
    )
    models = ["a", "b", "a"] * 4
    apart = simulated(12, 12) + np.array([0.5 * (model == "b") for model in models])[:, None]
    described = make_board(Team.objects.get(slug="lab"), {"AP": apart}, "described")
    costs = [
        {"ms": {"value": 2 + place, "low": 1 + place, "high": 3 + place, "n": 5}}
        for place in range(12)
    ]
    describe(
        described,
        [{"model": model, "k": 1 + place % 2} for place, model in enumerate(models)],
        costs,
    )
    run, other = run_ids("one")
    waiting = queue_comparison(collection=board, query=ComparisonQuery([parse_measure("P@10")]))
    names = {
        "collection": "one",
        "run": run,
        "other": other,
        "ranked": Run.objects.filter(collection=board)[0].pk,
        "made": make_comparison("one"),
        "waiting": waiting.pk,
        "set": world.names["session_set"][0],
        "webhook": world.names["webhook"][0],
        "view": world.names["code"][0],
        "experiment": make_experiment(run),
        "entry": world.names["entry"][0],
        "snapshot": world.names["snapshot"][0],
    }
    second = upload(
        world.people.api["owner"], "collections/one/qrels/", QRELS + "9 0 a 1\n", activate="false"
    )
    assert second.status_code == 201
    fuzzer = Fuzzer(world)
    for path, query in WHOLE_ANSWERS:
        parameters = {name: text.format(**names) for name, text in query.items()}
        fuzzer.ask(f"/api/v1/{path.format(**names)}", parameters, "staff")
    assert not fuzzer.tally.faults, "\n".join(fuzzer.tally.faults)
    assert fuzzer.tally.answers == {200: len(WHOLE_ANSWERS)}
