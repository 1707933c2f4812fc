"""`python -m opskit` is `opskit`."""

from opskit.cli import main

if __name__ == "__main__":
    main()
