"""The summary and the problems of every operation in the OpenAPI description.

The statuses follow from the path, the method and the attributes of the view. docs/api/errors.md
lists the same codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, NotRequired, TypedDict

from drf_spectacular.openapi import AutoSchema
from rest_framework.permissions import SAFE_METHODS

from runs.web.conditions import HEADER as CONDITION
from runs.web.idempotency import HEADER as KEY
from runs.web.shapes import shape
from runs.web.uploads import FILE_PARSERS

PROBLEM_TYPE = "application/problem+json"
# By status. Every other code of a 400 is that of a single field, such as `required`.
CODES = {
    400: "invalid bad_request bad_idempotency_key bad_etag out_of_range unknown_parameter "
    "repeated_parameter unknown_field read_only_field repeated_field no_own_judgements "
    "parse_error required unknown_measure bad_parameter too_many_measures no_curve "
    "pooled_measure sampled_judgements nothing_to_draw unknown_test unknown_correction unknown_run "
    "too_few_runs too_many_runs too_few_topics no_comparison too_many_combinations "
    "too_many_figures too_many_levels too_many_values too_much_work too_few_orders "
    "too_many_orders unknown_qrels too_many_versions too_many_results too_many_rows "
    "one_test_only bad_filter filter_too_complex bad_columns unknown_label ambiguous_label "
    "unknown_experiment unknown_agreement unknown_team unknown_zone bad_time unknown_view "
    "unknown_system unknown_session_set too_few_systems too_many_systems not_crossed "
    "format_not_installed token_in_address unknown_user not_owner bad_url "
    "port_not_permitted address_not_permitted bad_recipe bad_strata pool_too_large unknown_form "
    "bad_assessor no_pooled_runs no_bounds bad_level not_assigned not_in_pool "
    "bad_suite topics_interleaved bad_passage",
    401: "not_authenticated authentication_failed",
    403: "not_allowed missing_scope blind",
    404: "not_found no_active_qrels not_evaluated unknown_topic no_session_sets no_ranking "
    "has_replicates replicates_unfinished replicate_failed",
    406: "not_acceptable",
    408: "body_too_slow client_left",
    409: "tag_taken slug_taken too_many_tokens comparison_failed label_moved run_is_labelled "
    "cycle too_many_experiments too_many_notes too_many_views too_many_shares conflict "
    "sampled_judgements not_blind nothing_to_release release_needed already_released judgements_were_open "
    "already_member already_invited too_many_teams not_empty last_owner personal_team "
    "too_many_webhooks webhooks_off webhook_disabled unsigned_webhook secret_unreadable "
    "phase_planned phase_paused phase_closed phase_not_open phase_not_paused "
    "phase_has_opened phase_has_entries anonymity_only_ends_earlier release_in_the_past "
    "release_needs_qrels evaluations_running already_planned release_cancelled "
    "feedback_would_leak nothing_to_choose too_many_chosen phase_not_over "
    "deadline_only_moves_later deadline_has_passed no_extension confirmation_needed "
    "evaluation_needs_blind enter_through_phase entered_in_phase run_removed "
    "mail_not_set_up agreement_missing no_slot_left tag_is_team_name priority_taken "
    "not_withdrawable team_not_accepted already_in_campaign already_registered "
    "organiser_takes_part registration_closed roster_closed team_is_full campaign_archived "
    "campaign_published not_a_draft not_published no_phases too_many_campaigns "
    "too_many_phases too_many_agreements too_many_notices already_withdrawn doi_given "
    "too_many_snapshots nothing_to_pool pool_empty pool_frozen pool_not_frozen pool_outdated "
    "open_conflicts nothing_judged too_few_assessors too_many_assessors measure_taken has_values "
    "measure_in_use too_many_measures too_many_topics no_ranking too_many_replicates "
    "replicates_not_entered",
    410: "share_expired share_revoked snapshot_withdrawn",
    412: "changed_meanwhile",
    413: "body_too_large file_too_large decompressed_too_large too_large_at_once too_many_lines "
    "too_many_topics too_many_documents too_many_sessions too_many_queries too_many_systems "
    "artifact_quota",
    415: "unsupported_media_type artifact_type",
    422: "too_few_columns bad_score bad_level ambiguous_level duplicate_document "
    "conflicting_judgement missing_judgement added_judgement changed_judgement "
    "mixed_tags bad_run_tag undecodable_bytes control_character "
    "ambiguous_comment line_too_long id_too_long empty_run empty_qrels bad_probability "
    "repeated_document too_many_strata bad_gzip bad_zstd "
    "more_problems too_many_columns bad_expected conflicting_expected empty_known "
    "idempotency_key_reused bad_json bad_xml bad_topic_id missing_topic_id duplicate_topic "
    "no_topics text_too_long bad_value bad_queries no_queries missing_session_id "
    "bad_session_id duplicate_session bad_searcher bad_attributes bad_system bad_doc_id "
    "bad_rank bad_query_number mixed_session empty_sessions key_conflict bad_key not_finite "
    "too_large bad_cost bad_line bad_link bad_csv bad_column wrong_columns "
    "bad_text missing_doc_id no_documents too_many_documents "
    "too_many_rows unknown_run ambiguous_run repeated_run not_allowed "
    "tag_differs topic_missing bad_answer wrong_run_type wrong_tag too_many_documents_per_topic "
    "not_in_pool not_assigned missing_assessor too_many_assessors undeclared_measure out_of_bounds "
    "duplicate_value not_your_values no_values too_many_values missing_field bad_field "
    "bad_header duplicate_key reserved_key too_many_keys has_replicates",
    429: "throttled quota_exceeded attempts_exceeded too_many_comparisons too_many_at_once "
    "too_many_transfers",
    500: "server_error stored_file_corrupt stored_file_missing stored_value_corrupt "
    "database_damaged",
    503: "database_unavailable database_read_only migrations_missing storage_unavailable "
    "wrong_store shutting_down server_busy query_too_long too_slow",
    507: "storage_full",
}
_EVERYWHERE = (400, 401, 403, 406, 429, 500, 503)
# Of methods that change something: even one without a body refuses a body that it cannot read.
_OF_CHANGES = (408, 409, 413, 415, 507)
_WAITS = (429, 503, 507)
_METHOD = "(?:GET|POST|PUT|PATCH|DELETE)"
_SENTENCE = re.compile(r"(?<=[^.])\.(?: |$)")
# The characters of a line.
_LONG = 100


class ProblemEntry(TypedDict):
    code: str
    detail: str
    pointer: NotRequired[str]
    line: NotRequired[int | None]


class Problem(TypedDict):
    """Problem details of RFC 9457; a server error has a `request_id` to quote."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    instance: str
    errors: list[ProblemEntry]
    request_id: NotRequired[str]


