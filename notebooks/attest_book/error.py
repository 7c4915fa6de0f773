"""The one exception that a user may see."""


class BadInput(ValueError):
    """One line: what is wrong, what was found, what is allowed, where. The command line ends with exit code 2."""
