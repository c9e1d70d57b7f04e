"""The built-in trainer of Fettle: a program, which `fettle` of fettle-tune finds here."""

__version__ = "0.1.0"
