"""Tables of the results computed from runs and judgements, which can always be computed again."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Concat
from django.utils import timezone

from metrics.engine import ENGINE_VERSION
from metrics.engine.arrays import Floats
from metrics.engine.measures.grammar import Measure
from runs.digests import (
    digest_of_bytes,
    digest_of_json,
    digest_of_vector,
    digests_of_means,
)
from runs.models import Collection, Qrels, Run, SessionSet, Submission, scored_in
from runs.models.checked import ReadableJSON
from runs.models.submissions.runs import NO_RANKING

E_co = TypeVar("E_co", bound="SubmissionEvaluation", covariant=True)


class Job(models.Model):
    """Work that waits in the database and is leased to one worker at a time.

    `state` changes only by compare-and-set updates (metrics/services/queue/lifecycle.py). Each kind
    of work names its own states of being in progress and of being done, and the path to its
    `COLLECTION`."""

    QUEUED, FAILED = "queued", "failed"
    HELD: ClassVar[str]
    DONE: ClassVar[str]
    NOUN: ClassVar[str]
    COLLECTION: ClassVar[str]

    state: Any
    since = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    attempts = models.PositiveSmallIntegerField(default=0)
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    dispatched_at = models.DateTimeField(null=True)
    not_before = models.DateTimeField(null=True)
    error_code = models.CharField(max_length=50, blank=True)
    error_message = models.TextField(blank=True)
    traceback = models.TextField(blank=True, help_text="for administrators only")
    seconds = models.FloatField(null=True)

    class Meta:
        abstract = True


def lease_exactly_while(state: str, name: str) -> models.CheckConstraint:
    """Constrain a job to have a lease exactly while a worker holds it, in this state."""
    leased = Q(state=state, lease_token__isnull=False, lease_until__isnull=False)
    free = ~Q(state=state) & Q(lease_token=None, lease_until=None)
    return models.CheckConstraint(condition=leased | free, name=name)


def queue_of(under_way: str, name: str) -> models.Index:
    """Index the jobs that wait or are under way: what dispatchers and workers look through."""
    return models.Index(
        fields=("state", "created_at"), condition=Q(state__in=("queued", under_way)), name=name
    )


class SubmissionEvaluationQuerySet(models.QuerySet[E_co]):
    """Evaluations of runs, or of session sets."""

    def counting(self, judgements: Q | None = None, way: str | None = None) -> Self:
        """Return the current evaluations.

        They are under the active judgements, or their own, in the way that is chosen now, and by
        this engine version; a withdrawn run has one as well. This is the only place with this rule.

        `judgements` and `way` are for readers who request others than the current ones.
        """
        kind = self.model
        way_of = F(f"{kind.OF.KEY}__{kind.OF.WAY}") if way is None else way
        return self.filter(
            judgements or kind.JUDGEMENTS, engine_version=ENGINE_VERSION, **{kind.WAY: way_of}
        )

    def live(self) -> Self:
        """Return the evaluations of submissions that are not withdrawn."""
        return self.filter(**{f"{self.model.OF.KEY}__deleted_at": None})

    def evaluated(self) -> Self:
        return self.filter(state=SubmissionEvaluation.State.EVALUATED)

    def with_files(self) -> Any:
        """Annotate `same_files`: whether it was made from the files that its submission names."""
        return self.annotate(same_files=Q(judged_files="") | Q(judged_files=self.model.FILES))


class SubmissionEvaluation(Job):
    """A run or session set judged by one qrels version and one engine version, in one way.

    `OF` names the submission, `WAY` the column of the other choice, `JUDGEMENTS`
    the condition of active ones, `judged_files` the SHA-256 of the files it was made from, and
    `FILES` those that its submission names.
    """

    HELD, DONE, NOUN = "evaluating", "evaluated", "evaluation"
    OF: ClassVar[type[Run] | type[SessionSet]]
    WAY: ClassVar[str]
    JUDGEMENTS: ClassVar[Q]
    FILES: ClassVar[F | Concat]

    # Of every kind, each under a name of its own in the other table.
    qrels: models.ForeignKey[Qrels, Qrels] | models.ForeignKey[Qrels | None, Qrels | None]

    class State(models.TextChoices):
        QUEUED = "queued"
        EVALUATING = "evaluating"
        EVALUATED = "evaluated"
        FAILED = "failed"
        CANCELLED = "cancelled"

    engine_version = models.CharField(max_length=20, default=ENGINE_VERSION)
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    judged_files = models.CharField(max_length=128, blank=True, db_default="", editable=False)
    same_files: bool

    class Meta:
        abstract = True

    @classmethod
    def withdrawn_code(cls) -> str:
        """Return the error code of evaluations that were cancelled with their submission."""
        return f"{cls.OF.KEY}_deleted"

    @property
    def is_stale(self) -> bool:
        """Return whether other judgements or another engine version are current now.

        This is `counting()` for a loaded row, which was found by the way that its reader requested.
        """
        return (
            not (self.qrels is None or self.qrels.active) or self.engine_version != ENGINE_VERSION
        )

    @property
    def submission(self) -> Run | SessionSet:
        """Return the run or session set."""
        submission: Run | SessionSet = getattr(self, self.OF.KEY)
        return submission


class EvaluationQuerySet(SubmissionEvaluationQuerySet["Evaluation"]):
    def current(self, qrels: Qrels, scores: str) -> Self:
        """Return evaluations of live runs under these judgements, scores and this engine."""
        return self.live().counting(Q(qrels=qrels), scores)

    def with_values_of(self, measures: Iterable[Measure]) -> Self:
        """Leave out runs of which tables have no value, under any of the measures that need one,
        and runs without a ranking under the others."""
        evaluations = self
        for measure in measures:
            if not measure.is_external:
                evaluations = evaluations.exclude(run__sha256=NO_RANKING)
            else:
                evaluations = evaluations.filter(
                    vectors__measure=measure.name, vectors__topics__gt=0
                )
        return evaluations


class Evaluation(SubmissionEvaluation):
    """One run judged by one qrels version, one way of comparing scores and one engine version."""

    OF, WAY, COLLECTION = Run, "scores", "run__collection"
    JUDGEMENTS = Q(qrels__active=True)
    FILES = Concat("run__sha256", "run__known_sha256")

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="evaluations")
    qrels = models.ForeignKey(Qrels, on_delete=models.CASCADE, related_name="evaluations")
    scores = models.CharField(max_length=10, choices=Collection.Scores.choices)
    topics_answered = models.IntegerField(null=True)
    judged_depth = models.IntegerField(
        null=True, help_text="every document of the ranks 1 to this one is judged"
    )
    depth_digest = models.BigIntegerField(null=True)

    objects = EvaluationQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("qrels", "scores", "engine_version", "run"),
                name="one_evaluation_per_identity",
            ),
            lease_exactly_while("evaluating", "lease_exactly_while_evaluating"),
        )
        indexes = (
            queue_of("evaluating", "queue"),
            # What a scrape and the fingerprint of a leaderboard count, from the index alone: rows
            # are wide and many.
            models.Index(fields=("state", "error_code", "attempts", "seconds"), name="figures"),
            models.Index(
                fields=("qrels", "scores", "engine_version", "state", "since", "id"),
                name="states_of_board",
            ),
        )

    def __str__(self) -> str:
        return f"{self.run} by {self.qrels}"


class JudgedView(models.Model):
    """The compressed judged view of a run, from which every other measure is computed."""

    evaluation = models.OneToOneField(
        Evaluation, on_delete=models.CASCADE, primary_key=True, related_name="view"
    )
    content = models.BinaryField()
    digest = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return f"judged view of {self.evaluation_id}"

    def seal(self, qrels: int) -> Self:
        """Give it its digest, as one by this version of judgements."""
        self.digest = self._digest(qrels)
        return self

    def is_sound(self, qrels: int) -> bool:
        """Return whether it is unchanged.

        One without a digest, of an earlier release's worker, is accepted.
        """
        return self.digest in (None, self._digest(qrels))

    def _digest(self, qrels: int) -> int:
        return digest_of_bytes(("view", self.evaluation_id, qrels), self.content)


class MetricVector(models.Model):
    """A measure's values for all topics of the qrels, in their order.

    They are float64, NaN where there is no value.
    """

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="vectors")
    measure = models.CharField(max_length=200)
    mean = models.FloatField(
        null=True, help_text="over the topics with a value; the sum for counts"
    )
    topics = models.IntegerField(help_text="topics with a value")
    content = models.BinaryField()
    digest = models.BigIntegerField(null=True, help_text="of the values")
    mean_digest = models.BigIntegerField(null=True, help_text="of the mean and its topics")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("evaluation", "measure"), name="one_vector_per_measure"
            ),
        )
        # A leaderboard reads these columns of hundreds of evaluations: from the index alone, never
        # the vectors.
        indexes = (
            models.Index(
                fields=("measure", "evaluation", "mean", "topics", "mean_digest"),
                name="means_and_digests",
            ),
        )

    def __str__(self) -> str:
        return f"{self.measure} of {self.evaluation_id}"

    @property
    def values(self) -> Floats:
        return np.frombuffer(self.content, np.dtype("<f8"))

    def seal(self, qrels: int) -> Self:
        """Give the values and their mean their digests, as those by this version of judgements."""
        self.digest, self.mean_digest = self._digest(qrels), self._mean_digest(qrels)
        return self

    def is_sound(self, qrels: int) -> bool:
        """Return whether values and mean are unchanged.

        Those without a digest, of an earlier release's worker, are accepted.
        """
        return self.digest in (None, self._digest(qrels)) and self.mean_digest in (
            None,
            self._mean_digest(qrels),
        )

    def _digest(self, qrels: int) -> int:
        return digest_of_vector(self.evaluation_id, qrels, self.measure, self.content)

    def _mean_digest(self, qrels: int) -> int:
        mean, topics = [self.mean], [self.topics]
        return int(digests_of_means([self.evaluation_id], qrels, self.measure, mean, topics)[0])


class StoredCurves(models.Model):
    """CG, DCG, nCG and nDCG of an evaluation's run at ranks 1..depth.

    Gains, discount and ideal are those of `measure`, the nDCG
    (metrics/engine/curve/gain_curves.py).
    """

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="curves")
    measure = models.CharField(max_length=200)
    depth = models.IntegerField()
    means = models.BinaryField(help_text="float64 by curve and rank")
    content = models.BinaryField(help_text="gains by topic and rank, compressed")
    digest = models.BigIntegerField(help_text="of the depth, the means and the content")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("evaluation", "measure"), name="one_set_of_curves_per_measure"
            ),
        )

    def __str__(self) -> str:
        return f"curves of {self.measure} of {self.evaluation_id}"

    def seal(self, qrels: int) -> Self:
        """Give them their digest, as those by this version of judgements."""
        self.digest = self._digest(qrels)
        return self

    def is_sound(self, qrels: int) -> bool:
        """Return whether they are unchanged."""
        return self.digest == self._digest(qrels)

    def _digest(self, qrels: int) -> int:
        owner = ("curves", self.evaluation_id, qrels, self.measure, self.depth)
        return digest_of_bytes(owner, self.means, self.content)


class SessionEvaluationQuerySet(SubmissionEvaluationQuerySet["SessionEvaluation"]):
    """Evaluations of session sets."""


class SessionEvaluation(SubmissionEvaluation):
    """One session set judged by one qrels version or by itself, and by one engine version.

    `means` names the `systems` in the order of the stored sessions, and has in `values` for each
    measure that every set is given the mean and the number of sessions of each of them.
    """

    OF, WAY, COLLECTION = SessionSet, "judged_by", "session_set__collection"
    JUDGEMENTS = Q(qrels__active=True) | Q(qrels=None)
    FILES = F("session_set__sha256")

    session_set = models.ForeignKey(
        SessionSet, on_delete=models.CASCADE, related_name="evaluations"
    )
    qrels = models.ForeignKey(
        Qrels, null=True, on_delete=models.CASCADE, related_name="session_evaluations"
    )
    judged_by = models.CharField(max_length=10, choices=SessionSet.JudgedBy.choices)
    sessions_judged = models.IntegerField(null=True)
    means = ReadableJSON(default=dict)
    means_digest = models.BigIntegerField(null=True)

    objects = SessionEvaluationQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("qrels", "judged_by", "engine_version", "session_set"),
                condition=Q(qrels__isnull=False),
                name="one_session_evaluation_per_identity",
            ),
            models.UniqueConstraint(
                fields=("session_set", "engine_version"),
                condition=Q(qrels=None),
                name="one_evaluation_by_own_judgements",
            ),
            models.CheckConstraint(
                condition=Q(judged_by="own", qrels=None)
                | (~Q(judged_by="own") & Q(qrels__isnull=False)),
                name="qrels_unless_own_judgements",
            ),
            lease_exactly_while("evaluating", "lease_exactly_while_evaluating_sessions"),
        )
        indexes = (queue_of("evaluating", "sessions_queue"),)

    def __str__(self) -> str:
        return f"{self.session_set} by {self.qrels or 'its own judgements'}"

    def digest_of_means(self, means: object) -> int:
        return digest_of_json(("means", self.pk, self.qrels_id), means)

    def has_sound_means(self) -> bool:
        """Return whether its means are unchanged.

        Means without a digest, of an earlier release's worker, are accepted.
        """
        return self.means is not None and self.means_digest in (
            None,
            self.digest_of_means(self.means),
        )


class SessionView(models.Model):
    """The compressed judged view of a session set, and who searched each session.

    Every measure and analysis is computed from it.
    """

    evaluation = models.OneToOneField(
        SessionEvaluation, on_delete=models.CASCADE, primary_key=True, related_name="view"
    )
    content = models.BinaryField()
    sessions = models.BinaryField(help_text="a line for each session: id, topic, searcher, system")
    digest = models.BigIntegerField(null=True, help_text="of both")

    def __str__(self) -> str:
        return f"judged view of session evaluation {self.evaluation_id}"

    def seal(self, qrels: int | None) -> Self:
        """Give it its digest, as one by this version of judgements, or by the log's own."""
        self.digest = self._digest(qrels)
        return self

    def is_sound(self, qrels: int | None) -> bool:
        """Return whether it is unchanged.

        One without a digest, of an earlier release's worker, is accepted.
        """
        return self.digest in (None, self._digest(qrels))

    def _digest(self, qrels: int | None) -> int:
        return digest_of_bytes(
            ("session view", self.evaluation_id, qrels), self.content, self.sessions
        )


