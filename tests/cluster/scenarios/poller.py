"""Poller: looks at something again and again on a thread of its own, beside a scenario."""
import threading


class Poller:
    """Calls look() every PAUSE seconds from start() until stop(). One thread may call each."""

    PAUSE = 0.1

    def __init__(self):
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        """The last look has ended when it returns."""
        self._stopped.set()
        self._thread.join()

    def _run(self):
        while not self._stopped.is_set():
            self.look()
            self._stopped.wait(self.PAUSE)

    def look(self):
        raise NotImplementedError
