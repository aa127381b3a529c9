"""The parameters of requests, read in the same way for the API and the pages."""
