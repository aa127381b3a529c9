"""Users, teams and tokens."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import itertools
import secrets
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser, UserManager
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.utils import timezone
from django.utils.text import slugify

from runs.models.checked import StoredJSON
from runs.models.text import check_line


class PersonManager(UserManager["User"]):
    """Create a user together with the user's own team."""

    def create_user(
        self, username: str, email: str | None = None, password: str | None = None, **extra: Any
    ) -> User:
        with transaction.atomic():
            user = super().create_user(username, email, password, **extra)
            Team.objects.create_personal(user)
        return user

    def create_superuser(
        self, username: str, email: str | None = None, password: str | None = None, **extra: Any
    ) -> User:
        with transaction.atomic():
            user = super().create_superuser(username, email, password, **extra)
            Team.objects.create_personal(user)
        return user


class User(AbstractUser):
    """A user with an account, who submits as one of their teams."""

    sessions_ended = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="how often all sessions were ended"
    )

    objects: ClassVar[PersonManager] = PersonManager()

    def get_session_auth_hash(self) -> str:
        """Return what ends sessions when it changes: a digest of the password, and a number."""
        return self._with_sessions_ended(super().get_session_auth_hash())

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        """Yield the same under the earlier secret keys."""
        for digest in super().get_session_auth_fallback_hash():
            yield self._with_sessions_ended(digest)

    def _with_sessions_ended(self, digest: str) -> str:
        return f"{digest}:{self.sessions_ended}" if self.sessions_ended else digest


class ProviderAccount(models.Model):
    """An account of a user at an OpenID Connect provider, with which the user logs in.

    Issuer and subject alone identify it: the provider never gives a subject to another person, and
    an address it may.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="provider_accounts")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255, validators=[check_line])
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("issuer", "subject"), name="one_user_per_provider_account"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} at {self.issuer}"


class TeamQuerySet(models.QuerySet["Team"]):
    def of(self, user: Any) -> TeamQuerySet:
        """Return the teams that a user is a member of; none for anonymous users."""
        return self.filter(memberships__user=user.pk) if user.is_authenticated else self.none()

    def led_by(self, user: Any) -> TeamQuerySet:
        """Return the teams that a user is an owner of; none for anonymous users."""
        owner = {"memberships__user": user.pk, "memberships__role": Membership.Role.OWNER}
        return self.filter(**owner) if user.is_authenticated else self.none()

    def visible_to(self, user: Any) -> TeamQuerySet:
        """Return the teams that the user may see with their members: the user's own, or all."""
        return self if user.is_authenticated and user.is_staff else self.of(user)


class TeamManager(models.Manager.from_queryset(TeamQuerySet)):  # type: ignore[misc]
    def create_personal(self, user: User) -> Team:
        """Create the user's own team, named after the user, with a number if the name is used."""
        stem = slugify(user.username)[:50] or "team"
        existing = set(self.filter(slug__startswith=stem).values_list("slug", flat=True))

        for number in itertools.count(1):
            slug = stem if number == 1 else f"{stem}-{number}"
            if slug in existing:
                continue

            # Another request may take a free name in this moment: then the next one is tried.
            with contextlib.suppress(IntegrityError), transaction.atomic():
                team: Team = self.create(slug=slug, name=user.username, personal_of=user)
                Membership.objects.create(team=team, user=user, role=Membership.Role.OWNER)
                return team

        raise AssertionError("the numbers never run out")


class Team(models.Model):
    """Who submits: a run belongs to a team."""

    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=150, validators=[check_line])
    personal_of = models.OneToOneField(
        User, null=True, blank=True, on_delete=models.CASCADE, related_name="personal_team"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    members: models.ManyToManyField[User, Membership] = models.ManyToManyField(
        User, through="Membership"
    )

    objects = TeamManager()

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    """A user in a team: owners manage its members and collections, members submit in its name."""

    class Role(models.TextChoices):
        OWNER = "owner"
        MEMBER = "member"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("team", "user"), name="one_membership_per_team"),
        )

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"

    def clean(self) -> None:
        """Raise ValidationError for another user in the personal team of a user."""
        if self.team_id and self.team.personal_of_id not in (None, self.user_id):
            raise ValidationError(f"{self.team} is the team of one user alone")


