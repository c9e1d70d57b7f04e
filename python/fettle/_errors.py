"""The exceptions of the package, apart from Stopped (_trial.py)."""


class FettleError(RuntimeError):
    """Something went wrong outside the code that called: the program is missing, of another version, or has ended."""


class Refused(FettleError, ValueError):
    """`fettle suggest` did not accept a request; the message is its own."""
