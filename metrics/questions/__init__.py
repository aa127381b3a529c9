"""What a request asks for, as the API and the pages both read it."""