class Invitation(models.Model):
    """An owner's offer to a user to join a team; it gives no access until the user accepts it.

    With a participation it is an offer to take part with the team in that campaign, too.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invitations")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(
        max_length=10, choices=Membership.Role.choices, default=Membership.Role.MEMBER
    )
    invited_by = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    participation = models.ForeignKey(
        "runs.Participation", null=True, on_delete=models.CASCADE, related_name="invitations"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("team", "user"), name="one_invitation_per_team"),
        )

    def __str__(self) -> str:
        return f"{self.user} to {self.team}"


class InvitationLink(models.Model):
    """An address by which people join until it expires; only its SHA-256 is stored.

    A link of a team makes them members; with a participation they take part with the team in that
    campaign, too. A link of a campaign lets each of them register a team there, or join the one
    with `team_name`, which the first of them registers. A link with neither creates an account.
    """

    team = models.ForeignKey(Team, null=True, on_delete=models.CASCADE, related_name="links")
    key = models.CharField(max_length=8, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    created_by = models.ForeignKey(
        User,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="null: someone who registered with a mail address",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    participation = models.ForeignKey(
        "runs.Participation", null=True, on_delete=models.CASCADE, related_name="links"
    )
    campaign = models.ForeignKey(
        "runs.Campaign", null=True, on_delete=models.CASCADE, related_name="links"
    )
    team_name = models.CharField(
        max_length=150, blank=True, default="", db_default="", validators=[check_line]
    )
    email = models.EmailField(
        blank=True, default="", db_default="", help_text="to which the link was mailed"
    )
    max_uses = models.PositiveIntegerField(null=True, help_text="null: any number of people")
    uses = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"link {self.key} to {self.team or self.campaign or 'an account'}"


class Scope(models.TextChoices):
    """The permissions of a token."""

    READ = "read"
    SUBMIT = "submit"
    MANAGE = "manage"


ALL_SCOPES = (Scope.READ.value, Scope.SUBMIT.value, Scope.MANAGE.value)
DEFAULT_SCOPES = (Scope.READ.value, Scope.SUBMIT.value)


def default_scopes() -> list[str]:
    return list(DEFAULT_SCOPES)


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def usable(self) -> ApiTokenQuerySet:
        """Return the tokens neither revoked nor expired, of users who may still log in."""
        alive = models.Q(expires_at=None) | models.Q(expires_at__gt=timezone.now())
        return self.filter(alive, revoked_at=None, user__is_active=True)

    def issue(
        self,
        *,
        user: User,
        name: str,
        expires_at: datetime | None = None,
        scopes: Iterable[str] = DEFAULT_SCOPES,
        maker: ApiToken | None = None,
    ) -> tuple[ApiToken, str]:
        """Create a token and return it with its text, which is shown once and stored as a hash."""
        key, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        fields = {"name": name, "expires_at": expires_at, "scopes": list(scopes), "maker": maker}
        token = self.create(user=user, key=key, digest=digest_of_secret(secret), **fields)
        return token, f"evh_{key}_{secret}"

    def find(self, text: str) -> ApiToken | None:
        """Return the usable token with this text, or None; the comparison takes constant time."""
        prefix, _, rest = text.partition("_")
        key, _, secret = rest.partition("_")

        # Every request of the API asks this: the query is simple, and Python checks the row.
        row = self.select_related("user").filter(key=key).first() if prefix == "evh" else None
        token = row if row and row.is_usable else None

        # Compare an unknown token, too, so that it takes as long as a wrong secret.
        expected = token.digest if token else digest_of_secret("")
        equal = hmac.compare_digest(expected, digest_of_secret(secret))

        return token if token and equal else None


class ApiToken(models.Model):
    """A user's key for the API; only its SHA-256 is stored, which is enough for 256 random bits."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100, validators=[check_line])
    key = models.CharField(max_length=8, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    scopes = StoredJSON(default=default_scopes)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)
    maker = models.ForeignKey(
        "self",
        null=True,
        on_delete=models.SET_NULL,
        editable=False,
        related_name="made",
        help_text="the token used",
    )

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"{self.name} of {self.user}"

    @property
    def is_usable(self) -> bool:
        """Return whether it meets the condition of `ApiTokenQuerySet.usable`."""
        alive = self.expires_at is None or self.expires_at > timezone.now()
        return alive and self.revoked_at is None and self.user.is_active


def digest_of_secret(secret: str) -> str:
    """Return the SHA-256 of a random secret, which is stored in its place."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def is_staff(user: Any) -> bool:
    return bool(user.is_authenticated and user.is_staff)
