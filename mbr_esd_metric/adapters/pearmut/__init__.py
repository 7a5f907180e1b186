"""Campaigns of Pearmut, WMT's annotation platform: export of screens, import of annotations.

Pearmut's offsets are UTF-16 units, an error's end is its last unit, and `[missing]` is the unit after the text. In this
package, offsets are characters, and ends are one past. A screen is a document with the outputs of all systems side by
side. The campaign is of the kind "task-based": each annotator has a list of screens.

Annotation is blind: system names are not sent to annotators' browsers. The mapping of letters to systems, and the
language pair, are in the campaign under the key ``mbr_esd``, which stays on the server.
"""
