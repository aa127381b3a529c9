"""The runs of a phase as a table for the overview paper."""

from __future__ import annotations

from metrics.engine.significance.families import USUAL_RULE, USUAL_TEST
from metrics.exports.boards.words import best_of_runs
from metrics.exports.comparisons.table import MeanCell, MeanLine, MeanTable
from metrics.exports.comparisons.words import TEST_NAMES
from metrics.services.campaigns.editions import Edition
from metrics.services.campaigns.official import placed_entries, tiers_of
from metrics.services.campaigns.reference import EntryValues
from metrics.tables import NOTHING, mean_cell
from runs.models import Entry, Participation
from runs.services.campaigns.names import hidden_tag, shown_names

_ROLES = {Entry.Role.BASELINE: "baseline", Entry.Role.OUT_OF_COMPETITION: "out of competition"}


def overview_table(edition: Edition, read: EntryValues, reader: Participation) -> MeanTable:
    """Return the official runs, best first by the primary measure, with baselines at their places without a rank.

    Names of other teams than the reader's are those of the moment of the edition: a packet stays as it was made.
    """
    phase = edition.phase
    teams = phase.campaign.participations.select_related("team", "campaign")
    names_of = shown_names(phase, teams, reader, False, edition.at)
    places = placed_entries(read, edition.official)
    tiers = tiers_of(read, places)
    can_be_best = {row for row, tested in tiers.items() if tested.in_best_set}
    best = {
        measure.name: next(
            iter(sorted(_means(read, measure.name, places), reverse=not measure.lower_is_better)),
            None,
        )
        for measure in read.measures
    }
    lines, best_names = [], []
    for row, rank in places:
        entry, cells = read.entries[row], []
        for measure in read.measures:
            found = read.means[measure.name][read.evaluations[row]]
            top = best[measure.name]
            cell = mean_cell(
                measure,
                found,
                read.qrels.topics,
                (top, found[1]) if rank and top is not None else None,
            )
            cells.append(MeanCell(cell.text, cell.best))
        name = names_of[entry.participation_id] if entry.participation_id else None
        team = name.name if name else _ROLES.get(Entry.Role(entry.role), "")
        tag = hidden_tag(entry) if name and name.hidden else entry.run.tag
        types = (entry.run_type,) if phase.run_types else ()
        tier = (str(tiers[row].tier) if row in tiers else NOTHING,) if tiers else ()
        place = str(rank) if rank else NOTHING
        marked = row in can_be_best and len(can_be_best) < len(tiers)
        line = MeanLine(f"{team}: {tag}", False, cells, (place,), (*types, *tier), marked)
        lines.append(line)
        if row in can_be_best:
            best_names.append(line.name)
    primary = read.measures[0]
    ranked = sum(rank is not None for _, rank in places)
    caption = [
        f"{phase.campaign.name}, {phase.name}: means of {ranked} official runs on {read.qrels.topics} topics (qrels "
        f"version {edition.qrels.version}).",
        f"Ranked by {primary.name}, {'lowest' if primary.lower_is_better else 'highest'} first; equal means share one.",
        "Baselines, runs out of competition and runs whose mean covers fewer topics have no rank.",
        "The best of each column is bold.",
    ]
    if best_names:
        caption.append(best_of_runs(best_names, len(tiers), USUAL_RULE.alpha))
    if tiers:
        caption.append(
            f"Runs of a tier do not differ significantly from its best one by {primary.name}; those of different tiers "
            f"may not either ({TEST_NAMES[USUAL_TEST]}, alpha = {USUAL_RULE.alpha:g})."
        )
    names = [measure.name for measure in read.measures]
    after = (*(("Type",) if phase.run_types else ()), *(("Tier",) if tiers else ()))
    return MeanTable(names, lines, caption, with_baseline=False, before=("Rank",), after=after)


def _means(read: EntryValues, name: str, places: list[tuple[int, int | None]]) -> list[float]:
    means = [read.means[name][read.evaluations[row]][0] for row, rank in places if rank]
    return [mean for mean in means if mean is not None]