class StoredSessionCurves(models.Model):
    """sDCG and nsDCG of a session set, by session and by system, at every rank.

    See metrics/services/sessions/curves.py.
    """

    evaluation = models.OneToOneField(
        SessionEvaluation, on_delete=models.CASCADE, primary_key=True, related_name="curves"
    )
    content = models.BinaryField(help_text="compressed")
    digest = models.BigIntegerField()

    def __str__(self) -> str:
        return f"curves of session evaluation {self.evaluation_id}"

    def seal(self, qrels: int | None) -> Self:
        """Give it its digest, as one by this version of judgements, or by the log's own."""
        self.digest = self._digest(qrels)
        return self

    def is_sound(self, qrels: int | None) -> bool:
        """Return whether it is unchanged."""
        return self.digest == self._digest(qrels)

    def _digest(self, qrels: int | None) -> int:
        return digest_of_bytes(("session curves", self.evaluation_id, qrels), self.content)


class ComparisonQuerySet(models.QuerySet["Comparison"]):
    def visible_to(self, user: Any) -> ComparisonQuerySet:
        """Return comparisons of collections in which the user may see scores.

        Of a blind collection, only its organisers may.
        """
        return self.filter(scored_in(user, "qrels__collection__"))

    def unfinished(self) -> ComparisonQuerySet:
        return self.filter(state__in=(Comparison.State.QUEUED, Comparison.State.COMPARING))


