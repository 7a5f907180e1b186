"""Translators' file formats: reading units, and writing the files with errors marked."""
