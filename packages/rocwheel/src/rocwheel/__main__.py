"""`python -m rocwheel`."""

from rocwheel.cli import main

if __name__ == "__main__":
    main()
