"""The processes of the service: web server, worker, and what supervises them."""
