"""``python -m covp``: the command line, where the script ``covp`` is not on the path."""

from covp.cli.main import main

if __name__ == "__main__":
    main()
