#!/usr/bin/env python3
"""Breaks the code on purpose, one line at a time, and expects the fault matrix to notice.

Each mutation replaces one piece of a source file, builds the one test program that has to catch it, and runs it.
A mutation that still passes is a hole in the matrix. The file is restored whatever happens; one that has changes
of its own that are not committed is left alone.

Usage: broken.py BUILD [NAME...]          all mutations, or those named
       broken.py --list
       broken.py --builder CMD BUILD      build by CMD TARGET instead of cmake --build BUILD --target TARGET
"""
import argparse
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENDS = "matrix_ends_test"
CALLS = "tests_api_calls_test"
DELETE = "operator: delete batch/jobs (clean-up of a run, or stop of a queued one)"


@dataclasses.dataclass(frozen=True)
class Mutation:
    name: str
    says: str  # what is then wrong, as a sentence
    file: str
    old: str  # occurs once in the file
    new: str
    program: str  # the test program that must fail
    rows: str = ""  # of its rows those whose name has this text; "" = all (FETTLE_MATRIX)


MUTATIONS = [
    Mutation("unread-is-silent", "A log that could not be read counts as one without a report.",
             "core/trial/run_outcome.cpp", "if (!run.read_error.empty()) {", "if (run.read_error == \"never\") {", ENDS),
    Mutation("hang-beats-result", "A run that hangs after its result has no result.",
             "core/trial/run_outcome.cpp", "if (has_result(ended)) return", "if (has_result(ended) && !record.stopping) return", ENDS),
    Mutation("complete-is-known", "A Complete Job whose pod is gone counts as one that reported nothing.",
             "runtime/kubernetes/job/run_of_job.cpp", "if (pods_.count(0) == 0) run_.read_error", "if (pods_.size() > 99) run_.read_error", ENDS),
    Mutation("leg-is-forgotten", "A run that continues a disrupted one must report again.",
             "core/trial/missing_objective.cpp", "if (!was_cut_short(earlier)) step = earlier.last_step;", "step = earlier.last_step;", ENDS),
    Mutation("log-is-not-awaited", "The end of a run is recorded before its log was read.",
             "runtime/kubernetes/log/run_output.cpp", "return !reading.complete && !hopeless;", "return hopeless && !hopeless;", ENDS),
    Mutation("unread-in-silence", "A trial that waits for a log does not say so.",
             "core/trial/trial_plan.cpp", "const bool waits = (!running || unread) &&", "const bool waits = !running &&", ENDS),
    Mutation("eviction-is-a-failure", "An evicted pod fails its trial.",
             "core/trial/endings.cpp", "kPodDisrupted, How::kAny, Outcome::kDisrupted", "kPodDisrupted, How::kAny, Outcome::kFailed", ENDS),
    Mutation("peer-is-forgotten", "A worker that fails because another one was evicted fails its trial.",
             "runtime/kubernetes/job/rank_ends.cpp", "if (const std::optional<RankEnd> loss = first_loss(failure)) return loss;",
             "(void)first_loss(failure);", ENDS),
    Mutation("page-is-an-answer", "A page of HTML counts as a deleted Job.",
             "kube/client/client.cpp", "FETTLE_TRY(write(request, describe_call(\"delete\", resource, key, \"\")));",
             "FETTLE_TRY(send(request, describe_call(\"delete\", resource, key, \"\")));", CALLS,
             DELETE + ", 200 with HTML"),
    Mutation("gone-is-believed", "A Job that is said to be gone is not looked for.",
             "runtime/kubernetes/run/job_client.cpp", "if (!there.ok()) return unless_gone(there.error());", "return success();", CALLS,
             DELETE + ", 404"),
    Mutation("conflicts-are-silent", "A write that conflicts for ever blocks nothing.",
             "core/control/refusals.cpp", "row.blocked = row.count >= kBlockedAfter &&",
             "row.blocked = !conflicts && row.count >= kBlockedAfter &&", CALLS,
             ", 409"),
    Mutation("trial-is-silent", "A Trial that is refused does not say so.",
             "core/control/manager.cpp", "if (is_told) write_refused(", "if (is_told && item.key.name.empty()) write_refused(", CALLS,
             "create batch/jobs (start of a run)"),
    Mutation("watch-is-silent", "A watch that fails shows nowhere.",
             "core/control/manager.cpp", "return words.empty() && options_.trouble ? options_.trouble(study.ns) : words;",
             "return words;", CALLS,
             "operator: watch"),
    Mutation("report-goes-with-study", "The report of a trial goes with its Study.",
             "runtime/kubernetes/store/kube_store.cpp", "for (Json* status : {&from, &to}) status->erase(\"report\");",
             "to.erase(\"report\");", CALLS,
             "orphaned"),
    Mutation("outage-is-a-mistake", "An API server that is down counts as a Study that is wrong.",
             "kube/client/api_status.cpp", "    default:\n      return ErrorCode::kUnavailable;",
             "    default:\n      return ErrorCode::kInvalid;", CALLS,
             ", 503"),
    Mutation("refusal-comes-and-goes", "A Trial that is refused says so and takes it back with each attempt.",
             "core/trial/trial_plan.cpp", "  TrialPlan plan;\n  keep_refusal();", "  TrialPlan plan;\n  if (now_ms_ < 0) keep_refusal();", CALLS,
             "create batch/jobs (start of a run)"),
    Mutation("attempt-is-news", "Each attempt at a run that is refused is a write, and ends the row of refusals.",
             "core/trial/trial_plan.cpp", "  wake_at(now_ms_ + kStartAgainMs);\n  commands_",
             "  record.started_ms = now_ms_;\n  commands_", CALLS, "create batch/jobs (start of a run)"),
]  # fmt: skip


