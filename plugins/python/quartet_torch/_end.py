"""How a replica ends that is not done: with words that say what happened, and without torch's abort of a process that leaves its group."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Callable, Optional


class ReplicaLost(RuntimeError):
    """Another replica ended while this one trains. What that one wrote says why."""


class Ending:
    """Watches over the end of a replica."""

    def __init__(self, where: Callable[[str], str], leave: Callable[[], None]) -> None:
        self._where, self._leave = where, leave  # what happened to which replica when; ends its part in the group
        self._problem: Optional[BaseException] = None  # why an exchange among the replicas failed
        self._watching = False
        self._raised = False

    def watch(self) -> None:
        """From here on the end of the process is an end without being done."""
        self._watching = True
        atexit.register(self._exit)
        self._hooked = sys.excepthook
        sys.excepthook = self._hook

    def over(self) -> None:
        """The replica ends as it should, or somebody else says why not."""
        if not self._watching:
            return
        self._watching = False
        atexit.unregister(self._exit)
        if sys.excepthook == self._hook:
            sys.excepthook = self._hooked

    def lost(self, problem: BaseException) -> None:
        """An exchange failed."""
        self._problem = self._problem or problem

    @contextmanager
    def together(self) -> Iterator[None]:
        """Raises ReplicaLost if what all replicas do together fails."""
        try:
            yield
        except RuntimeError as problem:
            self.lost(problem)
            raise self._words() from problem

    def explain(self, problem: BaseException) -> Optional[ReplicaLost]:
        """What to raise in place of a problem that is another's."""
        if isinstance(problem, RuntimeError) and not isinstance(problem, ReplicaLost) and self._problem is not None:
            return self._words()
        return None

    def _words(self) -> ReplicaLost:
        why = str(self._problem).splitlines()[0] if str(self._problem) else type(self._problem).__name__
        return ReplicaLost(f"{self._where('lost another one')}; what that one wrote says why ({why})")

    def _hook(self, kind: type[BaseException], problem: BaseException, trace: Optional[TracebackType]) -> Any:
        self._raised = True
        lost = problem if isinstance(problem, ReplicaLost) else self.explain(problem)
        if lost is None:
            return self._hooked(kind, problem, trace)
        print(f"quartet_torch: {lost}", file=sys.stderr, flush=True)  # where in the script it was does not matter
        return None

    def _exit(self) -> None:
        if not self._raised:
            print(f"quartet_torch: {self._where('ended')} before it was done, which is a failure to "
                  "its scheduler. A job is done at the end of job.epochs, by job.done(), or at the end of a block "
                  "`with quartet_torch.init() as job:`", file=sys.stderr, flush=True)
        self._leave()
