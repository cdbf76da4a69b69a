"""`python -m rocwright`."""

from rocwright.cli import main

if __name__ == "__main__":
    main()
