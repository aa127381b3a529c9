"""The client of EvalHub: submit runs, wait for them, read values, leaderboards and comparisons.

    import evalhub_client as evh

    hub = evh.connect()                              # address and token of the environment or of `evh login`
    robust = hub.collection("robust04")
    run = robust.submit("bm25.run.gz").wait()
    run.means("nDCG@10", "AP")                       # {'nDCG@10': 0.4512, 'AP': 0.2531}
    robust.compare("bm25", "bm25+rm3", measures=["AP"]).to_frame()
    robust.gate(run, "label:main", "nDCG@10 no-worse-than 0.01").fine

It needs the standard library and httpx. Programs that await call it in a thread: `await
asyncio.to_thread(run.values)`.
"""

from . import version, webhooks
from .answers import (
    Answer,
    Board,
    Check,
    Comparison,
    Coverage,
    Curves,
    Difference,
    Listed,
    Means,
    SessionBoard,
    SessionValues,
    Values,
)
from .batches import Batch
from .campaigns import Campaign, ConfigChanges
from .collection import Collection, Qrels
from .display import Chart
from .errors import (
    Ambiguous,
    BadConfig,
    BadFile,
    BadRule,
    BadSignature,
    BadSource,
    Blind,
    Conflict,
    EvalHubError,
    EvaluationFailed,
    NoEvaluation,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    QuotaExceeded,
    Refused,
    Throttled,
    TimedOut,
    Unavailable,
    UploadWarning,
)
from .experiments import Experiment
from .hub import Hub, connect
from .metadata import gather_metadata
from .phases import Entries, Entry, Phase, PhaseBoard, PhaseInfo, Releases
from .rules import Rule
from .runs import Run
from .sessions import Sessions, SessionSet
from .studies import Configurations, Difficulty, Frontier, Importance, Topic
from .verdicts import Verdict

__version__ = version.VERSION

__all__ = [
    "Ambiguous",
    "Answer",
    "BadConfig",
    "BadFile",
    "BadRule",
    "BadSignature",
    "BadSource",
    "Batch",
    "Blind",
    "Board",
    "Campaign",
    "Chart",
    "Check",
    "Collection",
    "Comparison",
    "ConfigChanges", "Configurations",
    "Conflict",
    "Coverage",
    "Curves",
    "Difference",
    "Difficulty",
    "Entries",
    "Entry",
    "EvalHubError",
    "EvaluationFailed",
    "Experiment",
    "Frontier",
    "Hub",
    "Importance",
    "Listed",
    "Means",
    "NoEvaluation",
    "NotAllowed",
    "NotAuthenticated",
    "NotFound",
    "Phase",
    "PhaseBoard", "PhaseInfo",
    "Qrels",
    "QuotaExceeded",
    "Refused", "Releases",
    "Rule",
    "Run",
    "SessionBoard",
    "SessionSet",
    "SessionValues",
    "Sessions",
    "Throttled",
    "TimedOut",
    "Topic",
    "Unavailable",
    "UploadWarning",
    "Values",
    "Verdict",
    "__version__",
    "connect",
    "gather_metadata",
    "webhooks",
]  # fmt: skip
