"""The runs of a phase as a table for the overview paper."""

from __future__ import annotations

from evalhub.campaigns.services.official_board import placed_entries, tiers_of
from evalhub.campaigns.services.pseudonyms import hidden_tag, shown_names
from evalhub.campaigns.services.reference_sets import EntryValues
from evalhub.campaigns.services.versions import Edition
from metrics.engine.significance.families import USUAL_RULE, USUAL_TEST
from metrics.exports.boards.words import best_of_runs
from metrics.exports.comparisons.words import TEST_NAMES
from metrics.exports.table import Column, Row, Table
from metrics.tables import NOTHING, direction_of, figure, mean_cell
from runs.models import Entry, Participation

_ROLES = {Entry.Role.BASELINE: "baseline", Entry.Role.OUT_OF_COMPETITION: "out of competition"}


def overview_table(edition: Edition, values: EntryValues, reader: Participation) -> Table:
    """Return the official runs, best first by the primary measure; baselines have no rank.

    Other teams have the names that they had at the time of the edition: a packet stays as it was
    made.
    """
    phase = edition.phase
    teams = phase.campaign.participations.select_related("team", "campaign")
    names_of = shown_names(phase, teams, reader, False, edition.at)
    places = placed_entries(values, edition.official)
    tiers = tiers_of(values, places)
    can_be_best = {row for row, tested_tier in tiers.items() if tested_tier.in_best_set}

    # The best mean of the ranked runs by each measure.
    best: dict[str, float | None] = {}
    for measure in values.measures:
        means = [
            values.means[measure.name][values.evaluations[row]][0] for row, rank in places if rank
        ]
        defined = [mean for mean in means if mean is not None]
        ordered = sorted(defined, reverse=not measure.lower_is_better)
        best[measure.name] = ordered[0] if ordered else None

    rows, best_names = [], []

    for row, rank in places:
        entry, cells = values.entries[row], []
        for measure in values.measures:
            mean = values.means[measure.name][values.evaluations[row]]
            best_mean = best[measure.name]
            to_reach = None
            if rank and best_mean is not None:
                to_reach = (figure(measure, best_mean), mean[1])

            cells.append(mean_cell(measure, mean, values.qrels.topics, to_reach))

        name = names_of[entry.participation_id] if entry.participation_id else None
        team = name.name if name else _ROLES.get(Entry.Role(entry.role), "")
        tag = hidden_tag(entry) if name and name.hidden else entry.run.tag
        types = (entry.run_type,) if phase.run_types else ()
        tier = (tiers[row].tier if row in tiers else NOTHING,) if tiers else ()
        marked = row in can_be_best and len(can_be_best) < len(tiers)
        rows.append(Row([rank or NOTHING, f"{team}: {tag}", *cells, *types, *tier], marked=marked))
        if row in can_be_best:
            best_names.append(f"{team}: {tag}")

    primary = values.measures[0]
    ranked = sum(rank is not None for _, rank in places)
    caption = [
        f"{phase.campaign.name}, {phase.name}: means of {ranked} official runs on "
        f"{values.qrels.topics} topics ({edition.qrels.full_name}).",
        f"Ranked by {primary.name}, {'lowest' if primary.lower_is_better else 'highest'} first; "
        "equal means share one.",
        "Baselines, runs out of competition and runs whose mean covers fewer topics have no rank.",
        "The best of each column is bold.",
    ]
    if best_names:
        caption.append(best_of_runs(best_names, len(tiers), USUAL_RULE.alpha))

    if tiers:
        caption.append(
            f"Runs of a tier do not differ significantly from its best one by {primary.name}; "
            f"those of different tiers may not either ({TEST_NAMES[USUAL_TEST]}, alpha = {USUAL_RULE.alpha:g})."
        )

    columns = [
        Column("rank", "Rank"),
        Column("run", "Run", head=True),
        *(Column(measure.name, direction=direction_of(measure)) for measure in values.measures),
        *([Column("run_type", "Type")] if phase.run_types else []),
        *([Column("tier", "Tier")] if tiers else []),
    ]

    return Table(f"{phase.campaign.slug}-{phase.slug}", columns, rows, caption)
