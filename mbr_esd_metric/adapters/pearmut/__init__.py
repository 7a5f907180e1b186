"""Campaigns of Pearmut, the platform on which WMT's annotators work: screens out, annotations in.

Pearmut counts a text in UTF-16 units, an error's end is its last unit, and `[missing]` is the unit behind the text.
Here offsets are characters, and ends are one past. A screen is a document with the outputs of all systems side by side.
The campaign is of the kind "task-based": each annotator has a list of screens.

Blind: annotators see no names of systems, and their browsers get none. What the letters stand for, and the language
pair, is in the campaign under the key ``mbr_esd``, which stays on the server.
"""
