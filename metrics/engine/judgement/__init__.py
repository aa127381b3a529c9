"""Rankings and judgements, and the judged run that measures read."""
