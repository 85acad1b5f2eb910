"""What a stage is: data, and a few small capabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from falsework.stages.conditions import Condition

if TYPE_CHECKING:
    from falsework.stages.context import Context


@dataclass(frozen=True)
class Stage:
    """One step on the way from bare machines to a cluster.

    `run` may be called again at any time, after a kill too: it looks first, then acts.
    """

    name: str
    """What a person types: `falsework up --until NAME`."""
    title: str
    why: str
    """One sentence a student understands."""
    run: Callable[[Context], None]
    needs: tuple[str, ...] = ()
    """Stages that must be done before; all of them stand earlier in the list."""
    done: Callable[[Context], bool] | None = None
    """Looked up, never remembered, and quick. Without it: its conditions; without those it runs every time."""
    plan: Callable[[Context], list[str]] | None = None
    """What `run` would create or change now. Touches nothing."""
    conditions: Callable[[Context], Sequence[Condition]] | None = None
    """What holds once it has run; waited for before the next stage begins."""
    together: bool = False
    """Whether they have to hold all at one time, and not only each of them once."""

    def is_done(self, context: Context) -> bool:
        if self.done:
            return self.done(context)
        return self.conditions is not None and all(condition.look().holds for condition in self.conditions(context))

    @property
    def can_tell(self) -> bool:
        """Whether there is a way to see that it is done."""
        return self.done is not None or self.conditions is not None
