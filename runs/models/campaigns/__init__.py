"""Tables of campaigns: on them depends what everybody sees of a collection."""
