"""``python -m maskmatch`` is the command line."""

from maskmatch.cli import main

if __name__ == "__main__":
    main()
