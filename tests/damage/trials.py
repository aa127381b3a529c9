"""One damage after another: whether reading notices it, what fsck says, and what its repair makes of it."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, field

from django.db import DatabaseError

from tests.conftest import evaluate_all
from tests.damage.judging import ORDER, SAME, TRACEBACK, WRONG, judge
from tests.damage.kinds import KINDS, Kind
from tests.damage.world import ANSWERS, World

_FINDING = re.compile(r"^(?:repaired )?(?:wrong|note) (\w+):", re.MULTILINE)
# Values are made again in one round, what depends on them in the next.
_ROUNDS = 3


@dataclass
class Row:
    """What became of one kind of damage."""

    name: str
    read: str = SAME
    refusals: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    repaired: str = "no"
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        mark = "FAULT " if self.faults else ""
        codes = ", ".join(f"{count} x {code}" for code, count in self.refusals.items())
        return f"{mark + self.name:46} {self.read:14} {', '.join(self.findings) or 'nothing':44} {self.repaired:9} {codes}"


def damage_all(world: World, chosen: str) -> list[Row]:
    """Try every kind whose name has the chosen text in it, and print what became of it."""
    rows = []
    sys.stdout.write(
        f"{'damage':46} {'read':14} {'found by fsck':44} {'repaired':9} refused when read\n"
    )
    for kind in KINDS:
        if chosen in kind.name:
            rows.append(try_kind(world, kind))
            sys.stdout.write(f"{rows[-1]}\n")
            sys.stdout.flush()
    return rows


def try_kind(world: World, kind: Kind) -> Row:
    """Damage, look with fsck, read everything; then the same damage, repair, work, and read again."""
    row = Row(kind.name)
    _damage(world, kind)
    process = world.command("fsck")
    findings = dict.fromkeys(_FINDING.findall(process.stdout))
    # Of another installation on this machine.
    findings.pop("abandoned_folder", None)
    row.findings = list(findings) or (["a sentence"] if process.returncode else [])
    if "Traceback" in process.stdout + process.stderr:
        row.faults.append(f"{kind.name}: fsck ends in a traceback")
    if not row.findings:
        row.faults.append(f"{kind.name}: fsck finds nothing")
    _damage(world, kind)
    for name in ANSWERS:
        answer = world.ask(name)
        verdict = judge(answer, world.sound[name])
        row.read = max(row.read, verdict, key=ORDER.index)
        if answer.status >= 400:
            row.refusals[f"{answer.status} {answer.code}".strip()] += 1
        if verdict == TRACEBACK or (verdict == WRONG and not kind.decides):
            row.faults.append(f"{kind.name}: {name} is {verdict}")
    _damage(world, kind)
    row.repaired = _repair(world, row, kind)
    if kind.repaired and row.repaired != "yes":
        row.faults.append(f"{kind.name}: it is not repaired")
    _sound(world)
    return row


def _repair(world: World, row: Row, kind: Kind) -> str:
    for _ in range(_ROUNDS):
        process = world.command("fsck", "--repair")
        if "Traceback" in process.stdout + process.stderr:
            row.faults.append(f"{kind.name}: fsck --repair ends in a traceback")
        try:
            evaluate_all()
            world.compare_all()
        except DatabaseError:
            return "no"
        if process.returncode == 0 and "repaired" not in process.stdout:
            break
    verdicts = {name: judge(world.ask(name), world.sound[name]) for name in ANSWERS}
    worst = max(verdicts.values(), key=ORDER.index)
    if worst == TRACEBACK or (worst == WRONG and not kind.decides):
        row.faults += [f"{kind.name}: {name} is {verdict} after the repair" for name, verdict in verdicts.items()
                       if verdict == worst]  # fmt: skip
    return (
        "yes" if worst == SAME and process.returncode == 0 else "in part" if worst == SAME else "no"
    )


def _damage(world: World, kind: Kind) -> None:
    _sound(world)
    kind.do(world)
    world.close()


def _sound(world: World) -> None:
    world.put_back()
    world.put_files_back()
