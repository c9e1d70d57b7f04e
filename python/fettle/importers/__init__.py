"""Importers: `fettle import --from NAME` runs `python3 -m fettle.importers.NAME`, which writes the results of another
tuner as lines for warmStart.results (docs/export.md).
"""
