"""The steps of `make docs` around the site generator.

python -m docs_site prepare FOLDER    write the pages, the generated reference and the settings
python -m docs_site check FOLDER      check that the built site is complete and loads nothing from elsewhere
"""

import argparse
import sys
from pathlib import Path

from docs_site.check import problems
from docs_site.pages import MissingTargetError
from docs_site.prepare import prepare


def main(arguments: list[str] | None = None) -> int:
    """Run one step; the exit code is 1 if a page or a link is wrong."""
    parser = argparse.ArgumentParser(prog="python -m docs_site", description="Prepares and checks the site.")
    parser.add_argument("step", choices=["prepare", "check"])
    parser.add_argument("folder", type=Path, help="the folder of the site: pages, settings and the built site")
    options = parser.parse_args(arguments)
    if options.step == "check":
        found = problems(options.folder)
        print("\n".join(found), file=sys.stderr, end="\n" if found else "")
        return 1 if found else 0
    try:
        prepare(options.folder)
    except MissingTargetError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
