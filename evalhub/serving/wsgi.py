"""The web application that the web server serves."""

import os
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from evalhub.serving.secret_key import keep_key
from evalhub.serving.template_sources import read_templates
from runs.formats.scanning.warm_up import warm_up

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
keep_key()
_django = get_wsgi_application()
warm_up()
# Load every view before the fork, and not during a first request.
import_module(settings.ROOT_URLCONF)
read_templates()


def application(environ: dict[str, Any], start_response: Any) -> Any:
    """Answer a request with Django, which reads every request as UTF-8, whatever its charset.

    Python has codecs, such as zlib, that raise on any text, and Django would apply them before a
    view could answer.
    """
    content_type, _, parameters = environ.get("CONTENT_TYPE", "").partition(";")
    others = [
        part for part in parameters.split(";") if not part.strip().lower().startswith("charset")
    ]
    environ["CONTENT_TYPE"] = ";".join([content_type, *others]).rstrip(";")

    return _django(environ, start_response)
