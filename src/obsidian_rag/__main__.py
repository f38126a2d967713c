"""`python -m obsidian_rag` is the command line."""

import sys

from obsidian_rag.transports.cli import main

if __name__ == "__main__":
    sys.exit(main())
