"""trec_eval's measures under its own names: which there are, in which order, and what it makes of them."""