class Comparison(Job):
    """A comparison that is too long to wait for.

    It is requested once, computed by a worker, and found again by its inputs.

    `query` is everything that the result depends on in canonical form, the evaluations among it;
    `digest` its SHA-256.
    """

    HELD, DONE, NOUN = "comparing", "compared", "comparison"
    COLLECTION = "qrels__collection"

    class State(models.TextChoices):
        QUEUED = "queued"
        COMPARING = "comparing"
        COMPARED = "compared"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    qrels = models.ForeignKey(Qrels, on_delete=models.CASCADE, related_name="comparisons")
    scores = models.CharField(max_length=10, choices=Collection.Scores.choices)
    engine_version = models.CharField(max_length=20, default=ENGINE_VERSION)
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the query")
    query = ReadableJSON()
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    progress = models.FloatField(default=0.0, help_text="share of the work that is done")
    content = models.BinaryField(null=True, help_text="the result, compressed")
    content_digest = models.BigIntegerField(null=True)
    size = models.BigIntegerField(default=0, help_text="bytes of the result")
    read_at = models.DateTimeField(default=timezone.now, help_text="day of the last request")

    objects = ComparisonQuerySet.as_manager()

    class Meta:
        constraints = (
            lease_exactly_while("comparing", "lease_exactly_while_comparing"),
            models.CheckConstraint(
                condition=Q(state="compared", content__isnull=False)
                | (~Q(state="compared") & Q(content=None)),
                name="content_exactly_when_compared",
            ),
        )
        indexes = (queue_of("comparing", "comparisons_queue"),)

    def __str__(self) -> str:
        return f"comparison {self.pk}"

    @staticmethod
    def digest_of_content(query_digest: str, content: bytes | memoryview[int]) -> int:
        """Return the digest of a result, as that of the query with this SHA-256."""
        return digest_of_bytes(("comparison", query_digest), content)


