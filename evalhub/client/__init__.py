"""The client of EvalHub: submit runs, wait for them, read values, leaderboards and comparisons.

    import evalhub_client as evh

    hub = evh.connect()                              # address and token of the environment or of `evh login`
    robust = hub.collection("robust04")
    run = robust.submit("bm25.run.gz").wait()
    run.means("nDCG@10", "AP")                       # {'nDCG@10': 0.4512, 'AP': 0.2531}
    robust.compare("bm25", "bm25+rm3", measures=["AP"]).to_frame()

It needs the standard library and httpx. `connect_async()` has the same names to be awaited.
"""

from . import version, webhooks
from .answers import Answer, Board, Check, Comparison, Difference, Listed, Means, Values
from .batches import Batch
from .collection import Collection
from .errors import (
    Ambiguous,
    BadConfig,
    BadFile,
    BadSignature,
    BadSource,
    Blind,
    Conflict,
    EvalHubError,
    EvaluationFailed,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    QuotaExceeded,
    Refused,
    Throttled,
    TimedOut,
    Unavailable,
)
from .hub import AsyncHub, Hub, connect, connect_async
from .runs import Run

__version__ = version.VERSION

__all__ = [
    "Ambiguous", "Answer", "AsyncHub", "BadConfig", "BadFile", "BadSignature", "BadSource", "Batch", "Blind", "Board",
    "Check", "Collection", "Comparison", "Conflict", "Difference", "EvalHubError", "EvaluationFailed", "Hub", "Listed",
    "Means", "NotAllowed", "NotAuthenticated", "NotFound", "QuotaExceeded", "Refused", "Run", "Throttled", "TimedOut",
    "Unavailable", "Values", "__version__", "connect", "connect_async", "webhooks",
]  # fmt: skip
