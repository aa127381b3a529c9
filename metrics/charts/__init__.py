"""Every picture, as an Altair chart: one file for each kind, `rendering` for what becomes of it."""
