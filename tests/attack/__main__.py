"""Attack a service of our own while somebody else asks it, and measure what the other one notices.

python -m tests.attack --on sqlite

Attacks one after another: slow clients, texts that are slow to read, the dearest permitted
requests, the largest permitted files, hostile archives. All the while a process of its own asks
/healthz every 100 ms and a leaderboard every 250 ms, and weighs the processes. Prints a row for
each attack; the exit status is 1 where a limit below is broken.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.attack import files, questions, slow, texts
from tests.attack.target import Target, target_on
from tests.attack.watching import PAUSES, QUIET_SECONDS, Seen, Watch

# Seconds; megabytes of a process by its role, as docs/operations.md promises them.
HEALTH_SECONDS, BOARD_SECONDS = 1.0, 2.0
MEMORY = {"web": 250, "worker": 1024, "supervisor": 150}
# A process that reads or evaluates the largest file, or answers four of the dearest questions at
# once.
BUSY_MEMORY = {**MEMORY, "web": 900, "worker": 1500}
Attack = Callable[[Target, Counter[str]], None]


@dataclass
class Row:
    """What became of an attack."""

    name: str
    seen: Seen
    answers: Counter[str]
    seconds: float
    after: float
    memory: dict[str, int] = field(default_factory=dict)

    @property
    def broken(self) -> list[str]:
        """The limits that were not kept."""
        problems = [
            f"{path} took {took:.1f} s"
            for (path, took), most in zip(
                self.seen.slowest.items(), (HEALTH_SECONDS, BOARD_SECONDS), strict=True
            )
            if took >= most
        ]
        problems += [
            f"{role} had {size} MB"
            for role, size in self.seen.memory.items()
            if size > self.memory.get(role, size)
        ]
        problems += [
            f"{count} x {text}" for text, count in Counter(self.seen.failed).most_common(3)
        ]
        problems += [f"{code}" for code in self.answers if code.startswith("500")]
        return problems

    def __str__(self) -> str:
        health, board = self.seen.slowest.values()
        memory = " ".join(f"{role} {size}" for role, size in sorted(self.seen.memory.items()))
        answers = ", ".join(f"{count} x {code}" for code, count in self.answers.most_common(6))
        after = f", busy for {self.after:.0f} s more" if self.after > 5 else ""
        mark = "BROKEN " if self.broken else ""
        return f"{mark}{self.name:42} {health:6.2f} {board:6.2f}  {memory:40} {self.seconds:5.0f}  {answers}{after}"


def attacks() -> dict[str, tuple[Attack, dict[str, int]]]:
    """Every attack by its name, and how large processes may grow meanwhile."""
    by_name: dict[str, tuple[Attack, dict[str, int]]] = {
        "nothing": (_nothing, MEMORY),
        "200 slow senders": (slow.slow_senders, MEMORY),
        "50 slow readers of a large file": (slow.slow_readers, MEMORY),
        "200 idle connections": (slow.idle, MEMORY),
        "3,900 commas and the like": (texts.hostile_texts, MEMORY),
        "hostile JSON": (files.hostile_json, MEMORY),
        "hostile archives": (files.hostile_archives, BUSY_MEMORY),
    }
    by_name |= {
        f"the largest file: {kind}": (files.largest(kind), BUSY_MEMORY) for kind in files.LARGEST
    }
    by_name["every plain address"] = questions.plain_questions, BUSY_MEMORY
    for name in questions.computed():
        for known, who in ((True, "one account"), (False, "nobody")):
            by_name[f"{name}, 20 of {who}"] = questions.questions(name, known=known), BUSY_MEMORY
    return by_name


def _nothing(target: Target, answers: Counter[str]) -> None:
    time.sleep(5)


def run_attacks(target: Target, chosen: str) -> list[Row]:
    """Run those whose name has the chosen text in it, and print a row for each."""
    rows = []
    watch = Watch(target.server.url, [process.pid for process in target.server.processes])
    try:
        for name, (attack, memory) in attacks().items():
            if chosen not in name:
                continue
            answers: Counter[str] = Counter()
            start = time.monotonic()
            with watch.watching() as seen:
                attack(target, answers)
                # A second more, for what begins when the last request has been read.
                time.sleep(1)
                took = time.monotonic() - start
                # What was sent is evaluated meanwhile.
                after = watch.wait_until_quiet()
            if after >= QUIET_SECONDS:
                # Comparisons of an account wait for each other, and would be made during all
                # attacks that follow.
                target.forget_comparisons()
                watch.wait_until_quiet()
            rows.append(Row(name, seen, answers, took, after, memory))
            sys.stdout.write(f"{rows[-1]}\n")
            sys.stdout.flush()
    finally:
        watch.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--on", choices=("sqlite", "services"), default="sqlite")
    parser.add_argument("--only", default="", help="attacks with this text in their name")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--megabytes", type=int, default=20, help="of the large run file")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="size of the largest files: 0.01 is a hundredth"
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="how long slow clients go on")
    arguments = parser.parse_args()
    sizes = {
        "runs": arguments.runs,
        "megabytes": arguments.megabytes,
        "scale": arguments.scale,
        "seconds": arguments.seconds,
    }
    sys.stdout.write(f"filling a service on {arguments.on} with {arguments.runs} runs\n")
    with target_on(arguments.on, **sizes) as target:
        sys.stdout.write(
            f"{'attack':42} {'health':>6} {'board':>6}  {'peak memory, MB':40} {'took':>5}  answers; seconds\n"
        )
        rows = run_attacks(target, arguments.only)
    broken = [(row, row.broken) for row in rows if row.broken]
    for row, limits in broken:
        sys.stdout.write(f"broken by {row.name}: {'; '.join(limits)}\n")
    slowest = [
        max((list(row.seen.slowest.values())[index] for row in rows), default=0.0)
        for index in range(len(PAUSES))
    ]
    sys.stdout.write(
        f"attack on {arguments.on}: {len(rows)} attacks, slowest /healthz {slowest[0]:.2f} s, slowest leaderboard "
        f"{slowest[1]:.2f} s, {len(broken)} with a broken limit\n"
    )
    sys.exit(bool(broken) or not rows)


if __name__ == "__main__":
    main()
