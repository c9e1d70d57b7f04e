"""fettle.sklearn.SearchCV: see fettle.integrations.sklearn."""

from fettle.integrations.sklearn import SearchCV

__all__ = ["SearchCV"]
