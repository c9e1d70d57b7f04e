"""Exporters: `fettle export STUDY --to NAME` runs `python3 -m fettle.export.NAME`, which reads documents (docs/export.md),
one a line, on its standard input.

A module for each target. They read nothing but the document, and exporting the same one again changes nothing.
"""
