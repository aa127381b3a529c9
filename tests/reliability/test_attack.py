"""The tables of `make attack` and `make damage`: every address has its dearest request, and what is wrong counts so."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.attack.__main__ import MEMORY, Row, attacks
from tests.attack.questions import COMPUTED, DEAREST, address
from tests.attack.watching import PAUSES, Seen
from tests.damage.judging import COUNT, LESS, REFUSED, SAME, TEXT, TRACEBACK, WRONG, judge
from tests.damage.kinds import KINDS
from tests.damage.world import Answer
from tests.reliability.servers import ROOT, clean_environment
from tests.web.access.addresses import ADDRESSES

NAMES = {
    "collection": "board",
    **dict.fromkeys(("run", "other", "large", "set", "comparison"), "id"),
}
BOARD = {"ranked": 2, "results": [
    {"run": {"id": "a", "tag": "x"}, "rank": 1, "state": "ranked", "lines": 9, "values": {"AP": {"mean": 0.5}}},
    {"run": {"id": "b", "tag": "y"}, "rank": 2, "state": "ranked", "lines": 9, "values": {"AP": {"mean": 0.25}}},
]}  # fmt: skip


def test_every_address_that_is_read_has_its_dearest_request() -> None:
    assert set(DEAREST) == {name for name, address in ADDRESSES.items() if "GET" in address.methods}
    for name in COMPUTED:
        first, again = (address(DEAREST[name], NAMES) for _ in range(2))
        assert first != again, "what is asked for twice may be remembered"
        # Longer than that a server may refuse by its length alone.
        assert len(first) < 4000


def test_a_broken_limit_is_told() -> None:
    seen = Seen(dict(zip(PAUSES, (0.9, 1.9), strict=True)), 9, [], {"web": MEMORY["web"]})
    assert Row("kept", seen, Counter({"400 bad_filter": 3}), 1.0, 0.0, MEMORY).broken == []
    late = Seen(
        dict(zip(PAUSES, (1.1, 2.1), strict=True)),
        9,
        ["/healthz: ReadTimeout"],
        {"web": MEMORY["web"] + 1},
    )
    assert len(Row("late", late, Counter({"500 server_error": 1}), 1.0, 0.0, MEMORY).broken) == 5
    assert len(attacks()) > 2 * len(COMPUTED)


def changed(**row: object) -> bytes:
    """The board with another first row."""
    return json.dumps(
        {**BOARD, "results": [{**BOARD["results"][0], **row}, BOARD["results"][1]]}
    ).encode()  # type: ignore[index]


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (Answer(200, json.dumps(BOARD).encode()), SAME),
        (Answer(500, b'{"code": "stored_value_corrupt"}'), REFUSED),
        (Answer(500, b'{"code": "server_error"}'), TRACEBACK),
        (Answer(500, b"<h1>Server Error</h1>"), TRACEBACK),
        (Answer(0, b""), REFUSED),
        (Answer(404, b"{}"), LESS),
        (Answer(200, json.dumps({"ranked": 1, "results": [{**BOARD["results"][1], "rank": 1}]}).encode()), LESS),  # type: ignore[index,dict-item]
        (Answer(200, changed(state="queued", rank=None, values={})), LESS),
        (Answer(200, changed(run={"id": "a", "tag": "z"})), TEXT),
        (Answer(200, changed(lines=8)), COUNT),
        (Answer(200, changed(values={"AP": {"mean": 0.5000001}})), WRONG),
    ],
)  # fmt: skip
def test_a_wrong_number_is_told_from_a_missing_one(answer: Answer, verdict: str) -> None:
    assert judge(answer, Answer(200, json.dumps(BOARD).encode())) == verdict


def test_every_kind_of_damage_has_a_name_of_its_own() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)


def test_an_installation_is_damaged_and_repaired(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.damage", "--only", "a vector is gone", "--flips", "1"]
    environment = clean_environment(tmp_path)
    done = subprocess.run(
        command, env=environment, cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"a vector is gone +same +vector_missing +yes", done.stdout)
    assert "damage: 1 kinds, 0 with a fault; " in done.stdout
