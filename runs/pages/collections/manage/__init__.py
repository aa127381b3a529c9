"""The pages on which organisers maintain a collection."""
