"""The options of `evalhub eval`: trec_eval's, short and long, and those that EvalHub adds."""

from __future__ import annotations

import argparse
from functools import partial

from metrics.engine import ENGINE_VERSION
from metrics.engine.judgement.sampling import DESIGNS
from metrics.engine.measures.definition import MAX_LEVEL
from metrics.engine.trec_eval.table import VERSIONS
from metrics.exports import EXPORTS
from runs.formats.trec_qrels import ITERATIONS

_ANY_WIDTH = 80
_DESCRIPTION = """\
Evaluate runs in TREC's format as trec_eval does: same options, output byte-for-byte identical. QRELS and RUN are files,
plain or compressed with gzip or Zstandard, or - for standard input.
"""
_MEASURES = """\
measures (-m, any number of times):
  official              trec_eval's main measures (what is shown without -m); also: set, all_trec
  map  P  ndcg_cut ...  trec_eval's measures, with its parameters after a point:
                        P.5,10   ndcg_cut.10   iprec_at_recall.0.1   set_F.2   ndcg.1=3,2=9   utility.2,-1,0,0
  nDCG@10  AP(rel=2)    every measure of EvalHub, by any of its names, shown under the canonical one:
                        'nDCG(gains="exp")@10'   'RBP(p=0.8)'   'IPrec(rounding="exact")@0.1'

exit status: 0 all runs evaluated, 1 a file could not be evaluated, 2 wrong options

examples:
  evalhub eval qrels.txt bm25.run
  evalhub eval -q -c -m map -m ndcg_cut.10 qrels.txt bm25.run.gz dense.run.zst
  evalhub eval --format tsv -q -c -m nDCG@10 -m 'AP(rel=2)' qrels.txt runs/*.run
  zcat bm25.run.gz | evalhub eval -m P.5 --compat 9.0.8 qrels.txt -
"""


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options. Raise SystemExit after --help, or with status 2 after an error message."""
    return parser().parse_intermixed_args(arguments)


def parser() -> argparse.ArgumentParser:
    eval_parser = argparse.ArgumentParser(
        "evalhub eval", description=_DESCRIPTION, epilog=_MEASURES, allow_abbrev=False, add_help=False,
        usage="%(prog)s [-q] [-c] [-n] [-J] [-m MEASURE] [-l N] [-M N] [-N N] [-Z FILE] [more] "
              "QRELS RUN [RUN ...]",
        # Every option is tried on a formatter; the default one would import more to find the width of
        # the terminal.
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=_ANY_WIDTH),
    )  # fmt: skip

    eval_parser.add_argument(
        "qrels", metavar="QRELS", help="judgements: topic iteration document level"
    )
    eval_parser.add_argument(
        "runs", metavar="RUN", nargs="+", help="runs: topic Q0 document rank score tag"
    )
    _add_trec_eval_options(eval_parser)
    _add_own_options(eval_parser)
    eval_parser.formatter_class = argparse.RawDescriptionHelpFormatter

    return eval_parser


def _add_trec_eval_options(eval_parser: argparse.ArgumentParser) -> None:
    add = eval_parser.add_argument_group("trec_eval's options").add_argument
    add("-h", "--help", action="help", help="show this help and exit")
    add(
        "-v",
        "--version",
        action="version",
        version=f"evalhub eval, engine {ENGINE_VERSION}",
        help="show the version and exit",
    )

    add(
        "-q",
        "--query_eval_wanted",
        action="store_true",
        dest="by_topic",
        help="also print the values of each topic",
    )

    add(
        "-m",
        "--measure",
        action="append",
        metavar="MEASURE",
        dest="measures",
        help="a measure, see below",
    )

    add("-c", "--complete_rel_info_wanted", action="store_true", dest="complete",
        help="average over all topics of QRELS; one without results counts 0 instead of being left "
             "out")  # fmt: skip
    add("-l", "--level_for_rel", type=_number(0, MAX_LEVEL), default=1, metavar="N", dest="level",
        help="lowest level that counts as relevant (default 1)")  # fmt: skip
    add(
        "-n",
        "--nosummary",
        action="store_false",
        dest="summary",
        help="print no values over all topics",
    )

    add("-J", "--Judged_docs_only", action="store_true", dest="judged_only",
        help="leave documents that are unjudged, or judged at a level below 0, out before "
             "ranking")  # fmt: skip
    add("-M", "--Max_retrieved_per_topic", type=_number(1, 10**9), metavar="N", dest="depth",
        help="use the first N documents of each topic")  # fmt: skip
    add("-N", "--Number_docs_in_coll", type=_number(0, 10**12), default=0, metavar="N",
        dest="documents",
        help="number of documents in the collection, for measures that need it")  # fmt: skip
    add("-Z", "--Zscore", metavar="FILE", dest="scale",
        help="deviations from the means in FILE: topic measure mean deviation")  # fmt: skip

    for flags, only_format in (
        (("-R", "--Rel_info_format"), "qrels"),
        (("-T", "--Results_format"), "trec_results"),
    ):
        add(*flags, choices=[only_format], help=argparse.SUPPRESS)

    add("-o", "--Output_old_results_format", action="store_true", help=argparse.SUPPRESS)


def _add_own_options(eval_parser: argparse.ArgumentParser) -> None:
    add = eval_parser.add_argument_group("more").add_argument
    add("--compat", choices=VERSIONS, default="10",
        help="the version of trec_eval to follow (default 10); 9.0.8 compares scores as "
             "float32")  # fmt: skip
    add("--format", choices=list(EXPORTS), default="trec_eval",
        help="trec_eval's text (default), or run, measure, topic and value at full "
             "precision")  # fmt: skip
    add("--iteration", choices=ITERATIONS,
        help="what the second column of QRELS is, for measures of subtopics: subtopics, rounds of "
        "judging, or nothing (default: subtopics where a topic judges a document in two "
        "iterations, else nothing)")  # fmt: skip
    add("--sampling", choices=DESIGNS,
        help="QRELS are a sample: 'topic stratum document level' (strata, with level -1 for what was "
        "not drawn) or 'topic 0 document level probability'; needs -m with estimates, such as "
        "statAP")  # fmt: skip
    add("--known", metavar="FILE",
        help="documents that the user knew before the search, 'topic document' or 'topic expected N' "
        "in each line, for Coverage, Novelty, RelativeRecall and RecallEffort")  # fmt: skip
    add(
        "--verbose",
        action="store_true",
        help="also print warnings about the files to standard error",
    )


class _number:  # noqa: N801 - argparse names a type by its class in messages
    """Return a reader of whole numbers in [low, high] for argparse."""

    def __init__(self, low: int, high: int) -> None:
        self._low, self._high = low, high

    def __call__(self, text: str) -> int:
        is_number = text.isascii() and text.isdigit() and len(text) <= 15
        if is_number and self._low <= int(text) <= self._high:
            return int(text)

        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number from {self._low} to {self._high}"
        )
