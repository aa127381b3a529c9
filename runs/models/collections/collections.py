"""Test collections: their topics and the versions of their judgements."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.parse import quote, urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from metrics.engine.errors import MeasureError
from metrics.engine.judgement.sampling import PROBABILITIES, STRATA, Design
from metrics.engine.measures.external import (
    PREFIX,
    ExternalDefinition,
    check_external,
    is_external,
)
from metrics.engine.measures.grammar import Measure, parse_measure, split_names
from metrics.engine.measures.spelling import suggest
from runs.digests import digest_of_json
from runs.formats.trec_qrels import IGNORE, ROUND, SUBTOPIC
from runs.models.accounts.accounts import Team, User, is_staff
from runs.models.checked import StoredJSON, TopicIds
from runs.models.collections import disclosure
from runs.models.collections.disclosure import (
    Disclosure,
    in_team_of,
    led_by,
    sees_disclosed,
    sees_everything,
)
from runs.models.text import check_line, check_text

DEFAULT_MEASURES = (
    "nDCG@10", "nDCG", "AP", "RR", "P@5", "P@10", "R@100", "R@1000", "Rprec", "Judged@10",
)  # fmt: skip


def default_measures() -> list[str]:
    return list(DEFAULT_MEASURES)


def check_measures(
    measures: list[str],
    collection: Collection,
    documents: int | None,
    qrels: Qrels | None = None,
) -> None:
    """Raise ValidationError for a measure that the collection neither computes with this number of
    documents nor declares, or that does not suit the sampling of these judgements."""
    for name in measures:
        try:
            if is_external(name):
                measure = collection.measure(name)
            else:
                measure = parse_measure(name, documents)
        except MeasureError as error:
            advice = "" if is_external(name) else "; or give the collection its number of documents"
            raise ValidationError({"measures": error.message + advice}) from error

        try:
            measure.check_design(qrels.design if qrels else None)
        except MeasureError as error:
            raise ValidationError({"measures": error.message}) from error


def check_labels(labels: Any) -> None:
    """Raise ValidationError unless the labels are texts by level."""
    if not isinstance(labels, dict) or not all(isinstance(label, str) for label in labels.values()):
        raise ValidationError('write a text for each level: {"0": "not relevant", "1": "relevant"}')


# What stands for the id of a document in `document_url`.
DOC_ID = "{doc_id}"


def check_document_url(pattern: str) -> None:
    """Raise ValidationError unless this is an http or https address with {doc_id} behind its host.

    An id must not choose the server.
    """
    if not pattern:
        return

    example = f"write an address such as https://example.org/documents/{DOC_ID}"
    for place, character in enumerate(pattern, 1):
        if character.isspace() or not character.isprintable():
            raise ValidationError(f"character {place} is a blank or invisible; {example}")

    if not pattern.startswith(("http://", "https://")):
        raise ValidationError(f"the address begins with neither https:// nor http://; {example}")

    try:
        parts = urlsplit(pattern)
        host = parts.hostname
    except ValueError as error:
        raise ValidationError(f"the address has no readable host; {example}") from error

    if not host or "@" in parts.netloc or set("{}\\") & set(parts.netloc):
        raise ValidationError(
            f"between // and the next / stands the name of a server alone; {example}"
        )

    if DOC_ID not in pattern or set("{}") & set(pattern.replace(DOC_ID, "")):
        raise ValidationError(
            f"{DOC_ID} stands for the id of a document, and other braces have no meaning; {example}"
        )


def exists_for(user: Any, of: str = "") -> Q:
    """Return the rule of `visible_to` as a condition on rows; for staff there is none.

    `of` is the path from a row to its collection, as in "collection__".
    """
    if is_staff(user):
        return Q()

    public = Q(**{f"{of}visibility": Collection.Visibility.PUBLIC})
    shared = Q(**{f"{of}visibility": Collection.Visibility.TEAM}) & in_team_of(user, of)
    return public | shared | led_by(user, of)


def scored_in(user: Any, of: str = "") -> Q:
    """Return the condition of rows of a collection that the user sees with its scores."""
    return exists_for(user, of) & sees_everything(user, of)


class CollectionQuerySet(models.QuerySet["Collection"]):
    """Collections by what a user may see and do; docs/security.md has the rules as a table."""

    def visible_to(self, user: Any) -> CollectionQuerySet:
        """Return public ones, those of the user's teams, and private ones of teams the user owns.

        Staff see all.
        """
        return self.filter(exists_for(user))

    def managed_by(self, user: Any) -> CollectionQuerySet:
        """Return the collections that the user organises, as an owner of their team or as staff."""
        return self if is_staff(user) else self.filter(led_by(user))

    def scored_for(self, user: Any) -> CollectionQuerySet:
        """Return the collections with judgements, and what depends on them, that the user sees."""
        return self.filter(sees_everything(user))

    def disclosed_to(self, user: Any) -> CollectionQuerySet:
        """Return the collections with results that the user sees; names of teams may be hidden."""
        return self if is_staff(user) else self.filter(sees_everything(user) | sees_disclosed(user))


class Collection(models.Model):
    """A test collection: topics, judgements, and the way its runs are judged."""

    class Visibility(models.TextChoices):
        PUBLIC = "public"
        TEAM = "team"
        PRIVATE = "private"

    class Scores(models.TextChoices):
        FLOAT64 = "float64"
        FLOAT32 = "float32"

    slug = models.CharField(
        max_length=64,
        unique=True,
        validators=[
            RegexValidator(
                r"\A[a-z0-9][a-z0-9_-]*\Z", "use lower-case letters, digits, '_' and '-'"
            )
        ],
    )
    name = models.CharField(max_length=200, validators=[check_line])
    description = models.TextField(blank=True, max_length=20_000, validators=[check_text])
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="collections")
    visibility = models.CharField(
        max_length=10, choices=Visibility.choices, default=Visibility.PUBLIC
    )
    # Until it is public. While it is blind, `shown_to` says who sees results besides the
    # organisers; `disclosure` is the two as one number, which a trigger of the database keeps from
    # becoming smaller.
    blind = models.BooleanField(
        default=False, help_text="not everybody sees what depends on the judgements"
    )
    shown_to = models.PositiveSmallIntegerField(
        choices=Disclosure.choices[: Disclosure.PUBLIC],
        default=Disclosure.ORGANISERS,
        # Processes of the release before go on creating collections while it is replaced.
        db_default=Disclosure.ORGANISERS,
        editable=False,
        help_text="who sees results while it is blind",
    )
    released_at = models.DateTimeField(null=True, blank=True, editable=False)
    veiled_until = models.DateTimeField(
        null=True,
        editable=False,
        help_text="until then its general addresses would show hidden names of teams",
    )
    daily_submissions = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="submissions of a team per day (UTC)",
    )
    simulated = models.BooleanField(
        default=False, help_text="simulated data; labelled as such wherever it is listed"
    )
    documents = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="number of documents in the corpus",
    )
    level_labels = StoredJSON(
        default=dict,
        blank=True,
        validators=[check_labels],
        help_text='what the levels mean: {"0": "not relevant"}',
    )
    document_url = models.CharField(
        max_length=500,
        blank=True,
        default="",
        # Processes of the release before go on creating collections while it is replaced.
        db_default="",
        validators=[check_document_url],
        help_text="where a document can be read, with {doc_id} for its id: "
        "https://example.org/documents/{doc_id}",
    )
    # None where they are to be read from the rows of `topic_attributes`, as those of a collection
    # that an earlier release made.
    attribute_keys = StoredJSON(
        default=list,
        null=True,
        editable=False,
        help_text="the keys of the attributes of its topics",
    )
    measures = StoredJSON(default=default_measures, help_text="computed for every run")
    scores = models.CharField(max_length=10, choices=Scores.choices, default=Scores.FLOAT64)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = CollectionQuerySet.as_manager()

    class Meta:
        ordering = ("slug",)
        constraints = (
            models.CheckConstraint(
                condition=Q(blind=False) | Q(released_at=None), name="never_blind_again"
            ),
            models.CheckConstraint(
                condition=Q(shown_to__lt=Disclosure.PUBLIC), name="public_is_not_blind"
            ),
        )

    def __str__(self) -> str:
        return self.slug

    def clean(self) -> None:
        check_measures(self.measures, self, self.documents)

    def measure(self, name: str) -> Measure:
        """Return the measure of a name, which may be one of value tables.

        A measure that needs the number of documents, and names none, uses that of the collection.
        Raise MeasureError for an unknown name.
        """
        if not name.lstrip().startswith(PREFIX):
            return parse_measure(name, self.documents)

        name = check_external(name)
        if name not in self.declared_measures:
            advice = suggest(name, self.declared_measures, "declared are")
            raise MeasureError(f"collection {self.slug} declares no measure {name}; {advice}")
        return self.declared_measures[name]

    def measures_named(self, text: str) -> list[Measure]:
        """Return the measures of a list separated by commas or blanks, in order, each once."""
        return list(dict.fromkeys(self.measure(name) for name in split_names(text)))

    def is_reported(self, name: str) -> bool:
        """Return whether a measure has values that each team gives of its own runs."""
        if not name.startswith(PREFIX) or name not in self.declared_measures:
            return False
        definition = self.declared_measures[name].definition
        return isinstance(definition, ExternalDefinition) and definition.reported

    @cached_property
    def declared_measures(self) -> dict[str, Measure]:
        """Return the measures of value tables by their names."""
        rows = self.external_measures.all() if self.pk else ()
        return {str(row): row.measure for row in rows}

    @property
    def disclosure(self) -> Disclosure:
        """Return to whom the collection shows what depends on its judgements."""
        if not self.blind:
            return Disclosure.PUBLIC

        # Any other value is damaged, and shows nothing.
        if self.shown_to not in Disclosure.values:
            return Disclosure.ORGANISERS
        return Disclosure(self.shown_to)

    @property
    def veiled(self) -> bool:
        """Return whether names of teams are hidden now that its general addresses would show."""
        return self.veiled_until is not None and disclosure.now() < self.veiled_until

    @property
    def active_qrels(self) -> Qrels | None:
        """Return the judgements that count; None until a version is activated."""
        active = self.qrels.filter(active=True).order_by().first()
        if active:
            active.collection = self
        return active


def document_address(collection: Collection, doc_id: str) -> str:
    """Return the address of a document; empty if the collection has no pattern for it."""
    return collection.document_url.replace(DOC_ID, quote(doc_id, safe=""))


def can_see_scores(viewer: Any, collection: Collection) -> bool:
    """Return whether the viewer may see everything that depends on the collection's judgements.

    The rule is `runs.models.collections.disclosure.sees_everything`.
    """
    if not (collection.blind or collection.veiled):
        return True
    return Collection.objects.filter(sees_everything(viewer), pk=collection.pk).exists()


class Topic(models.Model):
    """One information need."""

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="topics")
    topic_id = models.CharField(max_length=1024)
    position = models.IntegerField()
    title = models.TextField(blank=True)
    fields = StoredJSON(default=dict, blank=True)

    class Meta:
        ordering = ("collection", "position")
        constraints = (
            models.UniqueConstraint(fields=("collection", "topic_id"), name="one_topic_per_id"),
        )

    def __str__(self) -> str:
        return self.topic_id


class TopicAttributes(models.Model):
    """The attributes of a topic as texts by key; the topic need not be listed.

    The rows of a collection are replaced together.
    """

    collection = models.ForeignKey(
        Collection, on_delete=models.CASCADE, related_name="topic_attributes", db_index=False
    )
    topic_id = models.CharField(max_length=1024)
    attributes = StoredJSON(default=dict)

    class Meta:
        ordering = ("collection", "pk")
        verbose_name_plural = "topic attributes"
        constraints = (
            models.UniqueConstraint(
                fields=("collection", "topic_id"), name="one_set_of_attributes_per_topic"
            ),
        )

    def __str__(self) -> str:
        return self.topic_id


class DocumentTitle(models.Model):
    """What pages show of a document in addition to its id; title and snippet may be empty.

    The rows of a collection are replaced together. Documents that runs and judgements name need
    none.
    """

    collection = models.ForeignKey(
        Collection, on_delete=models.CASCADE, related_name="document_titles", db_index=False
    )
    doc_id = models.CharField(max_length=1024)
    title = models.TextField(blank=True)
    snippet = models.TextField(blank=True)

    class Meta:
        ordering = ("collection", "doc_id")
        constraints = (
            models.UniqueConstraint(fields=("collection", "doc_id"), name="one_title_per_document"),
        )

    def __str__(self) -> str:
        return self.doc_id


# The warning of judgements about topics, or queries of sessions, without a relevant document.
NOTHING_RELEVANT = "nothing_relevant"


class Qrels(models.Model):
    """One immutable version of a collection's judgements; the file is named by its SHA-256."""

    class KeyedBy(models.TextChoices):
        TOPIC = "topic"
        QUERY = "query"

    class Iteration(models.TextChoices):
        SUBTOPIC = SUBTOPIC
        ROUND = ROUND
        IGNORE = IGNORE

    class Sampling(models.TextChoices):
        NONE = "none"
        STRATA = STRATA
        PROBABILITIES = PROBABILITIES

    class AuthorKind(models.TextChoices):
        UNKNOWN = ""
        PERSON = "person"
        MODEL = "model"
        CLICKS = "clicks"
        MIXED = "mixed"

    class Derivation(models.TextChoices):
        NONE = "none"
        FILLED = "filled"
        REPLACED = "replaced"
        SAMPLED = "sampled"

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="qrels")
    version = models.PositiveIntegerField()
    active = models.BooleanField(default=False)
    sha256 = models.CharField(max_length=64)
    keyed_by = models.CharField(
        max_length=10,
        choices=KeyedBy.choices,
        default=KeyedBy.TOPIC,
        # Processes of the release before go on submitting while it is replaced.
        db_default=KeyedBy.TOPIC,
        help_text="whether the file's second column is an iteration, "
        "or the number of a session's query",
    )
    iteration = models.CharField(
        max_length=10,
        choices=Iteration.choices,
        default=Iteration.IGNORE,
        db_default=Iteration.IGNORE,
        help_text="what the file's second column is taken for: "
        "subtopics, rounds of judging, or nothing",
    )
    sampling = models.CharField(
        max_length=15,
        choices=Sampling.choices,
        default=Sampling.NONE,
        db_default=Sampling.NONE,
        help_text="how the judged documents were drawn: in strata, or with probabilities",
    )
    ignore_sampling = models.BooleanField(
        default=False,
        db_default=False,
        help_text="documents outside the sample count as not relevant",
    )
    size = models.BigIntegerField(help_text="bytes, decompressed")
    lines = models.BigIntegerField()
    judgements = models.BigIntegerField()
    topics = models.IntegerField()
    topic_ids = TopicIds(help_text="in the order of every stored vector")
    topic_ids_digest = models.BigIntegerField(null=True, editable=False)
    levels = StoredJSON(help_text="number of judgements at each level")
    warnings = StoredJSON(default=dict)
    note = models.CharField(max_length=500, blank=True, validators=[check_text])
    # Who judged: `runs.services.collections.authorship` has the rules. Processes of the release
    # before go on creating versions while it is replaced.
    author_kind = models.CharField(
        max_length=10,
        choices=AuthorKind.choices,
        blank=True,
        default=AuthorKind.UNKNOWN,
        db_default=AuthorKind.UNKNOWN,
        help_text="who judged: persons, a model, clicks, or several of these",
    )
    author = models.CharField(
        max_length=200, blank=True, default="", db_default="", validators=[check_line]
    )
    model = models.CharField(
        max_length=200, blank=True, default="", db_default="", validators=[check_line]
    )
    prompt = models.TextField(blank=True, default="", db_default="", validators=[check_text])
    prompt_sha256 = models.CharField(max_length=64, blank=True, default="", db_default="")
    parent = models.ForeignKey(
        "self", null=True, on_delete=models.CASCADE, related_name="derived",
        help_text="the version from which this one was made",
    )  # fmt: skip
    derivation = models.CharField(
        max_length=10,
        choices=Derivation.choices,
        default=Derivation.NONE,
        db_default=Derivation.NONE,
        help_text="how it was made from its parent",
    )
    produced_at = models.DateTimeField(null=True, help_text="when the judgements were made")
    reduced_from = models.ForeignKey(
        "self", null=True, editable=False, on_delete=models.CASCADE, related_name="reduced",
        help_text="the version with all topics, if this one is without those that phases exclude",
    )  # fmt: skip
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("collection", "-version")
        verbose_name_plural = "qrels"
        constraints = (
            models.UniqueConstraint(fields=("collection", "version"), name="one_qrels_per_version"),
            models.UniqueConstraint(
                fields=("collection",), condition=Q(active=True), name="one_active_qrels"
            ),
        )

    def __str__(self) -> str:
        return f"{self.collection} v{self.version}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store the digest of the topic ids with a new row; they never change."""
        if self._state.adding or kwargs.get("force_insert"):
            self.topic_ids_digest = self.digest_of_topic_ids(self.__dict__["topic_ids"])
        super().save(*args, **kwargs)

    @cached_property
    def authors(self) -> str:
        """Return who judged as a phrase for titles, empty unless a model or clicks took part."""
        if self.author_kind == self.AuthorKind.MODEL:
            return f"judged by model {self.model}"
        if self.author_kind == self.AuthorKind.MIXED:
            return (
                f"judged partly by model {self.model}" if self.model else "judged in several ways"
            )
        return "inferred from clicks" if self.author_kind == self.AuthorKind.CLICKS else ""

    @property
    def design(self) -> Design | None:
        """Return how the judged documents were drawn, None where measures need not know it."""
        if self.ignore_sampling or self.sampling == self.Sampling.NONE:
            return None
        return STRATA if self.sampling == self.Sampling.STRATA else PROBABILITIES

    @property
    def sampling_words(self) -> str:
        """Return the sampling as a phrase for titles, empty without one."""
        if self.sampling == self.Sampling.NONE:
            return ""
        return "sampled, which is ignored" if self.ignore_sampling else "sampled"

    @property
    def name(self) -> str:
        """Return the version as readers see it, with its authors and sampling if titles name
        these."""
        parts = [f"qrels v{self.version}", self.authors, self.sampling_words]
        return ", ".join(filter(None, parts))

    @property
    def full_name(self) -> str:
        """Return the same for sentences of a paper."""
        parts = [f"qrels version {self.version}", self.authors, self.sampling_words]
        return ", ".join(filter(None, parts))

    @property
    def nothing_relevant(self) -> int:
        """Return the number of topics, or queries, without a relevant document, as uploaded."""
        return int(self.warnings.get("counts", {}).get(NOTHING_RELEVANT, 0))

    @property
    def has_subtopics(self) -> bool:
        """Return whether any topic has several subtopics."""
        counts = self.warnings.get("counts", {})
        return self.iteration == self.Iteration.SUBTOPIC and "subtopics" in counts

    def digest_of_topic_ids(self, topic_ids: object) -> int:
        return digest_of_json((self.collection_id, self.version, self.sha256), topic_ids)
