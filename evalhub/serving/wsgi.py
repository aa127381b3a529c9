"""The web application that the web server serves."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.template.loader import get_template

from evalhub.serving.secret_key import keep_key
from runs.formats.scanning.warm_up import warm_up

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
keep_key()
_django = get_wsgi_application()
warm_up()
# Load every view and every template before the fork, and not during a first request.
import_module(settings.ROOT_URLCONF)
for folder in (Path(apps.get_app_config(label).path, "templates") for label in ("evalhub", "runs", "metrics")):
    for page in folder.rglob("*.html"):
        get_template(page.relative_to(folder).as_posix())


def application(environ: dict[str, Any], start_response: Any) -> Any:
    """Answer a request with Django, which reads every request as UTF-8: a charset that the client names is ignored.

    Python has codecs, such as zlib, that raise on any text, and Django would apply them before a view could answer.
    """
    content_type, _, parameters = environ.get("CONTENT_TYPE", "").partition(";")
    kept = [part for part in parameters.split(";") if not part.strip().lower().startswith("charset")]
    environ["CONTENT_TYPE"] = ";".join([content_type, *kept]).rstrip(";")
    return _django(environ, start_response)
