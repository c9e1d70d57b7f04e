"""Fettle in other libraries: callbacks that report, and the search behind others' interfaces, runs of trackers.

Each module imports its library, and nothing else imports the modules: `import fettle` needs none of the libraries.
README.md has their supported versions, docs/integrations.md the use.
"""

from fettle._namesake import check_package

check_package()
