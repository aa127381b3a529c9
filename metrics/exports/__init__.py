"""EXPORTS: how the figures of runs are written. A new format is a renderer and a line here."""

from __future__ import annotations

from metrics.exports import trec_eval
from metrics.exports.sheet import Render
from metrics.exports.values import records

EXPORTS: dict[str, Render] = {
    "trec_eval": trec_eval.render,
    "tsv": records.render_tsv,
    "json": records.render_json,
}
