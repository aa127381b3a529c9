"""Damage an installation of our own in every way, and see that nothing wrong is shown, and what fsck finds and repairs.

python -m tests.damage --flips 2000

First every kind of damage by itself: whether reading notices it, what `evalhub fsck` says, and
whether its repair and a worker make everything as it was. Then single bits, flipped one after
another in every stored kind. The exit status is 1 where a wrong number is shown, a traceback is
left, or a damage is not found.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import tempfile
import time
from pathlib import Path

# First: it names the data folder before Django asks for it.
import tests.environment  # noqa: F401  # isort: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--flips", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="kinds of damage with this text in their name")
    arguments = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
    import django

    django.setup()
    from django.conf import settings

    from tests.damage.flips import flip_all
    from tests.damage.trials import damage_all
    from tests.damage.world import World

    settings.ALLOWED_HOSTS = ["testserver"]
    logging.disable(logging.CRITICAL)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="evalhub-damage-") as folder:
        world = World(Path(settings.EVALHUB_DATA), Path(folder) / "sound")
        rows = damage_all(world, arguments.only)
        flips = (
            flip_all(world, arguments.flips, random.Random(arguments.seed))
            if arguments.flips
            else []
        )
    total = sum(row.flips for row in flips)
    wrong = [text for row in flips for text in row.wrong]
    for text in [*(fault for row in rows for fault in row.faults), *wrong[:20]]:
        sys.stdout.write(f"fault: {text}\n")
    faulty = sum(bool(row.faults) for row in rows)
    sys.stdout.write(
        f"damage: {len(rows)} kinds, {faulty} with a fault; {total} flipped bits, {len(wrong)} answers wrong or with a "
        f"traceback; {time.monotonic() - start:.0f} s\n"
    )
    sys.exit(bool(faulty or wrong))


if __name__ == "__main__":
    main()
