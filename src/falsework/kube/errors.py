"""What can go wrong when the API is asked: it says no, or it cannot be asked."""

from __future__ import annotations

from falsework.errors import FalseworkError


class ApiError(FalseworkError):
    """The API answered, and not as hoped. `status` is the HTTP status, `reason` the API's own word (`NotFound`)."""

    def __init__(
        self, what: str, *, status: int, reason: str = "", cause: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(what, cause=cause)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after

    @property
    def is_missing(self) -> bool:
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """Somebody else was quicker: it exists already, or it has changed."""
        return self.status == 409

    @property
    def is_gone(self) -> bool:
        """The version a watch should go on from is too old: list again."""
        return self.status == 410


class Unreachable(FalseworkError):  # noqa: N818 - it is what the API is
    """Refused, reset, timed out, without trust, or not an API at all: nothing is known about what was asked."""
