"""Hydra sweeper that searches with Fettle: hydra/sweeper=fettle."""
