"""`engine=server`: candidates over HTTP from any chat server, as a client that knows several dialects."""
