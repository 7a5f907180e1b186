"""The client for chat servers, with support for several dialects."""
