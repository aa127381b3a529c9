"""Read the recipe of a pool from a request."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from evalhub.pools.services.recipes import (
    MAX_DEPTH,
    MAX_EXTRA,
    MAX_STRATA,
    USUAL_DEPTH,
    ExtraDocument,
    Fusion,
    Method,
    Recipe,
    Stratum,
)
from runs.errors import InvalidInput
from runs.models import Collection, Qrels
from runs.models.text import check_line
from runs.web.fields import ChoiceField
from runs.web.parameters import KnownFields

_MAX_LISTED = 10_000
_MAX_ID = 1024
_MAX_NUMBER = 1_000_000_000
# The parameters that a method reads, of those that not all have.
_OF_METHOD = {
    Method.DEPTH: ("k", "budget"),
    Method.TAKE: ("k", "n", "by", "p"),
    Method.SAMPLE: ("strata",),
}
_REQUIRED = {Method.DEPTH: "k", Method.TAKE: "n", Method.SAMPLE: "strata"}
_MEANINGS = {
    "k": "the number of ranks",
    "n": "the number of documents of a topic",
    "strata": "the ranks and the rate of each stratum",
}


class StratumSerializer(KnownFields, serializers.Serializer[Any]):
    ranks = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=MAX_DEPTH),
        min_length=2,
        max_length=2,
        help_text="the first and the last best rank, as in [11, 100]",
    )
    rate = serializers.FloatField(help_text="share of the documents, above 0 and at most 1")

    def validate_rate(self, rate: float) -> float:
        if not 0 < rate <= 1:
            raise serializers.ValidationError("a rate is above 0 and at most 1, as in 0.1")
        return rate


class ExtraSerializer(KnownFields, serializers.Serializer[Any]):
    topic_id = serializers.CharField(max_length=_MAX_ID)
    doc_id = serializers.RegexField(
        r"\A\S+\Z",
        max_length=_MAX_ID,
        error_messages={"invalid": "a document id contains no blank"},
    )


class ResidualSerializer(KnownFields, serializers.Serializer[Any]):
    collection = serializers.SlugField(max_length=64)
    version = serializers.IntegerField(
        min_value=1, max_value=_MAX_NUMBER, required=False, help_text="default: the active one"
    )


class PoolSerializer(KnownFields, serializers.Serializer[Any]):
    """A recipe, and what to do with it. `recipe` of the validated data is a Recipe."""

    method = ChoiceField(choices=[str(method) for method in Method])
    k = serializers.IntegerField(
        min_value=1,
        max_value=MAX_DEPTH,
        required=False,
        help_text=f"ranks of each run; of take {USUAL_DEPTH} by default",
    )
    budget = serializers.IntegerField(
        min_value=1,
        max_value=_MAX_NUMBER,
        required=False,
        allow_null=True,
        help_text="of depth: the most documents over all topics",
    )
    n = serializers.IntegerField(
        min_value=1,
        max_value=_MAX_NUMBER,
        required=False,
        help_text="of take: documents of a topic",
    )
    by = ChoiceField(
        choices=[str(fusion) for fusion in Fusion],
        required=False,
        help_text="of take: the score of documents",
    )
    p = serializers.FloatField(
        required=False, help_text="of take by rbp: persistence, between 0 and 1; 0.8 by default"
    )
    strata = StratumSerializer(many=True, required=False, help_text="of sample")
    priorities = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_MAX_NUMBER),
        required=False,
        allow_null=True,
        allow_empty=False,
        max_length=_MAX_LISTED,
        help_text="of entries in a campaign; default: all",
    )
    baselines = serializers.BooleanField(
        required=False, default=False, help_text="in a campaign: whether baselines contribute"
    )
    runs = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        allow_null=True,
        allow_empty=False,
        max_length=_MAX_LISTED,
        help_text="outside campaigns, ids of runs; default: all of the collection that you see",
    )
    topics = serializers.ListField(
        child=serializers.CharField(max_length=_MAX_ID),
        required=False,
        allow_null=True,
        allow_empty=False,
        max_length=_MAX_LISTED,
        help_text="default: all",
    )
    extra = ExtraSerializer(
        many=True, required=False, help_text="documents that no run has to contribute"
    )
    only_new = serializers.BooleanField(
        required=False,
        default=True,
        help_text="leave out documents that are judged, or in an earlier pool of the collection",
    )
    residual_of = ResidualSerializer(
        many=True, required=False, help_text="judgements with documents that are left out"
    )
    seed = serializers.IntegerField(
        min_value=0,
        max_value=2**53 - 1,
        required=False,
        allow_null=True,
        help_text="of samples and of the order of files; default: drawn",
    )
    note = serializers.CharField(
        max_length=500, required=False, allow_blank=True, default="", validators=[check_line]
    )
    dry_run = serializers.BooleanField(
        required=False, default=False, help_text="answer what the pool would have; store nothing"
    )

    def validate_p(self, p: float) -> float:
        if not 0 < p < 1:
            raise serializers.ValidationError("p is between 0 and 1, as in 0.8")
        return p

    def validate_strata(self, strata: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not 1 <= len(strata) <= MAX_STRATA:
            raise serializers.ValidationError(f"a sample has 1 to {MAX_STRATA} strata")
        return strata

    def validate_extra(self, extra: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if len(extra) > MAX_EXTRA:
            raise serializers.ValidationError(f"at most {MAX_EXTRA:,} documents")
        return extra

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        method = Method(attrs["method"])
        for other in _OF_METHOD.values():
            for name in other:
                if attrs.get(name) is not None and name not in _OF_METHOD[method]:
                    message = f"{name} has no meaning for the method {method}; leave it out"
                    raise InvalidInput(message, code="bad_recipe", pointer=f"/{name}")

        required = _REQUIRED[method]
        if attrs.get(required) is None:
            message = f"method {method} needs {required}: {_MEANINGS[required]}"
            raise InvalidInput(message, code="bad_recipe", pointer=f"/{required}")
        if attrs.get("p") is not None and attrs.get("by") != Fusion.RBP:
            message = 'p is the persistence of "by": "rbp"; leave it out, or name rbp'
            raise InvalidInput(message, code="bad_recipe", pointer="/p")

        attrs["recipe"] = _recipe(method, attrs)
        return attrs


def _recipe(method: Method, attrs: dict[str, Any]) -> Recipe:
    strata = tuple(
        Stratum(first=first, last=last, rate=stratum["rate"])
        for stratum in attrs.get("strata", ())
        for first, last in (stratum["ranks"],)
    )
    depth = attrs.get("k", USUAL_DEPTH)
    priorities, topics = attrs.get("priorities"), attrs.get("topics")

    return Recipe(
        method=method,
        k=max(stratum.last for stratum in strata) if strata else depth,
        budget=attrs.get("budget"),
        n=attrs.get("n"),
        by=Fusion(attrs.get("by", Fusion.RRF)),
        p=attrs.get("p", 0.8),
        strata=strata,
        priorities=tuple(sorted(set(priorities))) if priorities else None,
        baselines=attrs["baselines"],
        topics=tuple(topics) if topics else None,
        extra=tuple(ExtraDocument(**document) for document in attrs.get("extra", ())),
        only_new=attrs["only_new"],
    )


def residual_versions(user: Any, rows: list[dict[str, Any]]) -> list[Qrels]:
    """Return the judgements with documents that a pool leaves out.

    Raise InvalidInput for judgements that the user does not see, which is a version that does not
    exist or a collection with hidden ones.
    """
    versions = []
    for place, row in enumerate(rows):
        seen = Collection.objects.visible_to(user).scored_for(user).filter(slug=row["collection"])
        wanted = {"version": row["version"]} if "version" in row else {"active": True}
        qrels = Qrels.objects.filter(collection__in=seen, **wanted).first()
        if qrels is None:
            message = f"you see no such judgements of a collection {row['collection']!r}"
            raise InvalidInput(message, code="unknown_qrels", pointer=f"/residual_of/{place}")
        versions.append(qrels)
    return versions
