"""The web application that gunicorn serves."""

import os

from django.core.wsgi import get_wsgi_application

from runs.formats.scan import warm_up

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
application = get_wsgi_application()
warm_up()