def output_of(command, **variables):
    environment = os.environ | variables
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    return done.returncode, done.stdout


def check_clean(mutations):
    """In-place changes are restored from memory; a file with changes of its own would be at risk all the same."""
    files = sorted({one.file for one in mutations})
    changed = output_of(["git", "status", "--porcelain", "--", *files])[1].strip()
    if changed:
        sys.exit(f"broken: commit these first:\n{changed}")
    for one in mutations:
        count = (ROOT / one.file).read_text().count(one.old)
        if count != 1:
            sys.exit(f"broken: {one.name}: its text occurs {count} times in {one.file}, expected 1")


def last_lines(log, count=12):
    return "\n".join("    " + line for line in log.strip().splitlines()[-count:])


def is_caught(one, build, builder):
    """Builds and runs the broken code; says why it was not caught, or nothing."""
    path = ROOT / one.file
    original = path.read_text()
    try:
        path.write_text(original.replace(one.old, one.new))
        code, log = output_of([*builder, one.program])
        if code != 0:
            return f"does not compile:\n{last_lines(log)}"
        only = {"FETTLE_MATRIX": one.rows} if one.rows else {}
        code, log = output_of([str(build / "tests" / one.program)], **only)
        return "" if code == 1 else f"exit code {code} of {one.program}:\n{last_lines(log)}"
    finally:
        path.write_text(original)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("Usage: ")[2])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--builder")
    parser.add_argument("build", nargs="?")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.list:
        for one in MUTATIONS:
            print(f"{one.name:24} {one.file:36} {one.says}")
        return 0
    if not options.build:
        parser.error("which build folder?")
    build = pathlib.Path(options.build).resolve()
    builder = options.builder.split() if options.builder else ["cmake", "--build", str(build), "--target"]
    chosen = [one for one in MUTATIONS if not options.names or one.name in options.names]
    check_clean(chosen)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` restores
    missed = 0
    for one in chosen:
        why = is_caught(one, build, builder)
        missed += why != ""
        print(f"{'MISSED' if why else 'caught'}: {one.name}: {one.says}{' ' if why else ''}{why}", flush=True)
    for program in sorted({one.program for one in chosen}):  # nobody is left with a broken build
        if output_of([*builder, program])[0] != 0:
            sys.exit(f"broken: {program} does not build any more")
    print(f"broken code: {len(chosen) - missed} of {len(chosen)} caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
