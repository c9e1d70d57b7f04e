// A worker that only waits (docs/worker-protocol.md): it costs next to nothing itself, so the times of `fettle run`
// with it are those of the runner.
//
// Usage: stub_worker SECONDS [LOG_FOLDER]
//   Each run waits for SECONDS and reports one metric. LOG_FOLDER/PID gets a line "begin RUN TIME" and "end RUN TIME" for
//   each run, in seconds of CLOCK_MONOTONIC. Without a worker's variables it trains one run and exits.
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST_ASSIGNMENT = 256 * 1024, LONGEST_FRAME = 4096 };

static const char* nonce;
static FILE* log_file;

static void say(const char* format, ...) {
  char frame[LONGEST_FRAME];
  int size = snprintf(frame, sizeof frame, "\036%s ", nonce);
  va_list arguments;
  va_start(arguments, format);
  size += vsnprintf(frame + size, sizeof frame - (size_t)size, format, arguments);
  va_end(arguments);
  frame[size++] = '\n';
  if (write(STDOUT_FILENO, frame, (size_t)size) != size) _exit(1);
}

static void note(const char* what, const char* run) {
  if (log_file == NULL) return;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  fprintf(log_file, "%s %s %ld.%09ld\n", what, run, (long)now.tv_sec, now.tv_nsec);
}

static void train(double seconds) {
  static const char metric[] = "{\"step\": 1, \"loss\": 0.5}\n";
  struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  if (write(STDOUT_FILENO, metric, sizeof metric - 1) < 0) _exit(1);
}

// The next run's name; NULL: no more come.
static const char* next_run(FILE* assignments) {
  static char line[LONGEST_ASSIGNMENT];
  while (fgets(line, sizeof line, assignments) != NULL) {
    char* name = strstr(line, "\"run\"");
    if (name == NULL) continue;
    name = strchr(name + strlen("\"run\""), '"') + 1;
    *strchr(name, '"') = '\0';
    return name;
  }
  return NULL;
}

int main(int count, char** values) {
  const double seconds = count > 1 ? atof(values[1]) : 0;
  const char* descriptor = getenv("FETTLE_WORKER_FD");
  if (descriptor == NULL) {
    train(seconds);
    return 0;
  }
  if (count > 2) {
    char path[LONGEST_FRAME];
    snprintf(path, sizeof path, "%s/%d", values[2], (int)getpid());
    log_file = fopen(path, "w");
    if (log_file != NULL) setlinebuf(log_file);  // the runner may kill us
  }
  nonce = getenv("FETTLE_WORKER_NONCE");
  FILE* assignments = fdopen(atoi(descriptor), "r");
  say("ready 1 1");
  const char* run = NULL;
  while ((run = next_run(assignments)) != NULL) {
    note("begin", run);
    say("begin %s", run);
    train(seconds);
    note("end", run);
    say("end %s 0", run);
  }
  return 0;
}
