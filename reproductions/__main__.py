"""``python -m reproductions``."""

from reproductions.harness.command import main

if __name__ == "__main__":
    main()
