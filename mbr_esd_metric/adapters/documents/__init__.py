"""Files that translators have: what is read from them, and the same files with the errors in them."""
