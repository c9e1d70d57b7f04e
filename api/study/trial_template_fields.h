// The fields of a Study document below spec.trial (study.h), for study_fields.h.
#pragma once

#include "api/fields/field.h"
#include "api/fields/label_syntax.h"
#include "api/study/study.h"
#include "api/study/study_names.h"
#include "api/study/study_rules.h"
#include "api/trainer/trainer_fields.h"

namespace fettle::api {

template <class Visitor, Like<MetricsFilter> T>
void visit_fields(Visitor& v, T& c) {
  v.field(
      "regex", c.regex,
      "Regular expression that finds metrics in the log; its groups are the name and the value.",
      text(1, 1024).needed());
  v.field("step", c.step,
          "Regular expression that finds the step in the log, such as epoch (\\d+). The step holds "
          "for its line and the lines that follow.",
          text(0, 1024));
  v.field("firstStep", c.first_step,
          "Number that the program gives its first step; a Study counts from 1.", whole(0, 1));
}

template <class Visitor, Like<Checkpoints> T>
void visit_fields(Visitor& v, T& c) {
  v.field("claim", c.claim, "Name of an existing PersistentVolumeClaim. Fettle never deletes it.",
          text(0, 253));
  v.field("size", c.size,
          "Size of a PersistentVolumeClaim that is created for the Study and deleted with it.",
          above(0, 1e18).as(Form::kQuantity));
  v.field("storageClass", c.storage_class,
          "Storage class of the created claim. Default: that of the cluster.", text(0, 253));
  v.field("accessMode", c.access_mode, "Access mode of the created claim.",
          one_of(access_mode_names()));
  v.field("keep", c.keep, "Number of newest checkpoints to keep for each trial.", whole(1, 100));
}

template <class Visitor, Like<Gpu> T>
void visit_fields(Visitor& v, T& c) {
  v.field("count", c.count, "Number of whole GPUs for each worker.", whole(1, 64));
  // Below 1, because a whole GPU is count: 1.
  v.field("fraction", c.fraction, "Share of one GPU, on a cluster that shares GPUs.",
          above(0, 1).with(&FieldRules::below_max, true));
  v.field("memory", c.memory,
          "Memory of one GPU, on a cluster that shares GPUs. auto: the amount that the trainer "
          "says each training needs.",
          above(0, 1e15).as(Form::kQuantity).or_chosen());
  v.field("model", c.model,
          "Words in the name of the GPU model, such as H100. Left out: any model.",
          text(0, kLongestName).as(Form::kLabelValue));
}

template <class Visitor, Like<Workers> T>
void visit_fields(Visitor& v, T& c) {
  v.field("min", c.min, "Smallest number of data-parallel workers.", whole(1, 1024));
  v.field("max", c.max, "Largest number of data-parallel workers.", whole(1, 1024));
  v.field("sizing", c.sizing,
          "Who changes the number of workers. Auto: trials grow while GPUs are free and shrink "
          "while a trial waits. Manual: only fettle scale changes it. Default: Auto with the "
          "built-in trainer, else Manual.");
}

template <class Visitor, Like<Toleration> T>
void visit_fields(Visitor& v, T& c) {
  v.field("key", c.key, "Key of the taint. Left out, with operator Exists: every taint.",
          label_key());
  v.field("operator", c.relation,
          "Equal: the taint must have the given value. Exists: it may have any value.");
  v.field("value", c.value, "Value of the taint, with operator Equal.", label_value());
  v.field("effect", c.effect, "Effect of the taint. Left out: every effect.");
  v.field("tolerationSeconds", c.seconds,
          "With effect NoExecute: seconds that a pod stays on a node after it is tainted. Left "
          "out: forever.",
          whole(0, kLargestWhole));
}

inline FieldRules object() { return FieldRules{}.as(Form::kObject); }
inline FieldRules objects(std::size_t most) { return list(0, most).as(Form::kObject); }

// Fields of the built-in trainer's container, named as in Kubernetes except securityContext.
template <class Visitor, Like<TrainerPod> T>
void visit_container_fields(Visitor& v, T& c) {
  v.field("imagePullPolicy", c.image_pull_policy,
          "When the image is pulled: Always, IfNotPresent or Never.",
          one_of(image_pull_policy_names()));
  v.field("containerSecurityContext", c.container_security_context,
          "Security context of the container, merged into that of the restricted Pod Security "
          "Standard.",
          object());
  v.field(
      "resources", c.resources,
      "Requests and limits of CPU, memory and other resources. GPUs are requested by trial.gpu.",
      object());
  v.field("volumeMounts", c.volume_mounts,
          "Paths at which volumes are mounted. None may be at or below /fettle.",
          objects(kMostMounts));
  v.field("env", c.env, "Environment variables. Those that Fettle sets cannot be changed.",
          objects(kMostPodVariables));
  v.field("envFrom", c.env_from,
          "ConfigMaps and Secrets whose entries become environment variables.",
          objects(kMostEnvSources));
}

// Fields are named as in a pod, into which they are copied.
template <class Visitor, Like<TrainerPod> T>
void visit_fields(Visitor& v, T& c) {
  const FieldRules values = list(0, kMostSelectors).as(Form::kLabelValue).by_label();
  v.field("labels", c.labels, "Labels of the pods. The prefix fettle.dev/ is reserved.",
          values.of_text(kLongestLabelName).with(&FieldRules::max_size, kMostPodLabels));
  v.field("annotations", c.annotations,
          "Annotations of the pods. The prefix fettle.dev/ is reserved.",
          list(0, kMostPodLabels).of_text(kLongestAnnotation).by_label());
  v.field("nodeSelector", c.node_selector, "Labels that a node must have to run the pods.",
          values.of_text(kLongestLabelName));
  v.field("tolerations", c.tolerations, "Node taints that the pods tolerate.",
          list(0, kMostTolerations));
  v.field("affinity", c.affinity, "Affinity of the pods to nodes and to other pods.", object());
  v.field("topologySpreadConstraints", c.topology_spread,
          "Constraints on how the pods are spread over the cluster.", objects(kMostSpreads));
  v.field("schedulerName", c.scheduler, "Name of the scheduler. Default: that of the cluster.",
          dns_subdomain());
  v.field("runtimeClassName", c.runtime_class,
          "Name of the RuntimeClass of the pods, such as nvidia.", dns_subdomain());
  v.field("priorityClassName", c.priority_class, "Name of the PriorityClass of the pods.",
          dns_subdomain());
  v.field("serviceAccountName", c.service_account,
          "Name of the ServiceAccount of the pods, which must be allowed to report. Default: "
          "fettle-trainer.",
          dns_subdomain());
  v.field("securityContext", c.security_context,
          "Security context of the pods, merged into that of the restricted Pod Security Standard.",
          object());
  v.field(
      "volumes", c.volumes,
      "Volumes of the pods, such as a claim with data. Names that begin with fettle- are reserved.",
      objects(kMostVolumes));
  visit_container_fields(v, c);
}

template <class Visitor, Like<TrialTemplate> T>
void visit_fields(Visitor& v, T& c) {
  v.field("metrics", c.metrics,
          "How to find metrics in the log of an image that prints no JSON lines.");
  v.field("timeout", c.timeout, "Time after which a run is ended and counts as failed.",
          duration_above_zero());
  v.field("heartbeat", c.heartbeat, "Time without a report after which a run counts as hung.",
          duration_above_zero());
  v.field("retries", c.retries,
          "Number of further attempts after a failure that the trial itself caused.",
          whole(0, 100));
  v.field("gracePeriod", c.grace_period, "Time between SIGTERM and SIGKILL.", grace_period());
  v.field("checkpoints", c.checkpoints,
          "Where checkpoints are stored, and how many are kept. With a template, this promises "
          "that its image resumes from them.");
  v.field("gpu", c.gpu, "GPUs of each worker. Left out: the trial runs on the CPU.");
  v.field("workers", c.workers, "Number of data-parallel workers.");
  v.field(
      "execution", c.execution,
      "Process: each run of a trial is a process of its own. Warm, without a cluster: a process "
      "stays "
      "and trains one trial after another, so imports, data and the GPU's context are paid once; a "
      "program of your own takes them with fettle.trials(). Left out, or auto: Warm for the "
      "built-in trainer with one worker, else Process. Job and Pool, of earlier versions, mean "
      "Process and auto.");
  v.field("slots", c.slots,
          "With execution Warm and the built-in trainer: number of trials that one process trains "
          "at once. auto: 1.",
          whole(1, kMostSlots).or_chosen());
  v.field("queue", c.queue,
          "On a cluster: name of the queue that admits the trials, a LocalQueue of Kueue or, with "
          "gang volcano or kai, a queue of that scheduler. May change to another one: trials that "
          "have not been admitted move.",
          text(1, kLongestLabelName).as(Form::kDnsSubdomain));
  v.field(
      "queuePriorityClass", c.queue_priority,
      "Name of the WorkloadPriorityClass of the trials in the queue of Kueue. May change at any "
      "time.",
      text(1, kLongestLabelName).as(Form::kDnsSubdomain));
  v.field("gang", c.gang,
          "On a cluster: what schedules all workers of a trial together. auto: Kueue where there "
          "is a queue, else Fettle, one trial after the other. none: nothing. native, "
          "coscheduling, volcano, kai: a PodGroup of Kubernetes or of that scheduler.",
          one_of(gang_names()));
  v.field("passEnvironment", c.pass_environment,
          "Names of environment variables, such as HF_TOKEN, that a local run passes on to its "
          "trials. On a cluster use env or envFrom of the template.",
          {.form = Form::kVariableName,
           .max_size = kMostPassedVariables,
           .min_text = 1,
           .max_text = kLongestVariable});
  v.field(
      "pod", c.pod,
      "Further settings of the pods of the built-in trainer. A template describes its own pods.");
  v.field("trainer", c.trainer, "Configuration of the built-in trainer: data, model and training.");
  v.field("template", c.pod_template,
          "Pod template that runs your own image or command, instead of trainer.",
          FieldRules{}.as(Form::kObject));
}

}  // namespace fettle::api
