"""The one kind of error a person sees."""

from __future__ import annotations


class FalseworkError(Exception):
    """Says what happened, why it probably did, and what to do next.

    `what` is a sentence without a full stop; it names the place (a file, a machine, an address).
    `cause` is the likely reason, `fix` the next thing to type or do.
    """

    exit_code = 1

    def __init__(self, what: str, *, cause: str | None = None, fix: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.cause = cause
        self.fix = fix

    @property
    def one_line(self) -> str:
        """What and why, where it is a part of another sentence."""
        return f"{self.what} ({self.cause})" if self.cause else self.what

    def __str__(self) -> str:
        parts = [self.what]
        if self.cause:
            parts.append(f"  cause: {self.cause}")
        if self.fix:
            parts.append(f"  next:  {self.fix}")
        return "\n".join(parts)


class UsageError(FalseworkError):
    """The person's input is wrong: nothing was touched."""

    exit_code = 2
