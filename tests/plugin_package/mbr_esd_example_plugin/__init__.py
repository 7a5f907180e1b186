"""Parts that mbr-esd-metric finds by entry points: an answer format, and the classes of docs/extend.md."""
