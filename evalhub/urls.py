"""All URLs: pages at the root, the API under /api/v1/."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from evalhub import problems, schema
from evalhub.example_collection import ExampleCollection
from evalhub.offered_client import WHEEL_NAME, client_file, client_page
from evalhub.operating.probes import PROBES
from evalhub.version_view import VersionView
from runs.services.accounts.invitation_links import mail_has_links
from runs.services.accounts.passwords import takes_passwords
from runs.services.accounts.provider_accounts import provider_label
from runs.services.accounts.registration import takes_registrations
from runs.web.views import check_parameters, reads

admin.site.site_header = admin.site.site_title = "EvalHub administration"

urlpatterns = [
    # Before the rest: codes of snapshots are longer than the keys of share links.
    path("", include("evalhub.campaigns.urls")),
    path("", include("evalhub.pools.urls")),
    path("", include("evalhub.suites.urls")),
    path("", include("runs.urls")),
    path("", include("metrics.urls")),
    path("api/v1/", include("runs.api.urls")),
    path("api/v1/", include("metrics.api.urls")),
    path("api/v1/", include("evalhub.campaigns.api.urls")),
    path("api/v1/", include("evalhub.pools.api.urls")),
    path("api/v1/", include("evalhub.suites.api.urls")),
    path("api/v1/version/", VersionView.as_view(), name="version"),
    path("api/v1/schema/", schema.SchemaView.as_view(), name="schema"),
    path("api/v1/docs/", schema.DocsView.as_view(url_name="schema"), name="api-docs"),
    path(
        "login/",
        check_parameters(
            reads("next", fields=("next", "username", "password"))(
                LoginView.as_view(
                    template_name="evalhub/login.html",
                    http_method_names=["get", "head", "post"],
                    extra_context={
                        "sends_mail": mail_has_links,
                        "takes_registrations": takes_registrations,
                        "provider": provider_label,
                        "takes_passwords": takes_passwords,
                    },
                )
            )
        ),
        name="login",
    ),
    path(
        "logout/",
        check_parameters(
            reads("next", fields=("next",))(LogoutView.as_view(http_method_names=["post"]))
        ),
        name="logout",
    ),
    path("client/", client_page, name="client-page"),
    path(f"client/{WHEEL_NAME}", client_file, name="client-wheel"),
    path("example-collection/", ExampleCollection.as_view(), name="example-collection"),
    path("admin/", admin.site.urls),
    *[path(address, probe, name=address) for address, probe in PROBES.items()],
]

handler400 = problems.bad_request
handler403 = problems.forbidden
handler404 = problems.not_found
handler500 = problems.server_error
