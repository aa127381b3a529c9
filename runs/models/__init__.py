"""Tables of what users upload and manage."""

from runs.models.accounts.accounts import (
    ALL_SCOPES,
    DEFAULT_SCOPES,
    ApiToken,
    Invitation,
    InvitationLink,
    Membership,
    ProviderAccount,
    Scope,
    Team,
    User,
)
from runs.models.accounts.installs import Install
from runs.models.audit.limits import QuotaCounter, RateCounter
from runs.models.audit.stored_answers import RememberedAnswer
from runs.models.audit.trail import AuditEvent, Immutable
from runs.models.campaigns.campaigns import (
    Agreement,
    Campaign,
    CampaignMember,
    Extension,
    Participation,
    Phase,
    Signature,
)
from runs.models.campaigns.disclosure import boards_seen, sees_board, sees_own_results
from runs.models.campaigns.entries import Entry
from runs.models.campaigns.mails import CampaignNotice, Mail, PhaseMoment
from runs.models.campaigns.published import Packet, Snapshot
from runs.models.campaigns.releases import Release
from runs.models.collections.collections import (
    DEFAULT_MEASURES,
    Collection,
    DocumentTitle,
    Qrels,
    Topic,
    TopicAttributes,
    can_see_scores,
    document_address,
    scored_in,
)
from runs.models.collections.disclosure import Disclosure
from runs.models.collections.revisions import RevisionPart
from runs.models.sharing.saved_views import View
from runs.models.sharing.shares import ShareLink
from runs.models.submissions.runs import Run, System
from runs.models.submissions.sessions import SessionSet
from runs.models.submissions.submissions import Submission
from runs.models.submissions.value_tables import ExternalMeasure, TableValues, ValueTable
from runs.models.tracking.artifacts import Artifact
from runs.models.tracking.experiments import Experiment, ExperimentRun
from runs.models.tracking.labels import Label, LabelMove
from runs.models.tracking.lineage import RunLink, RunParent
from runs.models.tracking.notes import Note
from runs.models.tracking.parameters import Parameter, ParameterKey, ParameterSet
from runs.models.webhooks import Delivery, UnannouncedEvaluations, Webhook

__all__ = [
    "ALL_SCOPES",
    "DEFAULT_MEASURES",
    "DEFAULT_SCOPES",
    "Agreement",
    "ApiToken",
    "Artifact",
    "AuditEvent",
    "Campaign",
    "CampaignMember",
    "CampaignNotice",
    "Collection",
    "Delivery",
    "Disclosure",
    "DocumentTitle",
    "Entry",
    "Experiment",
    "ExperimentRun",
    "Extension",
    "ExternalMeasure",
    "Immutable",
    "Install",
    "Invitation",
    "InvitationLink",
    "Label",
    "LabelMove",
    "Mail",
    "Membership",
    "Note",
    "Packet",
    "Parameter",
    "ParameterKey",
    "ParameterSet",
    "Participation",
    "Phase",
    "PhaseMoment",
    "ProviderAccount",
    "Qrels",
    "QuotaCounter",
    "RateCounter",
    "Release",
    "RememberedAnswer",
    "RevisionPart",
    "Run",
    "RunLink",
    "RunParent",
    "Scope",
    "SessionSet",
    "ShareLink",
    "Signature",
    "Snapshot",
    "Submission",
    "System",
    "TableValues",
    "Team",
    "Topic",
    "TopicAttributes",
    "UnannouncedEvaluations",
    "User",
    "ValueTable",
    "View",
    "Webhook",
    "boards_seen",
    "can_see_scores",
    "document_address",
    "scored_in",
    "sees_board",
    "sees_own_results",
]
