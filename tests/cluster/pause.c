// The process that holds a pod's namespaces open: it waits, reaps orphans, and leaves when told to.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int signal) {
  (void)signal;
  _exit(0);
}

static void reap(int signal) {
  (void)signal;
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
}

int main(void) {
  sigaction(SIGTERM, &(struct sigaction){.sa_handler = leave}, NULL);
  sigaction(SIGINT, &(struct sigaction){.sa_handler = leave}, NULL);
  sigaction(SIGCHLD, &(struct sigaction){.sa_handler = reap, .sa_flags = SA_NOCLDSTOP}, NULL);
  for (;;) pause();
}
