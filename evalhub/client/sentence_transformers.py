"""An evaluator for the trainer of sentence-transformers that also submits its rankings.

    from evalhub_client.sentence_transformers import HubEvaluator

    evaluator = HubEvaluator(InformationRetrievalEvaluator(queries, corpus, relevant), "nq-dev")
    SentenceTransformerTrainer(model, args=arguments, train_dataset=pairs, loss=loss, evaluator=evaluator).train()

The library is imported when `HubEvaluator` is: the trainer takes only subclasses of its own
evaluators.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .hub import Hub, connect
from .predictions import read_sentence_transformers
from .runs import Run
from .sources import tag_of_name

# For each answer and for retries: a server that is away delays training by about twice as much.
_SECONDS = 5.0
_log = logging.getLogger("evalhub_client")


class _HubEvaluator:
    """Evaluate with `inner`, then submit its rankings to `collection` of EvalHub; return the scores of `inner`.

    Each evaluation is a run with the tag MODEL-EPOCH-STEPS, where `name` may replace the name of the
    model. Training waits for the upload only, about ten seconds if the server is away. An error of
    EvalHub is logged once and never raised. `runs` has the submitted runs. `hub` is the server, by
    default the configured one; without that BadConfig is raised. `options` are those of
    `Collection.submit`, such as `team`, `metadata` and `drop_identical`.
    """

    def __init__(
        self, inner: Any, collection: str, *, name: str = "", hub: Hub | None = None, **options: Any
    ) -> None:
        super().__init__()
        if not hasattr(inner, "write_predictions"):
            raise TypeError(
                f"inner is an InformationRetrievalEvaluator, which ranks documents, not {inner!r}"
            )

        self.inner, self._name, self._options = inner, name, options
        self.runs: list[Run] = []
        self.greater_is_better = inner.greater_is_better
        hub = hub or connect(timeout=_SECONDS, retry_for=_SECONDS)
        self._collection = hub.collection(collection)
        self._failed = False

    @property
    def description(self) -> str:
        text: str = self.inner.description
        return text

    def __call__(
        self,
        model: Any,
        output_path: str | None = None,
        epoch: float = -1,
        steps: int = -1,
        *args: Any,
        **options: Any,
    ) -> Any:
        try:
            folder = TemporaryDirectory(prefix="evh-", ignore_cleanup_errors=True)
        except OSError as error:
            self._log_failure(error)
            return self.inner(model, output_path, epoch, steps, *args, **options)

        with folder as temporary:
            inner, file = self.inner, vars(self.inner).get("predictions_file")
            keeps_file = inner.write_predictions and output_path
            # A file that the user does not want is written elsewhere and not kept.
            if not keeps_file:
                inner.predictions_file = str(Path(temporary, "predictions.jsonl"))

            write_predictions, inner.write_predictions = inner.write_predictions, True
            try:
                scores = inner(model, output_path or temporary, epoch, steps, *args, **options)
                pattern = Path(output_path or temporary, inner.predictions_file)
            finally:
                inner.write_predictions, inner.predictions_file = write_predictions, file
                if file is None:
                    del inner.predictions_file

            try:
                # Every process of a distributed training evaluates; one of them submits.
                if os.environ.get("RANK", "0") == "0":
                    self._submit(pattern, model, epoch, steps)
            except Exception as error:
                self._log_failure(error)

        self.primary_metric = getattr(inner, "primary_metric", None)
        return scores

    def _submit(self, pattern: Path, model: Any, epoch: float, steps: int) -> None:
        """Submit the rankings of every score function; if there are several, the tag names it."""
        card = getattr(model, "model_card_data", None)
        model_name = getattr(card, "model_name", "") or getattr(card, "base_model", "")
        model_name = self._name or model_name or "model"

        names = self.inner.score_function_names
        for name in names:
            # The library writes a file for each score function, with its name after the stem.
            results = read_sentence_transformers(pattern.with_name(f"{pattern.stem}_{name}.jsonl"))
            suffix = "" if epoch == -1 else f"-{epoch:g}"
            suffix += "" if steps == -1 else f"-{steps}"
            suffix += f"-{name}" if len(names) > 1 else ""

            metadata = {"model": model_name, "epoch": epoch, "steps": steps, "score_function": name}
            options = {"if_taken": "suffix", **self._options}
            options["metadata"] = {**metadata, **(options.get("metadata") or {})}
            # A tag has at most 64 characters: the name of the model is cut, not what follows it.
            tag = tag_of_name(model_name)[: 64 - len(suffix)] + suffix
            self.runs.append(self._collection.submit(results, tag=tag, **options))

    def _log_failure(self, error: Exception) -> None:
        if not self._failed:
            _log.warning(
                "the evaluation was not sent to EvalHub, and later failures are not logged: %s",
                error,
            )
        self._failed = True


def __getattr__(name: str) -> Any:
    """Create the class when it is imported, with the base class of the installed library."""
    if name != "HubEvaluator":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    try:
        from sentence_transformers.base.evaluation import SentenceEvaluator
    except ImportError:  # before version 6
        from sentence_transformers.evaluation import SentenceEvaluator

    attributes = {"__module__": __name__, "__doc__": _HubEvaluator.__doc__}
    evaluator = type(name, (_HubEvaluator, SentenceEvaluator), attributes)
    globals()[name] = evaluator
    return evaluator
