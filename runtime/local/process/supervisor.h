// The supervisor: the small process that owns the trial processes of one `fettle run`.
//
// It is the same executable, started first (`fettle supervise --fd N`), so that forking trials
// costs microseconds and its life does not hang on the runner's. A single-threaded poll loop; it
// talks JSON lines with the runner over a socket (supervisor_wire.h). It starts every trial under a
// guard (guard.h), writes the output of trials to bounded logs (trial_log.h) and reports
// (metric_lines.h), keeps grace periods, and writes outcome.json when a run has ended and no
// process of it is left. Nothing a trial does may block it or grow it without bound. A hanging disk
// does block it; everything that must hold even then is the guards' task. When the runner dies (end
// of file) it stops all trials gently, records them as Disrupted and exits; it holds the Study's
// lock until then.
#pragma once

namespace fettle::local {

// The whole life of a supervisor; `control_fd` is its end of the socket. Call from a fresh process
// with nothing else open or running. Returns the exit code of the process: 0, or 3 when the
// environment failed it (said on stderr).
int run_supervisor(int control_fd);

}  // namespace fettle::local
