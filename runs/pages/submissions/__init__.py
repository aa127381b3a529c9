"""Pages that submit and change runs and session sets."""
