"""Shapes of what is computed of session sets."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from metrics.api.boards.serializers import CautionSerializer
from metrics.api.comparisons.serializers import OmnibusSerializer
from metrics.engine.significance.verdicts import REASONS, VERDICTS
from metrics.models import SessionEvaluation
from metrics.services.sessions.one_session import ShownDocument


def _figures(text: str = "", **options: Any) -> serializers.ListField:
    return serializers.ListField(child=serializers.FloatField(allow_null=True), help_text=text, **options)


def _counts(text: str = "") -> serializers.ListField:
    return serializers.ListField(child=serializers.IntegerField(), help_text=text)


class SessionMeanSerializer(serializers.Serializer[Any]):
    mean = serializers.FloatField(allow_null=True)
    sessions = serializers.IntegerField(help_text="sessions with a value")


class SessionCoverageSerializer(serializers.Serializer[Any]):
    judged = serializers.IntegerField(help_text="sessions with judgements")
    sessions = serializers.IntegerField()


class ReadFromSetSerializer(serializers.Serializer[Any]):
    session_set = serializers.UUIDField()
    qrels = serializers.IntegerField(allow_null=True, help_text="null where the log judges itself")
    judged_by = serializers.CharField()
    engine_version = serializers.CharField()
    stale = serializers.BooleanField()
    coverage = SessionCoverageSerializer()


class SessionNameSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(help_text="place in the log, from 1")
    session_id = serializers.CharField()
    topic_id = serializers.CharField()
    searcher = serializers.CharField(allow_blank=True)
    system = serializers.CharField(allow_blank=True)


class SystemMeansSerializer(serializers.Serializer[Any]):
    system = serializers.CharField(allow_blank=True)
    means = serializers.DictField(child=SessionMeanSerializer())


class SessionValuesSerializer(SessionNameSerializer):
    queries = serializers.IntegerField()
    values = serializers.DictField(child=serializers.FloatField(allow_null=True))


class PagedSerializer(serializers.Serializer[Any]):
    count = serializers.IntegerField()
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)


class SetValuesSerializer(ReadFromSetSerializer, PagedSerializer):
    """A session set's values."""

    cautions = CautionSerializer(many=True, help_text="of gains that leave out levels that are judged")
    means = serializers.DictField(child=SessionMeanSerializer(), help_text="over the chosen sessions")
    systems = SystemMeansSerializer(many=True)
    sessions = SessionValuesSerializer(many=True)


class SystemCurveSerializer(serializers.Serializer[Any]):
    system = serializers.CharField(allow_blank=True)
    values = _figures()


class SessionCurveSerializer(SystemCurveSerializer):
    sessions = serializers.IntegerField()
    ideal = _figures("of the same sessions; 1 throughout where the measure is normalised")


class SessionVectorSerializer(SessionNameSerializer):
    values = _figures("as long as the session is")


class SessionCurvesSerializer(ReadFromSetSerializer):
    """The mean curve of each system's sessions."""

    measure = serializers.CharField()
    length = serializers.IntegerField()
    curves = SessionCurveSerializer(many=True)
    sessions = SessionVectorSerializer(many=True, required=False)


class QueryCurveSerializer(SystemCurveSerializer):
    queries = serializers.IntegerField()


class WhichQueriesSerializer(serializers.Serializer[Any]):
    last = QueryCurveSerializer(many=True)
    others = QueryCurveSerializer(many=True)
    best = QueryCurveSerializer(many=True, help_text="the query of each session that adds most to it")
    all = QueryCurveSerializer(many=True)


class ReformulationsSerializer(serializers.Serializer[Any]):
    system = serializers.CharField(allow_blank=True)
    gained = serializers.IntegerField()
    lost = serializers.IntegerField()
    same = serializers.IntegerField()


class QueryCurvesSerializer(ReadFromSetSerializer):
    """Mean curves of single queries at ranks 1 to X."""

    measure = serializers.CharField()
    curves = WhichQueriesSerializer()
    reformulations = ReformulationsSerializer(many=True)


class LengthSerializer(serializers.Serializer[Any]):
    sessions = serializers.IntegerField()
    queries = serializers.IntegerField()
    mean = serializers.FloatField(allow_null=True, help_text="queries a session")
    counts = _counts("sessions of 1, 2, 3 and so on queries")


class SystemLengthSerializer(LengthSerializer):
    system = serializers.CharField(allow_blank=True)


class LengthsSerializer(ReadFromSetSerializer):
    """Sessions by number of queries."""

    all = LengthSerializer()
    systems = SystemLengthSerializer(many=True)


class ShownDocumentSerializer(serializers.Serializer[ShownDocument]):
    rank = serializers.IntegerField()
    doc_id = serializers.CharField()
    score = serializers.FloatField(allow_null=True)
    level = serializers.IntegerField(allow_null=True, help_text="null where nobody judged it")


class ShownQuerySerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    text = serializers.CharField(allow_blank=True)
    time = serializers.FloatField(allow_null=True, help_text="seconds")
    scanned = serializers.IntegerField(allow_null=True)
    clicked = serializers.ListField(child=serializers.CharField())
    count = serializers.IntegerField(help_text="documents that were returned")
    documents = ShownDocumentSerializer(many=True)
    contribution = serializers.FloatField(help_text="what the query adds to sDCG")
    ideal = serializers.FloatField(help_text="what it would add at best")
    share = serializers.FloatField(allow_null=True)
    change = serializers.FloatField(
        allow_null=True, help_text="by how much it gains more than the query before, their places left out"
    )
    reformulation = serializers.ChoiceField(choices=("gained", "lost", "same"), allow_null=True)


class OneSessionSerializer(ReadFromSetSerializer, SessionNameSerializer):
    """One session from query to query."""

    measure = serializers.CharField()
    judged = serializers.BooleanField()
    value = serializers.FloatField(allow_null=True)
    starts = _counts("the component at which each query begins, and the end")
    vector = _figures("sDCG")
    ideal = _figures("the ideal session's")
    normalised = _figures("the one divided by the other")
    queries = ShownQuerySerializer(many=True)


class SetNameSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    team = serializers.CharField()
    tag = serializers.CharField()
    created_at = serializers.DateTimeField()


class SystemRowSerializer(serializers.Serializer[Any]):
    rank = serializers.IntegerField(allow_null=True)
    code = serializers.CharField(
        allow_blank=True, help_text="why it has no rank where it is not stale: fewer_sessions, no_value"
    )
    reason = serializers.CharField(allow_blank=True)
    stale = serializers.BooleanField()
    name = serializers.CharField(help_text="team/tag:system, or team/tag where the log names no system")
    session_set = SetNameSerializer()
    system = serializers.CharField(allow_blank=True)
    sessions = serializers.IntegerField(help_text="those that count: judged, with something to gain")
    qrels = serializers.IntegerField(allow_null=True)
    engine_version = serializers.CharField()
    values = serializers.DictField(child=SessionMeanSerializer())


class SessionBoardSerializer(PagedSerializer):
    """A page of the board of systems."""

    collection = serializers.CharField()
    judged_by = serializers.CharField()
    measures = serializers.ListField(child=serializers.CharField())
    sort = serializers.CharField()
    order = serializers.CharField()
    states = serializers.DictField(child=serializers.IntegerField(), help_text="session sets by state")
    cautions = CautionSerializer(many=True, help_text="of gains that leave out levels that are judged")
    judged_otherwise = serializers.IntegerField(help_text="session sets that are not on this board")
    results = SystemRowSerializer(many=True)


class UsedDesignSerializer(serializers.Serializer[Any]):
    recognised = serializers.CharField()
    reason = serializers.CharField()
    used = serializers.CharField()


class ComparedSystemSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    session_set = serializers.UUIDField()
    system = serializers.CharField(allow_blank=True)
    sessions = serializers.IntegerField()
    with_value = serializers.IntegerField()
    mean = serializers.FloatField(allow_null=True, help_text="over its sessions with a value")


class SystemPairSerializer(serializers.Serializer[Any]):
    a = serializers.CharField()
    b = serializers.CharField()
    difference = serializers.FloatField(help_text="of a minus b, over what is compared")
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    statistic = serializers.FloatField(allow_null=True)
    p_value = serializers.FloatField(allow_null=True, help_text="null where the pair cannot be tested")
    p_adjusted = serializers.FloatField(allow_null=True)
    significant = serializers.BooleanField()
    verdict = serializers.ChoiceField(choices=VERDICTS, allow_null=True, help_text="of a against b")
    withheld = serializers.ChoiceField(choices=REASONS[1:], allow_null=True, help_text="why there is no verdict")


class SessionComparisonSerializer(serializers.Serializer[Any]):
    """Systems compared on one figure of their sessions."""

    collection = serializers.CharField()
    judged_by = serializers.CharField()
    qrels = serializers.IntegerField(allow_null=True, help_text="null where the logs judge themselves")
    engine_version = serializers.CharField()
    measure = serializers.CharField()
    design = UsedDesignSerializer()
    cells = serializers.IntegerField(help_text="pairs of topic and searcher, topics, or sessions that are compared")
    test = serializers.CharField()
    correction = serializers.CharField(allow_null=True)
    alpha = serializers.FloatField()
    confidence = serializers.FloatField()
    resamples = serializers.IntegerField(help_text="B of a test that draws")
    seed = serializers.IntegerField(help_text="of a test that draws")
    family = serializers.IntegerField()
    cautions = CautionSerializer(many=True)
    systems = ComparedSystemSerializer(many=True)
    omnibus = serializers.DictField(child=OmnibusSerializer())
    pairs = SystemPairSerializer(many=True)


class SessionEvaluationSerializer(serializers.ModelSerializer[SessionEvaluation]):
    qrels = serializers.IntegerField(source="qrels.version", allow_null=True, default=None)

    class Meta:
        model = SessionEvaluation
        fields = (
            "qrels", "judged_by", "engine_version", "state", "since", "attempts", "sessions_judged", "error_code",
            "error_message", "seconds",
        )  # fmt: skip
