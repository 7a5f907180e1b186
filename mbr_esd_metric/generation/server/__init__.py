"""The client of chat servers, which knows several dialects."""
