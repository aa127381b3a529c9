"""The way of work through the database: states, leases, who waits for what."""
