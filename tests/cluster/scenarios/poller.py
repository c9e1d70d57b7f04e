"""Poller: looks at something again and again on a thread of its own, beside a scenario."""
import threading


class Poller:
    """Calls look() every PAUSE seconds from start() until stop(), or until a look fails."""

    PAUSE = 0.1

    def __init__(self):
        self._stopped = threading.Event()
        self._failure = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        """The last look has ended when it returns. Raises what a look has failed with."""
        self._stopped.set()
        self._thread.join()
        if self._failure:
            raise self._failure

    def _run(self):
        try:
            while not self._stopped.is_set():
                self.look()
                self._stopped.wait(self.PAUSE)
        except Exception as failure:  # told by stop(), to the scenario's own thread
            self._failure = failure

    def look(self):
        raise NotImplementedError