class VectorUpdate(Job):
    """The work of storing what evaluations lack of their collection's changed measures.

    It is for one version of judgements (metrics/services/values/missing.py).
    """

    HELD, DONE, NOUN = "computing", "computed", "update"
    COLLECTION = "qrels__collection"

    class State(models.TextChoices):
        QUEUED = "queued"
        COMPUTING = "computing"
        COMPUTED = "computed"
        FAILED = "failed"

    qrels = models.OneToOneField(
        Qrels, on_delete=models.CASCADE, primary_key=True, related_name="vector_update"
    )
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)

    class Meta:
        constraints = (lease_exactly_while("computing", "lease_exactly_while_computing"),)
        indexes = (queue_of("computing", "vector_updates_queue"),)

    def __str__(self) -> str:
        return f"vectors by {self.qrels}"


# Every kind of work that workers take from the database, the most urgent first.
JOBS: tuple[type[Job], ...] = (Evaluation, SessionEvaluation, VectorUpdate, Comparison)
# What judges each kind of submission.
EVALUATIONS: dict[type[Submission], type[Evaluation] | type[SessionEvaluation]] = {
    Run: Evaluation,
    SessionSet: SessionEvaluation,
}


class DispatcherRound(models.Model):
    """When the dispatcher of a worker last went round, and how often it failed to.

    It is deleted an hour later.
    """

    worker = models.CharField(max_length=200, primary_key=True)
    at = models.DateTimeField()
    failed = models.BigIntegerField(
        default=0, help_text="rounds that failed since the worker started"
    )
    trouble = models.CharField(
        max_length=30, blank=True, db_default="", help_text="why it cannot send, as a code"
    )

    def __str__(self) -> str:
        return self.worker
