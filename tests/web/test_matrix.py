"""Who may do what: every address, every method, everybody (cases A1, A2 and A14)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from runs.models import Collection, Run
from tests.conftest import GOOD, QRELS, SESSIONS
from tests.web.worlds import (
    ROLES,
    People,
    add_qrels,
    address,
    arguments,
    body_of,
    make_collection,
    make_runs,
)

# Its addresses are asked on PostgreSQL by test_hostile_requests and test_fuzz.
pytestmark = pytest.mark.words

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ALL = "200 200 200 200 200 200 200"
# Found, and then asked for the runs, or the topic, that are not named here.
UNASKED = "400 400 400 400 400 400 400"

# Of a team's own things, which nobody else sees.
OWN_TEAM = "404 200 404 404 404 200 404"

# For organisers, in a browser's session.
MANAGED = "302 403 403 200 403 200 200"
CHANGED = "401 403 403 303 403 303 303"

# The answers to anonymous, participant, member of the organising team, owner (organiser), other
# organiser, staff, and the owner with a token that may only read. The collection is public and
# open; the run is the participant's team's. The team is the organising one, its member the one in
# question, and the token the owner's.
MATRIX: dict[str, dict[str, str]] = {
    # The API of runs.
    "collections":        {"GET":    ALL,
                           "POST":   "401 201 201 201 201 201 403"},
    "collection":         {"GET":    ALL,
                           "PATCH":  "401 403 403 200 403 200 403"},
    "release":            {"POST":   "401 403 403 409 403 409 403"},
    "collection-audit":   {"GET":    "401 403 403 200 403 200 200"},
    "topics":             {"GET":    ALL,
                           "PUT":    "401 403 403 200 403 200 403"},
    "qrels-list":         {"GET":    ALL,
                           "POST":   "401 403 403 201 403 201 403"},
    "qrels":              {"GET":    ALL},
    "qrels-activate":     {"POST":   "401 403 403 200 403 200 403"},
    "qrels-file":         {"GET":    ALL},
    "labels":             {"GET":    ALL},
    "label":              {"GET":    "401 200 403 403 403 200 403",
                           "PUT":    "401 200 403 403 403 200 403",
                           "DELETE": "401 204 403 403 403 204 403"},
    "citation":           {"GET":    ALL},
    # The link is the owner's.
    "shares":             {"GET":    "401 200 200 200 200 200 200",
                           "POST":   "401 403 403 201 403 201 403"},
    "share":              {"DELETE": "401 404 404 204 404 204 403"},
    # It is for all readers.
    "views":              {"GET":    ALL,
                           "POST":   "401 201 201 201 201 201 403"},
    "view":               {"GET":    ALL,
                           "PATCH":  "401 403 403 200 403 200 403",
                           "DELETE": "401 403 403 204 403 204 403"},
    # Of the participant's team, with the run.
    "experiments":        {"GET":    ALL,
                           "POST":   "401 201 201 201 201 201 403"},
    "experiment":         {"GET":    OWN_TEAM,
                           "PATCH":  "401 200 404 404 404 200 403",
                           "DELETE": "401 204 404 404 404 204 403"},
    "experiment-runs":    {"POST":   "401 200 404 404 404 200 403"},
    "experiment-notes":   {"GET":    OWN_TEAM,
                           "POST":   "401 201 404 404 404 201 403"},
    "run-notes":          {"GET":    ALL,
                           "POST":   "401 201 403 403 403 201 403"},
    "collection-notes":   {"GET":    ALL,
                           "POST":   "401 403 403 201 403 201 403"},
    # The participant's, about the run.
    "note":               {"PATCH":  "401 200 403 403 403 403 403",
                           "DELETE": "401 204 403 403 403 204 403"},
    # The campaign is published, of the lab, and the participant takes part in it.
    "campaigns":          {"GET":    ALL,
                           "POST":   "401 201 201 201 201 201 403"},
    "campaign":           {"GET":    ALL,
                           "PATCH":  "401 403 403 200 403 200 403",
                           "DELETE": "401 403 403 409 403 409 403"},
    "campaign-publish":   {"POST":   "401 403 403 409 403 409 403"},
    "campaign-archive":   {"POST":   "401 403 403 200 403 200 403"},
    "campaign-notices":   {"GET":    ALL,
                           "POST":   "401 403 403 201 403 201 403"},
    "campaign-outbox":    {"GET":    "401 403 403 200 403 200 200"},
    "campaign-audit":     {"GET":    "401 403 403 200 403 200 200"},
    "campaign-config":    {"GET":    "401 403 403 200 403 200 200",
                           "PUT":    "401 403 403 200 403 200 403"},
    "agreements":         {"GET":    ALL,
                           "POST":   "401 403 403 201 403 201 403"},
    "agreement-sign":     {"POST":   "401 200 403 403 403 403 403"},
    "participations":     {"GET":    ALL,
                           "POST":   "401 409 201 409 201 201 403"},
    "participation":      {"GET":    "404 200 404 200 404 200 200",
                           "PATCH":  "401 403 404 200 404 200 403"},
    # An organiser is not in the team.
    "participation-invitations": {"POST": "401 403 404 403 404 201 403"},
    "participants":       {"GET":    "401 200 404 200 404 200 200",
                           "POST":   "401 409 404 403 404 403 403"},
    # The team has entries: organisers say why.
    "participant":        {"DELETE": "401 204 404 400 404 400 403"},
    "phases":             {"GET":    ALL,
                           "POST":   "401 403 403 201 403 201 403"},
    "phase":              {"GET":    ALL,
                           "PATCH":  "401 403 403 200 403 200 403"},
    # Without the end that is cancelled.
    "phase-extend":       {"POST":   "401 403 403 200 403 200 403",
                           "DELETE": "401 403 403 400 403 400 403"},
    "phase-pause":        {"POST":   "401 403 403 200 403 200 403"},
    "phase-resume":       {"POST":   "401 403 403 409 403 409 403"},
    "entries":            {"GET":    ALL,
                           "POST":   "401 201 403 403 403 403 403"},
    "priorities":         {"PUT":    "401 200 403 403 403 403 403"},
    "allowance":          {"GET":    "401 200 403 403 403 403 403"},
    "phase-results":      {"GET":    "401 200 403 403 403 403 403"},
    "packet":             {"GET":    "401 200 403 403 403 403 403"},
    "snapshots":          {"GET":    ALL,
                           "POST":   "401 403 403 409 403 409 403"},
    "snapshot":           {"GET":    ALL,
                           "PATCH":  "401 403 403 200 403 200 403"},
    "snapshot-archive":   {"GET":    ALL},
    "snapshot-withdraw":  {"POST":   "401 403 403 200 403 200 403"},
    "phase-board":        {"GET":    ALL},
    "phase-board-export": {"GET":    ALL},
    "phase-releases":     {"GET":    ALL,
                           "POST":   "401 403 403 201 403 201 403"},
    # It is planned.
    "phase-release":      {"GET":    "404 404 404 200 404 200 200",
                           "DELETE": "401 404 404 204 404 204 403"},
    "phase-release-now":  {"POST":   "401 404 404 200 404 200 403"},
    # It is withdrawn.
    "entry":              {"GET":    "404 200 404 200 404 200 200",
                           "PATCH":  "401 409 404 403 404 403 403"},
    "entry-withdraw":     {"POST":   "401 409 404 409 404 409 403"},
    "entry-disqualify":   {"POST":   "401 403 404 409 404 409 403"},
    "my-runs":            {"GET":    "401 200 200 200 200 200 200"},
    "my-withdrawn-runs":  {"GET":    "401 200 200 200 200 200 200"},
    # It was not withdrawn.
    "run-restore":        {"POST":   "401 404 404 404 404 404 403"},
    "session-set-restore": {"POST":  "401 404 404 404 404 404 403"},
    "experiments-page":   {"GET":    ALL,
                           "POST":   "401 303 303 303 303 303 303"},
    "experiment-page":    {"GET":    OWN_TEAM,
                           "POST":   "401 303 404 404 404 303 404"},
    "my-runs-page":       {"GET":    "302 200 200 200 200 200 200",
                           "POST":   "401 303 404 404 404 404 404"},
    "experiment-notes-page": {"GET": OWN_TEAM,
                           "POST":   "401 303 404 404 404 303 404"},
    "run-notes-page":     {"GET":    ALL,
                           "POST":   "401 303 403 403 403 303 403"},
    "collection-notes-page": {"GET": ALL,
                           "POST":   "401 403 403 303 403 303 303"},
    # It has no versions yet, so that only its team knows it.
    "systems":            {"GET":    ALL,
                           "POST":   "401 201 201 201 201 201 403"},
    "system":             {"GET":    "404 404 200 200 404 200 200",
                           "PATCH":  "401 404 200 200 404 200 403"},
    "run-states":         {"GET":    UNASKED},
    "runs":               {"GET":    ALL,
                           "POST":   "401 202 202 202 202 202 403"},
    "run":                {"GET":    ALL,
                           "PATCH":  "401 200 403 403 403 200 403",
                           "DELETE": "401 204 403 403 403 204 403"},
    "run-file":           {"GET":    ALL},
    "run-known":          {"GET":    ALL},
    "run-history":        {"GET":    ALL},
    "artifacts":          {"GET":    ALL,
                           "POST":   "401 201 403 403 403 201 403"},
    "artifact":           {"GET":    ALL,
                           "DELETE": "401 204 403 403 403 204 403"},
    "run-parents":        {"GET":    ALL,
                           "PUT":    "401 200 403 403 403 200 403"},
    "run-links":          {"GET":    ALL,
                           "PUT":    "401 200 403 403 403 200 403"},
    "run-tree":           {"GET":    ALL},
    "run-metadata":       {"PUT":    "401 200 403 403 403 200 403"},
    # Of the caller's own runs, which may be none.
    "runs-metadata":      {"PATCH":  "401 200 200 200 200 200 403"},
    "session-sets":       {"GET":    ALL,
                           "POST":   "401 202 202 202 202 202 403"},
    "session-set":        {"GET":    ALL,
                           "PATCH":  "401 200 403 403 403 200 403",
                           "DELETE": "401 204 403 403 403 204 403"},
    "session-set-file":   {"GET":    ALL},
    "me":                 {"GET":    "401 200 200 200 200 200 200",
                           "PATCH":  "401 200 200 200 200 200 403"},
    "teams":              {"GET":    "401 200 200 200 200 200 200",
                           "POST":   "401 201 201 201 201 201 403"},
    # It has a collection.
    "team":               {"DELETE": "401 404 403 409 404 409 403"},
    "team-invitations":   {"GET":    "401 404 200 200 404 200 200"},
    "team-invitation":    {"DELETE": "401 404 403 204 404 204 403"},
    # It is the other organiser who is invited.
    "invitations":        {"GET":    "401 200 200 200 200 200 200"},
    "invitation":         {"POST":   "401 404 404 404 201 404 403",
                           "DELETE": "401 404 404 404 204 404 403"},
    "members":            {"GET":    "401 404 200 200 404 200 200",
                           "POST":   "401 404 403 201 404 201 403"},
    "member":             {"PATCH":  "401 404 403 200 404 200 403",
                           "DELETE": "401 404 204 204 404 204 403"},
    "tokens":             {"GET":    "401 200 200 200 200 200 200",
                           "POST":   "401 201 201 201 201 201 403"},
    "token":              {"DELETE": "401 404 404 204 404 404 403"},
    "audit":              {"GET":    "401 404 404 404 404 200 404"},
    # This server sends none; the webhook is the collection's.
    "team-webhooks":      {"GET":    "401 404 403 200 404 200 200",
                           "POST":   "401 404 403 409 404 409 403"},
    "collection-webhooks": {"GET":   "401 403 403 200 403 200 200",
                           "POST":   "401 403 403 409 403 409 403"},
    "webhook":            {"GET":    "401 404 404 200 404 200 200",
                           "PATCH":  "401 404 404 200 404 200 403",
                           "DELETE": "401 404 404 204 404 204 403"},
    "webhook-secret":     {"POST":   "401 404 404 200 404 200 403"},
    "webhook-test":       {"POST":   "401 404 404 409 404 409 403"},
    "deliveries":         {"GET":    "401 404 404 200 404 200 200"},
    "delivery-again":     {"POST":   "401 404 404 202 404 202 403"},
    # The API of metrics.
    "leaderboard":        {"GET":    ALL},
    "leaderboard-export": {"GET":    ALL},
    "parameters":         {"GET":    ALL},
    "configurations":     {"GET":    ALL},
    "configurations-export": {"GET": ALL},
    "parameter":          {"PATCH":  "401 403 403 200 403 200 403"},
    "comparison":         {"GET":    ALL,
                           "POST":   "401 202 202 202 202 202 202"},
    "comparison-export":  {"GET":    ALL},
    "stored-comparison":  {"GET":    ALL},
    "stored-comparison-export": {"GET": ALL},
    "stored-comparison-chart": {"GET": ALL},
    "difference":         {"GET":    UNASKED},
    "what-if":            {"GET":    ALL},
    "importance":         {"GET":    ALL},
    "importance-export":  {"GET":    ALL},
    "frontier":           {"GET":    ALL},
    "frontier-export":    {"GET":    ALL},
    "orders":             {"GET":    ALL},
    "design":             {"GET":    ALL},
    "judgements":         {"GET":    ALL},
    "difficulty":         {"GET":    ALL},
    "topic":              {"GET":    UNASKED},
    "heat-map-export":    {"GET":    ALL},
    "evaluations":        {"GET":    ALL,
                           "POST":   "401 403 403 202 403 202 403"},
    "collection-values":  {"GET":    ALL},
    "collection-curves":  {"GET":    ALL},
    "collection-precision-recall": {"GET": ALL},
    "collection-values-export": {"GET": ALL},
    "run-values":         {"GET":    ALL},
    "run-values-export":  {"GET":    ALL},
    "run-curve":          {"GET":    ALL},
    "run-precision-recall": {"GET":  ALL},
    "run-ranking":        {"GET":    UNASKED},
    "run-chart":          {"GET":    ALL},
    "collection-chart":   {"GET":    ALL},
    "run-evaluations":    {"GET":    ALL,
                           "POST":   "401 202 403 403 403 202 403"},
    "session-board":      {"GET":    ALL},
    "session-board-export": {"GET":  ALL},
    "session-comparison": {"GET":    ALL},
    "session-comparison-export": {"GET": ALL},
    "session-values":     {"GET":    ALL},
    "session-curves":     {"GET":    ALL},
    "session-queries":    {"GET":    ALL},
    "session-lengths":    {"GET":    ALL},
    "session-searchers":  {"GET":    ALL},
    "session-evaluations": {"GET":   ALL},
    "one-session":        {"GET":    ALL},
    "session-chart":      {"GET":    ALL},
    "measures":           {"GET":    ALL},
    "measure":            {"GET":    ALL},
    "version":            {"GET":    ALL},
    "schema":             {"GET":    ALL},
    "api-docs":           {"GET":    ALL},
    # Pages, in a browser's session.
    "home":               {"GET":    ALL},
    # They lead to the home page and to the documentation.
    "collections-page":   {"GET":    ALL.replace("200", "302")},
    "api-root":           {"GET":    ALL.replace("200", "302")},
    "collection-page":    {"GET":    ALL},
    "board-piece":        {"GET":    ALL},
    "parameters-page":    {"GET":    ALL},
    "configurations-page": {"GET":   ALL},
    "importance-page":    {"GET":    ALL},
    "frontier-page":      {"GET":    ALL},
    "describe-parameter": {"GET":    "302 303 303 303 303 303 303",
                           "POST":   "401 403 403 303 403 303 303"},
    # Those who have no runs here rename nothing.
    "rename-parameter-page": {"GET": "302 200 200 200 200 200 200",
                           "POST":   "401 303 400 400 400 400 400"},
    "views-page":         {"GET":    ALL,
                           "POST":   "401 303 303 303 303 303 303"},
    # It leads to the leaderboard.
    "view-page":          {"GET":    ALL.replace("200", "303")},
    "shares-page":        {"GET":    "302 200 200 200 200 200 200",
                           "POST":   "401 403 403 201 403 201 201"},
    # Without its secret, and without the cookie that it sets.
    "snapshot-page":      {"GET":    ALL},
    "snapshot-file":      {"GET":    ALL},
    "open-share":         {"GET":    ALL.replace("200", "404")},
    "shared-page":        {"GET":    ALL.replace("200", "404")},
    "shared-file":        {"GET":    ALL.replace("200", "404")},
    "shared-chart":       {"GET":    ALL.replace("200", "404")},
    "comparison-page":    {"GET":    ALL},
    # Reading it leads back to the page that asks.
    "queue-comparison":   {"GET":    ALL.replace("200", "303"),
                           "POST":   "401 303 303 303 303 303 303"},
    "stored-comparison-page": {"GET": ALL},
    "stored-comparison-status": {"GET": ALL},
    "system-page":        {"GET":    "404 404 200 200 404 200 200"},
    "system-change-page": {"GET":    "302 404 200 200 404 200 200",
                           "POST":   "401 404 303 303 404 303 303"},
    "run-page":           {"GET":    ALL},
    "run-status":         {"GET":    ALL},
    "ranking-page":       {"GET":    ALL},
    "what-if-page":       {"GET":    ALL},
    "judgements-page":    {"GET":    ALL},
    "topics-page":        {"GET":    ALL},
    "topic-page":         {"GET":    ALL},
    "heat-map-page":      {"GET":    ALL},
    "orders-page":        {"GET":    ALL},
    "design-page":        {"GET":    ALL},
    "sessions-page":      {"GET":    ALL},
    "session-set-page":   {"GET":    ALL},
    "session-set-status": {"GET":    ALL},
    "session-page":       {"GET":    ALL},
    "measures-page":      {"GET":    ALL},
    "measure-page":       {"GET":    ALL},
    "measure-suggestions": {"GET":   ALL},
    "vega-script":        {"GET":    ALL},
    "login":              {"GET":    ALL,
                           "POST":   ALL},
    "logout":             {"POST":   ALL.replace("200", "302")},
    # Whoever is not logged in is sent to log in; a session has no scopes, so the reader is the
    # owner here.
    "run-parameters-page": {"GET":   "302 200 403 403 403 200 403",
                           "POST":   "401 303 403 403 403 303 403"},
    "run-artifacts-page": {"GET":    "302 200 403 403 403 200 403",
                           "POST":   "401 303 403 403 403 303 403"},
    "run-lineage-page":   {"GET":    "302 200 403 403 403 200 403",
                           "POST":   "401 303 403 403 403 303 403"},
    "submit-page":        {"GET":    "302 200 200 200 200 200 200",
                           "POST":   "401 303 303 303 303 303 303"},
    "new-collection-page": {"GET":   "302 200 200 200 200 200 200",
                           "POST":   "401 303 303 303 303 303 303"},
    "manage-page":        {"GET":    MANAGED,
                           "POST":   CHANGED},
    "manage-topics-page": {"GET":    MANAGED,
                           "POST":   CHANGED},
    "manage-judgements-page": {"GET": MANAGED,
                           "POST":   CHANGED},
    "manage-measures-page": {"GET":  MANAGED,
                           "POST":   CHANGED},
    # It is open.
    "manage-access-page": {"GET":    MANAGED,
                           "POST":   CHANGED.replace("303", "409")},
    "manage-quota-page":  {"GET":    MANAGED,
                           "POST":   CHANGED},
    # Nothing has been withdrawn.
    "manage-withdrawn-page": {"GET": MANAGED,
                           "POST":   CHANGED.replace("303", "404")},
    "manage-audit-page":  {"GET":    MANAGED},
    "run-change-page":    {"GET":    "302 200 403 403 403 200 403",
                           "POST":   "401 303 403 403 403 303 403"},
    "session-set-change-page": {"GET": "302 200 403 403 403 200 403",
                           "POST":   "401 303 403 403 403 303 403"},
    "submit-sessions-page": {"GET":  "302 200 200 200 200 200 200",
                           "POST":   "401 303 303 303 303 303 303"},
    # There are accounts.
    "first-account-page": {"GET":    ALL.replace("200", "302"),
                           "POST":   ALL.replace("200", "409")},
    # With a code that is none.
    "join-page":          {"GET":    ALL,
                           "POST":   ALL.replace("200", "404")},
    "teams-page":         {"GET":    "302 200 200 200 200 200 200",
                           "POST":   "401 303 303 303 303 303 303"},
    "team-page":          {"GET":    "302 404 200 200 404 200 200",
                           "POST":   "401 404 403 201 404 201 201"},
    "campaigns-page":     {"GET":    ALL},
    "phase-board-page":   {"GET":    ALL},
    "campaign-page":      {"GET":    ALL},
    "new-campaign-page":  {"GET":    "302 200 200 200 200 200 200",
                           "POST":   "401 303 303 303 303 303 303"},
    "campaign-desk-page": {"GET":    MANAGED},
    "campaign-teams-page": {"GET":   MANAGED},
    "campaign-entries-page": {"GET": MANAGED},
    "campaign-audit-page": {"GET":   MANAGED},
    "campaign-own-entry-page": {"GET": MANAGED,
                           "POST":   CHANGED},
    "campaign-agreements-page": {"GET": MANAGED,
                           "POST":   CHANGED},
    "campaign-notices-page": {"GET": MANAGED,
                           "POST":   CHANGED},
    "campaign-settings-page": {"GET": MANAGED,
                           "POST":   CHANGED},
    # The phase is not over.
    "campaign-snapshot-page": {"GET": MANAGED,
                           "POST":   "401 403 403 409 403 409 409"},
    "campaign-config-page": {"GET": MANAGED,
                           "POST":   CHANGED},
    "campaign-copy-page": {"GET": MANAGED,
                           "POST":   CHANGED},
    "campaign-new-phase-page": {"GET": MANAGED,
                           "POST":   CHANGED},
    "campaign-phase-page": {"GET":   MANAGED,
                           "POST":   CHANGED},
    "campaign-act-page":  {"GET":    MANAGED,
                           "POST":   CHANGED},
    # The participant is the only one who takes part.
    "campaign-team-page": {"GET":    "302 200 200 200 200 200 200",
                           "POST":   "401 303 403 403 403 403 403"},
    "campaign-enter-page": {"GET":   "302 200 302 302 302 302 302",
                           "POST":   "401 303 403 403 403 403 403"},
    # It was withdrawn.
    "campaign-entry-page": {"GET":   "302 200 404 200 404 200 200",
                           "POST":   "401 409 404 403 404 403 403"},
    "account-page":       {"GET":    "302 200 200 200 200 200 200",
                           "POST":   "401 404 404 404 200 404 404"},
    "tokens-page":        {"GET":    "302 200 200 200 200 200 200",
                           "POST":   "401 201 201 201 201 201 201"},
    "team-webhooks-page": {"GET":    "302 404 403 200 404 200 200",
                           "POST":   "401 404 403 409 404 409 409"},
    "collection-webhooks-page": {"GET": "302 403 403 200 403 200 200",
                           "POST":   "401 403 403 409 403 409 409"},
    # For machines: no worker goes round here, and no token for the figures is set.
    "healthz":            {"GET":    ALL},
    "readyz":             {"GET":    ALL.replace("200", "503")},
    "metrics":            {"GET":    ALL.replace("200", "404")},
}  # fmt: skip

# What differs where the collection is blind.
SCORES = "403 403 403 200 403 200 200"
OWN_RUN = "404 200 404 200 404 200 200"
OWN_SCORES = "404 403 404 200 404 200 200"
# Not even that somebody asked for it is told.
STORED = "404 404 404 200 404 200 200"
BLIND: dict[str, dict[str, str]] = {
    "release":            {"POST":   "401 403 403 200 403 200 403"},
    "qrels-list":         {"GET":    SCORES},
    "qrels":              {"GET":    SCORES},
    "qrels-file":         {"GET":    SCORES},
    "run":                {"GET":    OWN_RUN,
                           "PATCH":  "401 200 404 403 404 200 403",
                           "DELETE": "401 204 404 403 404 204 403"},
    "label":              {"GET":    "401 200 404 403 404 200 403",
                           "PUT":    "401 200 404 403 404 200 403",
                           "DELETE": "401 204 404 403 404 204 403"},
    "citation":           {"GET":    SCORES},
    "phase-results":      {"GET":    "401 403 403 403 403 403 403"},
    "packet":             {"GET":    "401 403 403 403 403 403 403"},
    "snapshot":           {"GET":    STORED,
                           "PATCH":  "401 404 404 200 404 200 403"},
    "snapshot-archive":   {"GET":    STORED},
    "snapshot-withdraw":  {"POST":   "401 404 404 200 404 200 403"},
    "snapshot-page":      {"GET":    STORED},
    "snapshot-file":      {"GET":    STORED},
    "views":              {"GET":    SCORES,
                           "POST":   "401 403 403 201 403 201 403"},
    "view":               {"GET":    STORED,
                           "PATCH":  "401 404 404 200 404 200 403",
                           "DELETE": "401 404 404 204 404 204 403"},
    "views-page":         {"GET":    SCORES,
                           "POST":   "401 403 403 303 403 303 303"},
    "view-page":          {"GET":    STORED.replace("200", "303")},
    "run-file":           {"GET":    OWN_RUN},
    "run-known":          {"GET":    OWN_RUN},
    "run-history":        {"GET":    OWN_RUN},
    "artifacts":          {"GET":    OWN_RUN,
                           "POST":   "401 201 404 403 404 201 403"},
    "artifact":           {"GET":    OWN_RUN,
                           "DELETE": "401 204 404 403 404 204 403"},
    "run-artifacts-page": {"GET":    "302 200 404 403 404 200 403",
                           "POST":   "401 303 404 403 404 303 403"},
    "run-notes":          {"GET":    OWN_RUN,
                           "POST":   "401 201 404 403 404 201 403"},
    "run-notes-page":     {"GET":    OWN_RUN,
                           "POST":   "401 303 404 403 404 303 403"},
    "run-parents":        {"GET":    OWN_RUN,
                           "PUT":    "401 200 404 403 404 200 403"},
    "run-links":          {"GET":    OWN_RUN,
                           "PUT":    "401 200 404 403 404 200 403"},
    "run-tree":           {"GET":    OWN_RUN},
    "run-lineage-page":   {"GET":    "302 200 404 403 404 200 403",
                           "POST":   "401 303 404 403 404 303 403"},
    "run-metadata":       {"PUT":    "401 200 404 403 404 200 403"},
    "run-parameters-page": {"GET":   "302 200 404 403 404 200 403",
                           "POST":   "401 303 404 403 404 303 403"},
    "session-set":        {"GET":    OWN_RUN,
                           "PATCH":  "401 200 404 403 404 200 403",
                           "DELETE": "401 204 404 403 404 204 403"},
    "session-set-file":   {"GET":    OWN_RUN},
    "session-board":      {"GET":    SCORES},
    "session-board-export": {"GET":  SCORES},
    "session-comparison": {"GET":    SCORES},
    "session-comparison-export": {"GET": SCORES},
    "session-values":     {"GET":    OWN_SCORES},
    "session-curves":     {"GET":    OWN_SCORES},
    "session-queries":    {"GET":    OWN_SCORES},
    "session-lengths":    {"GET":    OWN_SCORES},
    "session-searchers":  {"GET":    OWN_SCORES},
    "session-evaluations": {"GET":   OWN_SCORES},
    "one-session":        {"GET":    OWN_SCORES},
    "session-chart":      {"GET":    OWN_SCORES},
    "session-set-page":   {"GET":    OWN_RUN},
    "session-set-status": {"GET":    OWN_RUN},
    "session-page":       {"GET":    OWN_SCORES},
    # Whoever sees no two runs has nothing to compare.
    "configurations":     {"GET":    "400 200 400 200 400 200 200"},
    "configurations-export": {"GET": "400 200 400 200 400 200 200"},
    "leaderboard":        {"GET":    SCORES},
    "phase-board":        {"GET":    SCORES},
    "phase-board-export": {"GET":    SCORES},
    "phase-board-page":   {"GET":    SCORES},
    "leaderboard-export": {"GET":    SCORES},
    "comparison":         {"GET":    SCORES,
                           "POST":   "401 403 403 202 403 202 202"},
    "comparison-export":  {"GET":    SCORES},
    "stored-comparison":  {"GET":    STORED},
    "stored-comparison-export": {"GET": STORED},
    "stored-comparison-chart": {"GET": STORED},
    "stored-comparison-page": {"GET": STORED},
    "stored-comparison-status": {"GET": STORED},
    "queue-comparison":   {"POST":   "401 403 403 303 403 303 303"},
    "manage-access-page": {"POST":   CHANGED},
    "run-change-page":    {"GET":    "302 200 404 403 404 200 403",
                           "POST":   "401 303 404 403 404 303 403"},
    "session-set-change-page": {"GET": "302 200 404 403 404 200 403",
                           "POST":   "401 303 404 403 404 303 403"},
    "difference":         {"GET":    SCORES.replace("200", "400")},
    "what-if":            {"GET":    SCORES},
    "importance":         {"GET":    SCORES},
    "importance-export":  {"GET":    SCORES},
    "frontier":           {"GET":    SCORES},
    "frontier-export":    {"GET":    SCORES},
    "orders":             {"GET":    SCORES},
    "design":             {"GET":    SCORES},
    "judgements":         {"GET":    SCORES},
    "difficulty":         {"GET":    SCORES},
    "topic":              {"GET":    SCORES.replace("200", "400")},
    "heat-map-export":    {"GET":    SCORES},
    "evaluations":        {"GET":    SCORES},
    "collection-values":  {"GET":    SCORES},
    "collection-curves":  {"GET":    SCORES},
    "collection-precision-recall": {"GET": SCORES},
    "collection-values-export": {"GET": SCORES},
    "run-values":         {"GET":    OWN_SCORES},
    "run-values-export":  {"GET":    OWN_SCORES},
    "run-curve":          {"GET":    OWN_SCORES},
    "run-precision-recall": {"GET":  OWN_SCORES},
    "run-evaluations":    {"GET":    OWN_SCORES,
                           "POST":   "401 403 404 403 404 202 403"},
    "run-page":           {"GET":    OWN_RUN},
    "run-status":         {"GET":    OWN_RUN},
    "ranking-page":       {"GET":    OWN_SCORES},
    "run-ranking":        {"GET":    OWN_SCORES.replace("200", "400")},
    "run-chart":          {"GET":    OWN_SCORES},
    "collection-chart":   {"GET":    SCORES},
}  # fmt: skip

PAGES = (
    "home", "collections-page", "api-root", "collection-page", "board-piece", "comparison-page", "queue-comparison",
    "stored-comparison-page", "stored-comparison-status", "what-if-page", "judgements-page", "orders-page",
    "design-page", "run-page", "run-status", "ranking-page", "parameters-page", "configurations-page",
    "importance-page", "frontier-page",
    "describe-parameter", "run-parameters-page", "rename-parameter-page",
    "run-artifacts-page",
    "sessions-page", "session-set-page", "session-set-status", "session-page", "measures-page", "measure-page",
    "measure-suggestions", "submit-page", "account-page", "tokens-page", "team-webhooks-page",
    "collection-webhooks-page", "login", "logout", "vega-script",
    "new-collection-page", "manage-page", "manage-topics-page", "manage-judgements-page", "manage-measures-page",
    "manage-access-page", "manage-quota-page", "manage-withdrawn-page", "manage-audit-page", "run-change-page",
    "session-set-change-page", "submit-sessions-page", "first-account-page", "join-page", "teams-page", "team-page",
    "views-page", "view-page", "shares-page", "open-share", "shared-page", "shared-file", "shared-chart",
    "topics-page", "topic-page", "heat-map-page",
    "experiments-page", "experiment-page", "my-runs-page", "run-notes-page", "collection-notes-page",
    "experiment-notes-page",
    "system-page", "system-change-page", "run-lineage-page",
    "snapshot-page", "snapshot-file",
    "campaigns-page", "campaign-page", "phase-board-page",
    "new-campaign-page", "campaign-desk-page", "campaign-teams-page",
    "campaign-entries-page", "campaign-own-entry-page", "campaign-agreements-page", "campaign-settings-page",
    "campaign-notices-page", "campaign-audit-page", "campaign-snapshot-page", "campaign-config-page",
    "campaign-copy-page",
    "campaign-new-phase-page", "campaign-phase-page", "campaign-act-page", "campaign-team-page", "campaign-enter-page",
    "campaign-entry-page",
)  # fmt: skip


def file_of(content: str) -> dict[str, Any]:
    return {"file": SimpleUploadedFile("file", content.encode())}


HOOK = {"url": "https://ci.example.org/", "events": ["run.failed"], "format": "standard"}
# What makes a request that whoever may make it would see succeed.
BODIES: dict[tuple[str, str], Callable[[], dict[str, Any]]] = {
    ("collections", "POST"): lambda: {"slug": "new", "name": "New"},
    ("collection", "PATCH"): lambda: {"name": "Renamed"},
    ("topics", "PUT"): lambda: file_of("1\tanother\n"),
    ("qrels-list", "POST"): lambda: file_of("1 0 b 1\n"),
    ("runs", "POST"): lambda: file_of(GOOD.replace("good", "another")),
    ("session-sets", "POST"): lambda: file_of(SESSIONS.replace("s1", "s3")),
    ("session-set", "PATCH"): lambda: {"description": "changed"},
    ("run", "PATCH"): lambda: {"description": "changed"},
    ("run-metadata", "PUT"): lambda: {"metadata": {"k1": 1.2}},
    ("runs-metadata", "PATCH"): lambda: {"filter": "tag:good", "metadata": {"seed": 1}},
    ("artifacts", "POST"): lambda: {**file_of("k1: 0.9"), "name": "config.yaml"},
    ("run-artifacts-page", "POST"): lambda: {**file_of("k1: 0.9"), "name": "config.yaml"},
    ("run-parameters-page", "POST"): lambda: {"parameters": "k1 = 1.2"},
    ("parameter", "PATCH"): lambda: {"unit": "ms"},
    ("rename-parameter-page", "POST"): lambda: {
        "filter": "own:yes",
        "name": "k1",
        "new": "bm25.k1",
    },
    ("describe-parameter", "POST"): lambda: {"space": "param", "name": "k1", "unit": "ms"},
    # It names the other of the participant's runs now.
    ("label", "PUT"): lambda: {"run": str(Run.objects.filter(labels=None).latest("created_at").pk)},
    ("views", "POST"): lambda: {"name": "New", "query": "filter=tag:good&measures=AP"},
    ("view", "PATCH"): lambda: {"name": "Renamed"},
    ("shares", "POST"): lambda: {
        "kind": "leaderboard",
        "collection": "one",
        "query": "filter=tag:good",
    },
    ("shares-page", "POST"): lambda: {
        "action": "create",
        "kind": "leaderboard",
        "collection": "one",
        "days": "30",
    },
    ("views-page", "POST"): lambda: {"action": "create", "name": "New", "query": "", "share": "me"},
    ("experiments", "POST"): lambda: {"slug": "new"},
    ("experiment", "PATCH"): lambda: {"goal": "changed"},
    ("experiment-runs", "POST"): lambda: {"add": [str(Run.objects.latest("created_at").pk)]},
    ("run-notes", "POST"): lambda: {"text": "seen again"},
    ("collection-notes", "POST"): lambda: {"text": "seen again"},
    ("experiment-notes", "POST"): lambda: {"text": "seen again"},
    ("note", "PATCH"): lambda: {"text": "changed"},
    ("experiments-page", "POST"): lambda: {"name": "New"},
    ("experiment-page", "POST"): lambda: {"action": "describe", "goal": "changed"},
    # The other of the participant's runs, which no label names.
    ("my-runs-page", "POST"): lambda: {
        "action": "withdraw",
        "runs": str(Run.objects.filter(labels=None).latest("created_at").pk),
    },
    ("run-notes-page", "POST"): lambda: {"action": "write", "text": "seen again"},
    ("collection-notes-page", "POST"): lambda: {"action": "write", "text": "seen again"},
    ("experiment-notes-page", "POST"): lambda: {"action": "write", "text": "seen again"},
    ("campaigns", "POST"): lambda: {"slug": "new", "name": "New"},
    ("campaign", "PATCH"): lambda: {"name": "Renamed"},
    ("campaign-notices", "POST"): lambda: {"title": "More topics", "text": "Soon."},
    ("campaign-config", "PUT"): lambda: {"campaign": {"name": "Renamed"}},
    ("agreements", "POST"): lambda: {"title": "More", "text": "Be kind."},
    ("agreement-sign", "POST"): lambda: {"typed_name": "P. Articipant"},
    ("participation", "PATCH"): lambda: {"state": "removed"},
    ("phases", "POST"): lambda: {
        "slug": "new",
        "name": "New",
        "collection": "one",
        "kind": "training",
        "opens_at": "2090-01-01",
        "closes_at": "2090-02-01",
    },
    ("phase", "PATCH"): lambda: {"name": "Renamed"},
    ("phase-extend", "POST"): lambda: {
        "closes_at": "2091-01-01",
        "reason": "power cut",
        "confirm": True,
    },
    ("phase-pause", "POST"): lambda: {"reason": "power cut"},
    ("phase-releases", "POST"): lambda: {"audience": "public"},
    ("entries", "POST"): lambda: file_of(GOOD.replace("good", "another")),
    ("snapshot", "PATCH"): lambda: {"doi": "10.5281/zenodo.1"},
    ("snapshot-withdraw", "POST"): lambda: {"reason": "power cut"},
    ("priorities", "PUT"): lambda: {"order": []},
    ("entry", "PATCH"): lambda: {"run_type": ""},
    ("entry-disqualify", "POST"): lambda: {"reason": "power cut"},
    ("new-campaign-page", "POST"): lambda: {
        "name": "New",
        "registration": "open",
        "tag_scope": "team",
    },
    ("campaign-own-entry-page", "POST"): lambda: {
        "role": "baseline",
        "action": "enter",
        **file_of(GOOD.replace("good", "another")),
    },
    ("campaign-agreements-page", "POST"): lambda: {
        "title": "More",
        "text": "Be kind.",
        "required_of": "one_owner",
    },
    ("campaign-notices-page", "POST"): lambda: {
        "title": "More topics",
        "text": "Soon.",
        "audience": "public",
    },
    ("campaign-settings-page", "POST"): lambda: {
        "name": "Renamed",
        "registration": "open",
        "tag_scope": "team",
    },
    ("campaign-copy-page", "POST"): lambda: {"name": "Next year"},
    ("campaign-config-page", "POST"): lambda: {
        "action": "apply",
        "text": "campaign: {name: Renamed}",
    },
    ("campaign-new-phase-page", "POST"): lambda: {
        "name": "New",
        "collection": "one",
        "kind": "training",
        "opens_at_day": "2090-01-01",
        "closes_at_day": "2090-02-01",
        "zone": "AoE",
    },
    ("campaign-phase-page", "POST"): lambda: {
        "name": "Renamed",
        "opens_at_day": "2020-01-01",
        "closes_at_day": "2089-12-31",
        "zone": "UTC",
    },
    ("campaign-team-page", "POST"): lambda: {
        "action": "sign",
        "agreement": "ab" * 32,
        "typed_name": "P. Articipant",
    },
    ("campaign-enter-page", "POST"): lambda: {
        "action": "enter",
        **file_of(GOOD.replace("good", "another")),
    },
    ("campaign-entry-page", "POST"): lambda: {"action": "save"},
    ("run-parents", "PUT"): lambda: {"parents": []},
    ("run-links", "PUT"): lambda: {"links": [{"kind": "code", "url": "https://example.org/"}]},
    ("run-lineage-page", "POST"): lambda: {"links": "code https://example.org/"},
    ("systems", "POST"): lambda: {"slug": "new"},
    ("system", "PATCH"): lambda: {"name": "Renamed"},
    ("system-change-page", "POST"): lambda: {"action": "describe", "name": "Renamed"},
    ("teams", "POST"): lambda: {"slug": "new", "name": "New"},
    ("members", "POST"): lambda: {"username": "participant"},
    ("member", "PATCH"): lambda: {"role": "owner"},
    ("comparison", "POST"): lambda: {"tests": ["sign"], "seed": 1},
    ("me", "PATCH"): lambda: {"email": ""},
    ("tokens", "POST"): lambda: {"name": "new"},
    ("team-webhooks", "POST"): lambda: HOOK,
    ("collection-webhooks", "POST"): lambda: HOOK,
    ("webhook", "PATCH"): lambda: {"events": ["run.evaluated"]},
    ("evaluations", "POST"): lambda: {"scores": "float32"},
    ("run-evaluations", "POST"): lambda: {"scores": "float32"},
    ("submit-page", "POST"): lambda: file_of(GOOD.replace("good", "another")),
    ("new-collection-page", "POST"): lambda: {"name": "New"},
    ("manage-page", "POST"): lambda: {"name": "Renamed", "level_labels": "1 = relevant"},
    ("manage-topics-page", "POST"): lambda: file_of("1\tanother\n"),
    ("manage-judgements-page", "POST"): lambda: file_of("1 0 b 1\n"),
    ("manage-measures-page", "POST"): lambda: {"add": "P@7"},
    ("manage-access-page", "POST"): lambda: {"action": "release", "confirm": "one"},
    ("manage-quota-page", "POST"): lambda: {"daily_submissions": "3"},
    ("manage-withdrawn-page", "POST"): lambda: {
        "kind": "run",
        "id": "00000000-0000-4000-8000-000000000000",
    },
    ("run-change-page", "POST"): lambda: {"action": "withdraw"},
    ("session-set-change-page", "POST"): lambda: {"action": "describe", "description": "changed"},
    ("submit-sessions-page", "POST"): lambda: file_of(SESSIONS.replace("s1", "s3")),
    ("first-account-page", "POST"): lambda: {
        "code": "x",
        "username": "new",
        "password": "x",
        "again": "x",
    },
    ("join-page", "POST"): lambda: {"code": "x"},
    ("teams-page", "POST"): lambda: {"name": "New"},
    ("team-page", "POST"): lambda: {"action": "link"},
    ("account-page", "POST"): lambda: {"action": "decline", "team": "lab"},
    ("collection-webhooks-page", "POST"): lambda: {"action": "create", **HOOK},
    ("team-webhooks-page", "POST"): lambda: {"action": "create", **HOOK},
    ("tokens-page", "POST"): lambda: {"name": "new", "scopes": ["read"]},
}


def patterns(resolver: URLResolver | None = None) -> Iterator[URLPattern]:
    """Every pattern of the project but those of the administration."""
    for entry in (resolver or get_resolver()).url_patterns:
        if isinstance(entry, URLPattern):
            yield entry
        elif entry.namespace != "admin":
            yield from patterns(entry)


def parameters_of() -> dict[str, list[str]]:
    return {str(pattern.name): list(pattern.pattern.converters) for pattern in patterns()}


def test_every_address_is_in_the_table() -> None:
    """A1: an address that is not in the table has no rule."""
    assert {pattern.name for pattern in patterns()} == set(MATRIX)
    assert set(BLIND) <= set(MATRIX)


def ask(people: People, role: str, name: str, method: str, path: str) -> int:
    """The status of one request, after which everything is as before."""
    with transaction.atomic():
        body = BODIES.get((name, method), dict)()
        if name in PAGES:
            browser = people.browsers[role]
            answer = browser.post(path, body) if method == "POST" else browser.generic(method, path)
        else:
            form = "multipart" if "file" in body else "json"
            client = people.api[role]
            answer = (
                client.get(path)
                if method == "GET"
                else getattr(client, method.lower())(path, body, format=form)
            )
        body_of(answer)
        transaction.set_rollback(True)
    return int(answer.status_code)


def of_a_collection() -> dict[str, list[str]]:
    """The addresses of one collection or run, with their parameters."""
    inside = {"collection", "run", "session_set", "slug", "run_id", "code"}
    return {
        name: parameters for name, parameters in parameters_of().items() if inside & set(parameters)
    }


def differences(
    people: People,
    expected: Callable[[str, str], list[str]],
    values: dict[str, Any],
    names: dict[str, list[str]],
    roles: Container[str] = ROLES,
) -> list[str]:
    """The requests of these roles that are answered otherwise than expected."""
    found = []
    for name, parameters in names.items():
        path = address(name, parameters, values)
        for method in MATRIX[name]:
            for role, code in zip(ROLES, expected(name, method), strict=True):
                if role not in roles:
                    continue
                status = ask(people, role, name, method, path)
                if status != int(code):
                    found.append(f"{method} {name} as {role}: {status} instead of {code}")
    return found


def unless_seen(name: str, method: str, seers: tuple[str, ...]) -> list[str]:
    """The codes of the table, but 404 to whoever does not see the collection."""
    return [
        code if role in seers or (role == "anonymous" and code in ("401", "302")) else "404"
        for role, code in zip(ROLES, MATRIX[name][method].split(), strict=True)
    ]


@pytest.mark.slow
def test_a_public_collection_answers_everybody_as_the_table_says(
    people: People, values: dict[str, Any]
) -> None:
    """A1, A2, A14."""
    assert not differences(
        people, lambda name, method: MATRIX[name][method].split(), values, parameters_of()
    )


@pytest.mark.slow
def test_a_blind_collection_answers_everybody_as_the_table_says(people: People) -> None:
    """A1, A2, A3."""
    make_collection(people, "one", blind=True)
    add_qrels(people, "one")
    values = arguments(people, "one", make_runs(people, "one"))
    table = {name: {**methods, **BLIND.get(name, {})} for name, methods in MATRIX.items()}
    assert not differences(
        people, lambda name, method: table[name][method].split(), values, of_a_collection()
    )


@pytest.mark.slow
@pytest.mark.words
@pytest.mark.parametrize(
    ("visibility", "seers", "roles"),
    [
        ("private", ("owner", "staff", "reader"), ROLES),
        # The others see as much of it as of a private one.
        ("team", ("member", "owner", "staff", "reader"), ("participant", "member", "other")),
    ],
)
def test_a_collection_that_is_not_public_is_not_there_for_others(
    people: People,
    values: dict[str, Any],
    visibility: str,
    seers: tuple[str, ...],
    roles: tuple[str, ...],
) -> None:
    """A1, A2."""
    Collection.objects.update(visibility=visibility)
    found = differences(
        people,
        lambda name, method: unless_seen(name, method, seers),
        values,
        of_a_collection(),
        roles,
    )
    assert not found


@pytest.mark.words
def test_no_other_method_does_anything(people: People, values: dict[str, Any]) -> None:
    for name, parameters in parameters_of().items():
        path = address(name, parameters, values)
        for method in (method for method in METHODS if method not in MATRIX[name]):
            assert ask(people, "staff", name, method, path) == 405, (name, method)
            assert ask(people, "anonymous", name, method, path) in {401, 405}, (name, method)


def test_the_administration_is_closed_to_all_but_staff(
    people: People, values: dict[str, Any]
) -> None:
    lists = (
        "",
        "runs/user/",
        "runs/collection/",
        "runs/auditevent/",
        "runs/qrels/",
        "metrics/evaluation/",
        "jsi18n/",
    )
    for role in ("anonymous", "participant", "member", "owner", "other"):
        for path in lists:
            answer = people.browsers[role].get(f"/admin/{path}")
            assert (answer.status_code, answer["Location"][:13]) == (302, "/admin/login/"), (
                role,
                path,
            )
    for path in lists:
        assert people.browsers["staff"].get(f"/admin/{path}").status_code == 200


def test_a_foreign_run_in_a_comparison_is_unknown(people: People, values: dict[str, Any]) -> None:
    """A2: the id of a run that may not be seen says no more than an id that nobody has."""
    make_collection(people, "two", visibility="private")
    add_qrels(people, "two", QRELS)
    hidden = make_hidden_run(people)
    comparison = "/api/v1/collections/one/comparison/"
    nobody = "00000000-0000-4000-8000-000000000000"
    for query in ("runs={0},{1}", "runs={0}&baseline={1}"):
        answers = [
            people.api["participant"].get(f"{comparison}?{query.format(values['run'], run)}")
            for run in (hidden, nobody)
        ]
        texts = [answer.content.decode().replace(hidden, nobody) for answer in answers]
        assert texts[0] == texts[1]
        assert answers[0].json()["code"] == "unknown_run"


def make_hidden_run(people: People) -> str:
    form = {**file_of(GOOD), "team": "lab"}
    answer = people.api["owner"].post("/api/v1/collections/two/runs/", form, format="multipart")
    run: str = answer.json()["id"]
    return run


def test_sessions_and_tokens_have_the_same_rights(people: People, values: dict[str, Any]) -> None:
    for role in ("participant", "member", "other", "staff"):
        browser: Client = people.browsers[role]
        for name in (
            "collection-audit",
            "members",
            "audit",
            "teams",
            "invitations",
            "team-invitations",
        ):
            path = address(name, parameters_of()[name], values)
            assert browser.get(path).status_code == people.api[role].get(path).status_code, (
                role,
                name,
            )
