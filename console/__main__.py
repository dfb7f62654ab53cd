"""``python -m console`` is ``docmill``."""

from console.main import main

if __name__ == "__main__":
    main()
