"""Whatever is sent, the API answers as it says it does (case A29)."""

from __future__ import annotations

import os
import sys

import pytest

from runs.models import ApiToken
from tests.web.fuzzing import Fuzzer, World
from tests.web.worlds import add_qrels, make_collection, make_people, make_runs, make_session_set, run_ids

CASES = int(os.environ.get("EVALHUB_TEST_API_CASES", "2000"))
SEED = int(os.environ.get("EVALHUB_TEST_API_SEED", "1"))


@pytest.fixture
def world(db: None) -> World:
    people = make_people()
    for slug, blind in (("one", False), ("dark", True)):
        add_qrels(people, make_collection(people, slug, blind=blind))
        make_runs(people, slug)
    sets = [make_session_set(people, slug) for slug in ("one", "dark")]
    runs = [*run_ids("one"), *run_ids("dark")]
    spare, _ = ApiToken.objects.issue(user=people.users["owner"], name="spare")
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
    }
    return World(people, names)


@pytest.mark.slow
def test_no_request_made_from_the_description_breaks_anything(world: World) -> None:
    tally = Fuzzer(world).run(CASES, SEED)
    sys.stdout.write(f"{tally}\n")
    assert not tally.faults, "\n".join(tally.faults[:40])
