"""Files of campaigns: packets and snapshots."""
