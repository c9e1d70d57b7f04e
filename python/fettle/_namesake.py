"""Notices the distribution `fettle`, which is another project's: it owns fettle/__init__.py and the command, too.

pip asks nothing: the one that is installed last has its files in place, and whoever is uninstalled takes them along. A
look into the package's own folder takes less than a millisecond, unlike importlib.metadata.
"""

from __future__ import annotations

import os
import re
import warnings

_METADATA = re.compile(r"fettle-(\d[^-]*)\.(dist|egg)-info", re.IGNORECASE)
_REPAIR = "pip uninstall fettle; pip install --force-reinstall --no-deps fettle-tune"


def warn_of_namesake() -> None:
    """A warning if the other distribution is installed in the same folder. In another one it harms nothing."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        found = [match for match in map(_METADATA.fullmatch, os.listdir(folder)) if match]
    except OSError:  # inside of an archive
        return
    if found:
        warnings.warn(f"fettle {found[0][1]} in {folder} is another project, with files of the same names as those of "
                      f"fettle-tune. To repair it: {_REPAIR}", RuntimeWarning, stacklevel=2)


def check_package() -> None:
    """ImportError: the other distribution has replaced fettle/__init__.py, or has removed it with itself."""
    import fettle

    if not hasattr(fettle, "report"):
        raise ImportError("another project's distribution, fettle, has replaced or removed files of fettle-tune. "
                          f"To repair it: {_REPAIR}")
