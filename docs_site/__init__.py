"""Prepares the documentation site: the pages of `docs/`, the reference generated from code, and the navigation.

`make docs` runs `python -m docs_site FOLDER`, builds the prepared pages with Zensical, and checks the result.
"""
