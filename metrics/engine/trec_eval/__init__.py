"""trec_eval's measures under its own names, in its order, with its conventions."""
