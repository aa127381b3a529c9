"""The processes of the service: web server, worker, and their supervisor."""
