"""The dialects of chat servers, one in each file; `detection.py` in the parent folder finds them by name."""
