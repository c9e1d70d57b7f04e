// Calls: every call to the API server by the operator, the trainer and the CLI, in one table by
// verb, resource and purpose. The fault matrix (tests/matrix/calls) crosses each row with every
// fault; FakeApiServer refuses a call without a row, so a new call needs one here. Constants;
// usable from any thread.
#pragma once

#include <string_view>

namespace fettle::kube {

enum class Caller { kOperator, kTrainer, kCli };

struct ApiCall {
  Caller caller;
  std::string_view verb;      // as CallMade::verb
  std::string_view resource;  // group, plural and subresource: "batch/jobs", "pods/log"
  std::string_view purpose;
  // A part of the query or the body that distinguishes calls with the same verb and resource. The
  // first row that fits counts.
  std::string_view mark = "";
};

inline constexpr ApiCall kApiCalls[] = {
    // The informers' lists and watches; kube/watch/watch_loop.h.
    {Caller::kOperator, "list", "fettle.dev/studies", "cache of Studies"},
    {Caller::kOperator, "watch", "fettle.dev/studies", "cache of Studies"},
    {Caller::kOperator, "list", "fettle.dev/trials", "cache of Trials"},
    {Caller::kOperator, "watch", "fettle.dev/trials", "cache of Trials"},
    {Caller::kOperator, "list", "batch/jobs", "cache of Jobs"},
    {Caller::kOperator, "watch", "batch/jobs", "cache of Jobs"},
    {Caller::kOperator, "list", "pods", "pods of a failed run",
     "labelSelector=fettle.dev%2Ftrial%3D"},
    {Caller::kOperator, "list", "pods", "cache of pods"},
    {Caller::kOperator, "watch", "pods", "cache of pods"},

    // Studies and Trials; runtime/kubernetes/store/kube_store.h.
    {Caller::kOperator, "apply", "fettle.dev/studies/status", "status of a Study"},
    {Caller::kOperator, "patch", "fettle.dev/studies/status", "an unreadable Study says so"},
    {Caller::kOperator, "delete", "fettle.dev/studies", "ttlAfterFinished"},
    {Caller::kOperator, "create", "fettle.dev/trials", "a new trial"},
    {Caller::kOperator, "get", "fettle.dev/trials", "the newest state before a run or a report"},
    {Caller::kOperator, "patch", "fettle.dev/trials", "stop of a trial", "\"stop\""},
    {Caller::kOperator, "patch", "fettle.dev/trials", "suspension of a trial", "\"suspend\""},
    {Caller::kOperator, "patch", "fettle.dev/trials", "promotion of a trial", "\"untilStep\""},
    {Caller::kOperator, "patch", "fettle.dev/trials", "memory of a trial", "\"gpuMemory\""},
    {Caller::kOperator, "patch", "fettle.dev/trials", "size of a trial", "\"workers\""},
    {Caller::kOperator, "apply", "fettle.dev/trials/status", "last words of a trainer",
     "fieldManager=fettle-trainer"},
    {Caller::kOperator, "apply", "fettle.dev/trials/status", "status of a trial"},
    {Caller::kOperator, "patch", "fettle.dev/trials/status", "end of an orphan", "\"phase\""},
    {Caller::kOperator, "patch", "fettle.dev/trials/status", "an unreadable Trial says so"},

    // Whether the template of a Study can start; runtime/kubernetes/run/template_check.h.
    {Caller::kOperator, "create", "batch/jobs", "check of the Job", "dryRun=All"},
    {Caller::kOperator, "create", "pods", "check of the pod", "dryRun=All"},
    {Caller::kOperator, "create", "services", "check of the Service", "dryRun=All"},
    {Caller::kOperator, "create", "resource.k8s.io/resourceclaims", "check of the claim",
     "dryRun=All"},
    {Caller::kOperator, "create", "resource.k8s.io/resourceclaimtemplates", "check of the claim",
     "dryRun=All"},
    {Caller::kOperator, "create", "scheduling.k8s.io/podgroups", "check of the group",
     "dryRun=All"},
    {Caller::kOperator, "create", "scheduling.x-k8s.io/podgroups", "check of the group",
     "dryRun=All"},
    {Caller::kOperator, "create", "scheduling.volcano.sh/podgroups", "check of the group",
     "dryRun=All"},
    {Caller::kOperator, "create", "scheduling.run.ai/podgroups", "check of the group",
     "dryRun=All"},

    // Runs; runtime/kubernetes/run/job_runs.h.
    {Caller::kOperator, "create", "batch/jobs", "start of a run"},
    {Caller::kOperator, "get", "batch/jobs", "whether a Job is there"},
    {Caller::kOperator, "patch", "batch/jobs", "stop of a run", "\"suspend\":true"},
    {Caller::kOperator, "patch", "batch/jobs", "turn of a gang", "fettle.dev/gang"},
    {Caller::kOperator, "patch", "batch/jobs", "size of a run", "\"completions\""},
    {Caller::kOperator, "patch", "batch/jobs", "stop of a run that a queue would resume",
     "\"activeDeadlineSeconds\""},
    {Caller::kOperator, "patch", "batch/jobs", "another queue", "fettle.dev/queued-as"},
    {Caller::kOperator, "delete", "batch/jobs", "clean-up of a run, or stop of a queued one"},
    {Caller::kOperator, "create", "services", "names of workers"},
    {Caller::kOperator, "get", "services", "whether it is there, after a refusal"},
    {Caller::kOperator, "create", "persistentvolumeclaims", "checkpoints"},
    {Caller::kOperator, "get", "persistentvolumeclaims", "whether it is there, after a refusal"},
    {Caller::kOperator, "create", "resource.k8s.io/resourceclaims", "shared GPU"},
    {Caller::kOperator, "get", "resource.k8s.io/resourceclaims",
     "whether it is there, after a refusal"},
    {Caller::kOperator, "create", "resource.k8s.io/resourceclaimtemplates", "GPU of each pod"},
    {Caller::kOperator, "get", "resource.k8s.io/resourceclaimtemplates",
     "whether it is there, after a refusal"},
    {Caller::kOperator, "create", "scheduling.k8s.io/podgroups", "gang"},
    {Caller::kOperator, "get", "scheduling.k8s.io/podgroups",
     "whether it is there, after a refusal"},
    {Caller::kOperator, "create", "scheduling.x-k8s.io/podgroups", "gang"},
    {Caller::kOperator, "get", "scheduling.x-k8s.io/podgroups",
     "whether it is there, after a refusal"},
    {Caller::kOperator, "create", "scheduling.volcano.sh/podgroups", "gang"},
    {Caller::kOperator, "get", "scheduling.volcano.sh/podgroups",
     "whether it is there, after a refusal"},
    {Caller::kOperator, "create", "scheduling.run.ai/podgroups", "gang"},
    {Caller::kOperator, "get", "scheduling.run.ai/podgroups",
     "whether it is there, after a refusal"},
    {Caller::kOperator, "log", "pods/log", "metrics of an image"},
    {Caller::kOperator, "get", "pods", "whether the pod of a log is gone"},
    {Caller::kOperator, "list", "kueue.x-k8s.io/workloads", "Kueue's words on a Job that waits"},

    // Outside the reconciles; kube/events/event_recorder.h, kube/election/leader_elector.h,
    // operator/.
    {Caller::kOperator, "create", "events.k8s.io/events", "an event"},
    {Caller::kOperator, "patch", "events.k8s.io/events", "an event again"},
    {Caller::kOperator, "get", "coordination.k8s.io/leases", "who leads"},
    {Caller::kOperator, "create", "coordination.k8s.io/leases", "first leader"},
    {Caller::kOperator, "update", "coordination.k8s.io/leases", "renewal"},
    {Caller::kOperator, "get", "admissionregistration.k8s.io/validatingadmissionpolicies",
     "whether the chart's policies are there"},
    {Caller::kOperator, "get", "admissionregistration.k8s.io/validatingadmissionpolicybindings",
     "whether the chart's policies are there"},

    // trainer/reporter/reporter.h.
    {Caller::kTrainer, "patch", "fettle.dev/trials/status", "what earlier runs reported"},
    {Caller::kTrainer, "apply", "fettle.dev/trials/status", "a report"},

    // cli/cluster, cli/gpus.
    {Caller::kCli, "apply", "fettle.dev/studies", "fettle run"},
    {Caller::kCli, "patch", "fettle.dev/studies", "fettle stop", "\"suspend\""},
    {Caller::kCli, "delete", "fettle.dev/studies", "fettle delete"},
    {Caller::kCli, "get", "fettle.dev/studies", "fettle status"},
    {Caller::kCli, "list", "fettle.dev/studies", "names of Studies, and following one"},
    {Caller::kCli, "watch", "fettle.dev/studies", "following a Study"},
    {Caller::kCli, "list", "fettle.dev/trials", "trials of a Study"},
    {Caller::kCli, "watch", "fettle.dev/trials", "following a Study"},
    {Caller::kCli, "get", "fettle.dev/trials", "why there is no log"},
    {Caller::kCli, "patch", "fettle.dev/trials", "fettle scale", "\"workers\""},
    {Caller::kCli, "list", "events.k8s.io/events", "fettle status --events"},
    {Caller::kCli, "list", "pods", "the pod of a log, and GPUs in use"},
    {Caller::kCli, "log", "pods/log", "fettle logs"},
    {Caller::kCli, "create", "pods", "fettle export-model"},
    {Caller::kCli, "get", "pods", "fettle export-model waits for its pod"},
    {Caller::kCli, "delete", "pods", "fettle export-model"},
    {Caller::kCli, "list", "nodes", "fettle gpus"},
    {Caller::kCli, "list", "resource.k8s.io/deviceclasses", "fettle gpus"},
    {Caller::kCli, "list", "resource.k8s.io/resourceslices", "fettle gpus"},
};

}  // namespace fettle::kube
