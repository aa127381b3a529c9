"""Settings from EVALHUB_ variables of the environment, which docs/settings.md lists.

Nothing set means the embedded service: SQLite in WAL mode in the data folder, and a Celery worker
whose broker is its own process's memory. Importing this module writes nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from platformdirs import user_data_path

from evalhub.environment import Environment, check_provider, files_location, mail_settings
from evalhub.operating.logs import FORMATTERS
from evalhub.serving.secret_key import new_key, read_key
from evalhub.serving.template_sources import TEXTS

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment()


def _data_folder() -> Path:
    """Return the folder of the environment, by default that of a checkout or of the user."""
    folder: str = env.str("EVALHUB_DATA", default="")
    if folder:
        return Path(folder).resolve()
    if (BASE_DIR / "pyproject.toml").is_file():
        return BASE_DIR / ".evalhub" / "data"

    return user_data_path("evalhub", appauthor=False)


def _database(url: str, data: Path, patience: int, silence: int) -> dict[str, Any]:
    if not url:
        return _sqlite(data / "evalhub.sqlite3", patience)
    if not url.startswith(("postgres://", "postgresql://")):
        raise ImproperlyConfigured(
            "EVALHUB_DATABASE_URL must begin with postgres://; leave it unset for SQLite"
        )

    config: dict[str, Any] = {
        **Environment.db_url_config(url),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }

    # Without limits, a silent server holds a request for two minutes, and a silent network for a
    # quarter of an hour.
    limits = {
        "connect_timeout": max(2, min(5, silence)),
        "tcp_user_timeout": silence * 1000,
        "keepalives": 1,
        "keepalives_idle": max(1, silence // 2),
        "keepalives_interval": max(1, silence // 6),
        "keepalives_count": 3,
        # Compiling a statement takes longer than running any of these.
        "options": "-c jit=off",
    }
    config["OPTIONS"] = {**limits, **config.get("OPTIONS", {})}

    return config


def _sqlite(path: Path, patience: int) -> dict[str, Any]:
    pragmas = (
        "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;PRAGMA foreign_keys=ON;"
        f"PRAGMA busy_timeout={patience * 1000};"
    )
    options = {"timeout": patience, "transaction_mode": "IMMEDIATE", "init_command": pragmas}

    # A connection is reused: opening one takes as long as a third of a submission.
    return {
        "ENGINE": "evalhub.serving.sqlite",
        "NAME": path,
        "CONN_MAX_AGE": 60,
        "OPTIONS": options,
    }


DEBUG = env.bool("EVALHUB_DEBUG", default=False)
EVALHUB_DATA = _data_folder()
EVALHUB_SECRET_KEY = env.str("EVALHUB_SECRET_KEY", default="")
EVALHUB_FILES_URL = env.str("EVALHUB_FILES_URL", default="")
EVALHUB_FILES_KEY = env.str("EVALHUB_FILES_KEY", default="")
EVALHUB_FILES_SECRET = env.str("EVALHUB_FILES_SECRET", default="")
EVALHUB_FILES = files_location(EVALHUB_FILES_URL, EVALHUB_FILES_KEY, EVALHUB_FILES_SECRET)
EVALHUB_FILES_CACHE_BYTES = env.int("EVALHUB_FILES_CACHE_MB", default=2048, least=1) * 1024 * 1024
EVALHUB_DATABASE_URL = env.str("EVALHUB_DATABASE_URL", default="")
EVALHUB_REDIS_URL = env.str("EVALHUB_REDIS_URL", default="")
EVALHUB_EMBEDDED = not EVALHUB_REDIS_URL
EVALHUB_LEASE_SECONDS = env.int("EVALHUB_LEASE_SECONDS", default=30)
EVALHUB_LOCK_SECONDS = env.int("EVALHUB_LOCK_SECONDS", default=20, least=1)
EVALHUB_DATABASE_SILENCE_SECONDS = env.int("EVALHUB_DATABASE_SILENCE_SECONDS", default=10, least=1)
EVALHUB_STATEMENT_SECONDS = env.int("EVALHUB_STATEMENT_SECONDS", default=30, least=0)
EVALHUB_PATIENCE_SECONDS = env.int("EVALHUB_PATIENCE_SECONDS", default=20, least=1)
EVALHUB_MAX_UPLOAD_BYTES = env.int("EVALHUB_MAX_UPLOAD_MB", default=512, least=1) * 1024 * 1024
EVALHUB_MAX_ARTIFACT_BYTES = env.int("EVALHUB_MAX_ARTIFACT_MB", default=64) * 1024 * 1024
EVALHUB_SNAPSHOT_RUN_BYTES = env.int("EVALHUB_SNAPSHOT_RUNS_MB", default=64, least=0) * 1024 * 1024
EVALHUB_RUN_ARTIFACTS = env.int("EVALHUB_RUN_ARTIFACTS", default=100)
EVALHUB_TEAM_ARTIFACT_BYTES = env.int("EVALHUB_TEAM_ARTIFACTS_MB", default=1024) * 1024 * 1024
EVALHUB_WORKER_PROCESSES = env.int("EVALHUB_WORKER_PROCESSES", default=2, least=1)
# To this rank the curves of a run are stored; 0: none are.
EVALHUB_CURVE_DEPTH = min(1000, env.int("EVALHUB_CURVE_DEPTH", default=100, least=0))
EVALHUB_WEB_PROCESSES = env.int("EVALHUB_WEB_PROCESSES", default=2, least=1)
EVALHUB_WEB_MEMORY_MB = env.int("EVALHUB_WEB_MEMORY_MB", default=250, least=0)
EVALHUB_BOARD_SECONDS = env.float("EVALHUB_BOARD_SECONDS", default=1.0)
EVALHUB_KEPT_ANSWERS_BYTES = env.int("EVALHUB_KEPT_ANSWERS_MB", default=256, least=0) * 1024 * 1024
EVALHUB_LARGEST_ANSWER_BYTES = 512 * 1024
EVALHUB_WORK_SECONDS = env.float("EVALHUB_WORK_SECONDS", default=2.0)
EVALHUB_ANSWER_SECONDS = env.float("EVALHUB_ANSWER_SECONDS", default=30.0)
EVALHUB_DEAR_REQUESTS = env.int("EVALHUB_DEAR_REQUESTS", default=2)
EVALHUB_HTTPS = env.bool("EVALHUB_HTTPS", default=False)
EVALHUB_METRICS_TOKEN = env.str("EVALHUB_METRICS_TOKEN", default="")
EVALHUB_LOG_LEVEL = env.str("EVALHUB_LOG_LEVEL", default="WARNING").upper()
EVALHUB_LOG_FORMAT = env.str("EVALHUB_LOG_FORMAT", default="line")
EVALHUB_ADDRESS_RATE = env.int("EVALHUB_ADDRESS_RATE", default=60_000)
EVALHUB_USER_RATE = env.int("EVALHUB_USER_RATE", default=60_000)
EVALHUB_LOGIN_RATE = env.int("EVALHUB_LOGIN_RATE", default=100)
EVALHUB_PROXIES = env.int("EVALHUB_PROXIES", default=0)
EVALHUB_ADDRESS_CONNECTIONS = env.int("EVALHUB_ADDRESS_CONNECTIONS", default=256)
EVALHUB_ADDRESS_TRANSFERS = env.int("EVALHUB_ADDRESS_TRANSFERS", default=16)
EVALHUB_URL = env.str("EVALHUB_URL", default="").rstrip("/")
EVALHUB_PUBLISHER = env.str("EVALHUB_PUBLISHER", default="")
EVALHUB_MAIL_URL = env.str("EVALHUB_MAIL_URL", default="")
DEFAULT_FROM_EMAIL = env.str("EVALHUB_MAIL_FROM", default="")
EVALHUB_REGISTRATION = env.bool("EVALHUB_REGISTRATION", default=False)
EVALHUB_ORGANISERS_CREATE_ACCOUNTS = env.bool("EVALHUB_ORGANISERS_CREATE_ACCOUNTS", default=True)
EVALHUB_REGISTRATION_DOMAINS = env.domains("EVALHUB_REGISTRATION_DOMAINS")
EVALHUB_OIDC_ISSUER = env.str("EVALHUB_OIDC_ISSUER", default="")
EVALHUB_OIDC_CLIENT_ID = env.str("EVALHUB_OIDC_CLIENT_ID", default="")
EVALHUB_OIDC_CLIENT_SECRET = env.str("EVALHUB_OIDC_CLIENT_SECRET", default="")
EVALHUB_OIDC_LABEL = env.str("EVALHUB_OIDC_LABEL", default="") or "your organisation"
EVALHUB_OIDC_DOMAINS = env.domains("EVALHUB_OIDC_DOMAINS")
EVALHUB_OIDC_CLAIM = env.str("EVALHUB_OIDC_CLAIM", default="")
EVALHUB_PASSWORD_LOGIN = env.bool("EVALHUB_PASSWORD_LOGIN", default=True)
EVALHUB_WEBHOOKS = env.bool("EVALHUB_WEBHOOKS", default=False)
EVALHUB_WEBHOOK_ALLOW = env.networks("EVALHUB_WEBHOOK_ALLOW")
EVALHUB_WEBHOOK_PORTS = env.ports("EVALHUB_WEBHOOK_PORTS", default=(443, 8443))

_MAIL = mail_settings(EVALHUB_MAIL_URL, DEFAULT_FROM_EMAIL)
EMAIL_HOST = _MAIL.host
EMAIL_PORT = _MAIL.port
EMAIL_HOST_USER = _MAIL.user
EMAIL_HOST_PASSWORD = _MAIL.password
# Django calls STARTTLS "TLS", and TLS from the start "SSL".
EMAIL_USE_TLS = _MAIL.use_starttls
EMAIL_USE_SSL = _MAIL.use_tls
EMAIL_TIMEOUT = 15
# Seconds that a link of a forgotten password works.
PASSWORD_RESET_TIMEOUT = 2 * 3600

if EVALHUB_SECRET_KEY and len(EVALHUB_SECRET_KEY) < 32:
    raise ImproperlyConfigured("EVALHUB_SECRET_KEY needs at least 32 characters")
if EVALHUB_DATABASE_URL and not EVALHUB_SECRET_KEY:
    raise ImproperlyConfigured(
        "EVALHUB_SECRET_KEY must be set beside EVALHUB_DATABASE_URL: all processes share it"
    )
if EVALHUB_REDIS_URL and not EVALHUB_REDIS_URL.startswith(("redis://", "rediss://", "unix://")):
    raise ImproperlyConfigured("EVALHUB_REDIS_URL must begin with redis://, rediss:// or unix://")
if EVALHUB_URL and not EVALHUB_URL.startswith(("https://", "http://")):
    raise ImproperlyConfigured("EVALHUB_URL must begin with https:// or http://")
if EVALHUB_REGISTRATION and not (EVALHUB_MAIL_URL and EVALHUB_URL):
    raise ImproperlyConfigured(
        "EVALHUB_REGISTRATION needs EVALHUB_MAIL_URL and EVALHUB_URL: a link in a mail confirms "
        "each address"
    )
check_provider(
    issuer=EVALHUB_OIDC_ISSUER,
    client_id=EVALHUB_OIDC_CLIENT_ID,
    client_secret=EVALHUB_OIDC_CLIENT_SECRET,
    claim=EVALHUB_OIDC_CLAIM,
    url=EVALHUB_URL,
)
if not EVALHUB_PASSWORD_LOGIN and not EVALHUB_OIDC_ISSUER:
    raise ImproperlyConfigured(
        "EVALHUB_PASSWORD_LOGIN=off needs EVALHUB_OIDC_ISSUER: only superusers could log in otherwise"
    )
if EVALHUB_METRICS_TOKEN and len(EVALHUB_METRICS_TOKEN) < 16:
    raise ImproperlyConfigured("EVALHUB_METRICS_TOKEN needs at least 16 characters")
if EVALHUB_LOG_LEVEL not in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
    raise ImproperlyConfigured("EVALHUB_LOG_LEVEL is DEBUG, INFO, WARNING, ERROR or CRITICAL")
if EVALHUB_LOG_FORMAT not in FORMATTERS:
    raise ImproperlyConfigured(f"EVALHUB_LOG_FORMAT is {' or '.join(FORMATTERS)}")

# Reading the settings writes nothing: where no key is kept yet, this process has its own until a
# web server keeps one.
SECRET_KEY = EVALHUB_SECRET_KEY or read_key(EVALHUB_DATA) or new_key()
ALLOWED_HOSTS = env.list("EVALHUB_ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("EVALHUB_TRUSTED_ORIGINS", default=[])
DATABASES = {
    "default": _database(
        EVALHUB_DATABASE_URL, EVALHUB_DATA, EVALHUB_LOCK_SECONDS, EVALHUB_DATABASE_SILENCE_SECONDS
    ),
}
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "answers": {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache"
        if EVALHUB_KEPT_ANSWERS_BYTES
        else "django.core.cache.backends.dummy.DummyCache",
        "LOCATION": EVALHUB_DATA / "answers",
        "OPTIONS": {"MAX_ENTRIES": EVALHUB_KEPT_ANSWERS_BYTES // EVALHUB_LARGEST_ANSWER_BYTES},
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "runs.User"
AUTHENTICATION_BACKENDS = ["runs.web.passwords.PasswordBackend"]
# Long passwords matter more than odd characters.
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "evalhub",
    "runs",
    "metrics",
    "evalhub.campaigns",
    "evalhub.pools",
    "evalhub.suites",
]
MIDDLEWARE = [
    "evalhub.operating.middleware.NoBodyForHead",
    "evalhub.operating.middleware.ProbesFirst",
    "evalhub.operating.middleware.RequestRecord",
    "evalhub.operating.middleware.FinalSlash",
    "django.middleware.security.SecurityMiddleware",
    "evalhub.operating.middleware.ContentSecurityPolicy",
    "evalhub.operating.middleware.SecretOfShareLink",
    "evalhub.operating.middleware.NoTokenInAddress",
    "evalhub.serving.static_files.StaticFiles",
    "evalhub.operating.middleware.PrivateAnswers",
    "evalhub.operating.middleware.AddressRate",
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "evalhub.operating.middleware.AccountRate",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "evalhub.operating.bounded_work.BoundedWork",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "evalhub.urls"
WSGI_APPLICATION = "evalhub.serving.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    [
                        ("django.template.loaders.locmem.Loader", TEXTS),
                        "django.template.loaders.app_directories.Loader",
                    ],
                )
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "evalhub.version.in_pages",
                "evalhub.offered_client.client_lines",
                "metrics.questions.answer_cache.page_slots",
            ],
        },
    },
]

LANGUAGE_CODE = "en"
FORMAT_MODULE_PATH = ["evalhub.formats"]
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
# Browsers ask for a file under its own name each time; docs/decisions/0032 has the other names.
WHITENOISE_MAX_AGE = 0
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "evalhub.serving.static_files.DigestStorage"},
}
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = LOGOUT_REDIRECT_URL = "/"
CSRF_FAILURE_VIEW = "evalhub.problems.csrf_failure"

# Uploads always go to a file in the folder of their destination, so that storing one is a link and not a
# copy.
FILE_UPLOAD_HANDLERS = ["runs.web.uploads.BoundedFileUploadHandler"]
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 100

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = EVALHUB_HTTPS
SECURE_SSL_REDIRECT = EVALHUB_HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if EVALHUB_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = EVALHUB_HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if EVALHUB_HTTPS else None

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "runs.web.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "runs.web.permissions.Scoped",
        "runs.web.parameters.KnownParameters",
        "runs.web.conditions.KnownConditions",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["runs.web.throttling.UserRate"],
    "DEFAULT_PAGINATION_CLASS": "evalhub.problems.Pagination",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["runs.web.json_bodies.JSONParser"],
    # OPTIONS would describe views by calling them.
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_SCHEMA_CLASS": "evalhub.described_problems.OperationSchema",
    "EXCEPTION_HANDLER": "evalhub.problems.problem_response",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    # A field of uploads has this name.
    "URL_FORMAT_OVERRIDE": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "EvalHub",
    "DESCRIPTION": (
        "Submit retrieval runs, read exact values, leaderboards and significance. Methods that an "
        "address does not have are answered 405, addresses and headers that are too long 414 and "
        "431, unknown transfer codings 501."
    ),
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": REST_FRAMEWORK["DEFAULT_PERMISSION_CLASSES"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "evalhub.schema.any_of_them",
        "evalhub.schema.known_fields_only",
        "evalhub.described_problems.problems_described",
    ],
    "ENUM_NAME_OVERRIDES": {
        "ScoresEnum": "runs.models.Collection.Scores",
        "VisibilityEnum": "runs.models.Collection.Visibility",
        "ExperimentVisibilityEnum": "runs.models.Experiment.Visibility",
        "LinkKindEnum": "runs.formats.links.KINDS",
        "RunKindEnum": "runs.services.submissions.runs.KINDS",
        "StoredRunKindEnum": ("ranking", "values", "replicates"),
        "PhaseKindEnum": "runs.models.Phase.Kind",
        "PhaseStateEnum": ("planned", "open", "paused", "late", "closed"),
        "ParticipationStateEnum": "runs.models.Participation.State",
        "TeamDecisionEnum": "evalhub.campaigns.services.teams.DECISIONS",
        "PoolStateEnum": ("draft", "frozen"),
        "RowStateEnum": "metrics.services.boards.states.BOARD_STATES",
        "ReleaseStateEnum": ("planned", "waiting", "done", "cancelled"),
        "EntryRoleEnum": "runs.models.Entry.Role",
        "EntryStateEnum": "runs.models.Entry.State",
        "ShareKindEnum": ("leaderboard", "comparison", "run"),
        "StateEnum": "metrics.models.Evaluation.State",
        "WithheldEnum": "metrics.engine.significance.verdicts.WITHHELD",
        "WithheldOfSessionsEnum": "metrics.engine.significance.verdicts.OF_VALUES",
        "VerdictEnum": "metrics.engine.significance.verdicts.VERDICTS",
        "RunStateEnum": "metrics.services.queue.status.RUN_STATES",
        "DeliveryStateEnum": "runs.models.Delivery.State",
        "MailStateEnum": "runs.models.Mail.State",
        "AudienceEnum": "runs.models.CampaignNotice.Audience",
        "WebhookFormatEnum": "runs.models.Webhook.Format",
        "RoleEnum": "runs.models.Membership.Role",
        "ParameterRoleEnum": "runs.models.ParameterKey.Role",
        "DirectionEnum": "runs.models.ExternalMeasure.Direction",
        "AggregateEnum": "metrics.api.answers.AGGREGATES",
        "ExternalAggregateEnum": "runs.models.ExternalMeasure.Aggregation",
        "MissingValueEnum": "runs.models.ExternalMeasure.Missing",
        "ValueSourceEnum": "runs.models.ExternalMeasure.Source",
    },
}

# Celery carries wake-ups only: the database is the queue, see docs/architecture.md.
CELERY_IMPORTS = ("evalhub.serving.worker",)
CELERY_BROKER_URL = EVALHUB_REDIS_URL or "memory://localhost/"
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_TIME_LIMIT = 600
CELERY_TASK_SOFT_TIME_LIMIT = 540
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "evalhub-eval"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_MAX_TASKS_PER_CHILD = 200
CELERY_WORKER_MAX_MEMORY_PER_CHILD = 1_000_000
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 8
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {"polling_interval": 0.01}
    if EVALHUB_EMBEDDED
    else {
        "visibility_timeout": 900,
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "socket_timeout": 10,
        "socket_connect_timeout": 3,
        "socket_keepalive": True,
        "health_check_interval": 5,
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0.2,
        "interval_max": 0.2,
        "global_keyprefix": "evalhub:",
    }
)

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        name: {"()": f"evalhub.operating.logs.{formatter.__name__}"}
        for name, formatter in FORMATTERS.items()
    },
    "filters": {
        "context": {"()": "evalhub.operating.logs.ContextFilter"},
        "no_probes": {"()": "evalhub.operating.logs.NoProbes"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": EVALHUB_LOG_FORMAT,
            "filters": ["context"],
        }
    },
    "loggers": {
        "waitress.queue": {"level": "ERROR"},
        "django.request": {"level": "ERROR", "filters": ["no_probes"]},
    },
    "root": {"handlers": ["stderr"], "level": EVALHUB_LOG_LEVEL},
}
