"""Loading the compiled code, or compiling it into its cache: seconds once, that no request should wait for."""

from __future__ import annotations

import numpy as np

from metrics.engine.judging import SCORE_TYPES, judge
from metrics.engine.search import search_compiled
from metrics.engine.significance import TESTS
from metrics.engine.significance.pairs import Options, all_pairs
from runs.formats.compression import in_memory
from runs.formats.kernel import last_topic
from runs.formats.limits import DEFAULT_LIMITS
from runs.formats.trec_qrels import read_qrels
from runs.formats.trec_run import check_run, read_run

_FEW = Options(resamples=1)
_QRELS, _RUN = b"1 0 a 1\n", b"1 Q0 a 1 2.5 t\n"


def warm_up() -> None:
    """Take one line through everything that is compiled, in every type it is compiled for."""
    judgements = read_qrels(lambda: in_memory(_QRELS, DEFAULT_LIMITS)).judgements
    check_run(lambda: in_memory(_RUN, DEFAULT_LIMITS))
    last_topic(_RUN)
    for scores in SCORE_TYPES:
        judge(read_run(lambda: in_memory(_RUN, DEFAULT_LIMITS)), judgements, scores, search_compiled)
    for test in TESTS.values():
        if test.draws:
            test.compare(np.eye(2), *all_pairs(2), _FEW)