class OperationSchema(AutoSchema):
    """The description of an operation with a summary and with its problems."""

    def get_summary(self) -> str:
        return summary_of(self.get_description(), self.method)

    def get_operation(self, *args: Any, **kwargs: Any) -> Any:
        operation = super().get_operation(*args, **kwargs)
        if operation:
            self.resolve_serializer(shape(Problem), "response")
            for status in sorted({*problems_of(self.view, self.method, operation)}):
                response = {"$ref": f"#/components/responses/{_name(status)}"}
                operation["responses"].setdefault(str(status), response)

            if getattr(getattr(self.view, self.method.lower(), None), "cached", False):
                operation["responses"]["304"] = {
                    "description": "what If-None-Match names is the present answer"
                }

        return operation


def summary_of(description: str, method: str) -> str:
    """Return a line on one method of an address from the description of all its methods.

    A description is such as "One note; PATCH changes its text, DELETE deletes it.".
    """
    text = " ".join(description.replace("`", "").split())
    before, *clauses = re.split(rf"(?:^|[,;:.] )({_METHOD}) ", text)
    predicates = dict(zip(clauses[::2], clauses[1::2], strict=True))
    subject = _SENTENCE.split(before)[0]
    if method not in predicates:
        return _shorten(subject)

    predicate = _shorten(re.split("[;:] ", _SENTENCE.split(predicates[method])[0])[0])
    # The noun of the subject is enough.
    noun = re.split("[,:]| that | of which | on which | with ", subject)[0]
    return f"{noun}: {predicate}" if noun else predicate[0].upper() + predicate[1:]


def _shorten(sentence: str) -> str:
    """Return a sentence without its last parts, so that it fits into a line."""
    while len(sentence) > _LONG and (parts := list(re.finditer("[,;:] ", sentence))):
        sentence = sentence[: parts[-1].start()]
    return sentence


def problems_of(view: Any, method: str, operation: dict[str, Any]) -> Iterator[int]:
    """Yield the statuses of an operation's problems.

    A view lists in `problems` those that do not follow from its form, and in `problems_of_bodies`
    those of methods with a body.
    """
    parameters = operation.get("parameters", ())
    headers = {parameter["name"] for parameter in parameters if parameter["in"] == "header"}

    yield from _EVERYWHERE
    yield from getattr(view, "problems", ())
    if any(parameter["in"] == "path" for parameter in parameters):
        yield 404

    if method not in SAFE_METHODS:
        yield from _OF_CHANGES
        if method != "DELETE":
            yield from getattr(view, "problems_of_bodies", ())

        takes_file = list(getattr(view, "parser_classes", ())) == list(FILE_PARSERS)
        if KEY in headers or (takes_file and method != "DELETE"):
            yield 422

    if CONDITION in headers:
        yield 412


def problems_described(result: dict[str, Any], **context: Any) -> dict[str, Any]:
    """Add the answer of each status to the description, once for all addresses."""
    result["components"]["responses"] = {_name(status): _answer(status) for status in CODES}
    return result


def _answer(status: int) -> dict[str, Any]:
    codes = ", ".join(f"`{code}`" for code in CODES[status].split())
    response: dict[str, Any] = {
        "description": f"{HTTPStatus(status).phrase}. Codes: {codes}",
        "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    if status in _WAITS:
        wait = {"schema": {"type": "integer"}, "description": "seconds to wait"}
        response["headers"] = {"Retry-After": wait}

    return response


def _name(status: int) -> str:
    return f"Problem{status}"
