"""What is computed and stored of pools and judgements."""
