{{/* Name of everything that belongs to the release: the release's, with the chart's in it. */}}
{{- define "fettle.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "fettle.operator" -}}
{{- include "fettle.fullname" . }}-operator
{{- end -}}

{{/* Name of what belongs to the release but lives in no namespace. */}}
{{- define "fettle.clusterName" -}}
{{- printf "%s.%s" .Release.Namespace (include "fettle.operator" .) -}}
{{- end -}}

{{/* The name by which the API server knows the operator. */}}
{{- define "fettle.operatorUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "fettle.operator" . }}
{{- end -}}

{{- define "fettle.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "fettle.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Labels and annotations of an object: those that all have, and its own, which win:
{{ include "fettle.about" (dict "root" $ "labels" (dict ...) "annotations" (dict ...)) }}. */}}
{{- define "fettle.about" -}}
{{- $common := include "fettle.labels" .root | fromYaml -}}
labels:
  {{- toYaml (merge (dict) (.labels | default dict) $common .root.Values.commonLabels) | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The annotations that keep an object when the release is uninstalled, as JSON. */}}
{{- define "fettle.keep" -}}
{{- ternary (dict "helm.sh/resource-policy" "keep") dict . | toJson -}}
{{- end -}}

{{/* Where Studies run, as a JSON list: {{ include ... | fromJsonArray }}. Where the operator's pods
run, whoever may create pods can take the operator's account; so Studies are kept out of there. */}}
{{- define "fettle.studyNamespaces" -}}
{{- if and (not .Values.studyNamespaces) (eq .Values.rbac.scope "Namespaced") -}}
{{- fail "studyNamespaces names none: the operator would have nothing to do. Name some, or set rbac.scope=Cluster." -}}
{{- end -}}
{{- if has .Release.Namespace .Values.studyNamespaces -}}
{{- if eq .Values.rbac.scope "Cluster" -}}
{{- fail (printf "studyNamespaces names %s, the namespace of the release: an operator of the whole cluster (rbac.scope=Cluster) takes no Studies beside itself. Name other namespaces." .Release.Namespace) -}}
{{- else if not .Values.studiesBesideOperator -}}
{{- fail (printf "studyNamespaces names %s, the namespace of the release: whoever runs Jobs there can take the operator's account. Install the release in a namespace of its own, or set studiesBesideOperator=true." .Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- .Values.studyNamespaces | toJson -}}
{{- end -}}

{{/* An image: {{ include "fettle.image" (dict "image" .Values.operator.image "root" $) }}. */}}
{{- define "fettle.image" -}}
{{- with .root.Values.imageRegistry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* What the operator may do where Studies run. Golden files in helm/tests show it rendered. */}}
{{- define "fettle.operatorRules" -}}
# Studies are the user's; the operator writes their status, and deletes those whose
# ttlAfterFinished has passed. The garbage collector deletes Trials with their Study.
- apiGroups: [fettle.dev]
  resources: [studies]
  verbs: [get, list, watch, delete]
# `operate` is not a verb of the API server: the admission policies recognise an operator by it.
- apiGroups: [fettle.dev]
  resources: [trials]
  verbs: [get, list, watch, create, patch, operate]
- apiGroups: [fettle.dev]
  resources: [studies/status, trials/status]
  verbs: [patch]
# Owner references that block deletion ask for this where OwnerReferencesPermissionEnforcement is on.
- apiGroups: [fettle.dev]
  resources: [studies/finalizers, trials/finalizers]
  verbs: [update]
- apiGroups: [batch]
  resources: [jobs/finalizers]
  verbs: [update]
# A run of a trial is a Job.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
# For metrics of images without a reporter.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
# A Study's pod is created once with dryRun=All, so that a forbidden template is known at once. RBAC
# has no verb for dry runs; the admission policy refuses the operator every other pod. (Whoever may
# create Jobs can have any pod made, so this lends nothing new even without the policy.)
- apiGroups: [""]
  resources: [pods]
  verbs: [create]
# The workers of a Study's trials meet through a headless Service. `get`, here and below: a full quota
# refuses also what exists.
- apiGroups: [""]
  resources: [services]
  verbs: [get, create]
# Workers that a scheduler places as a group (trial.gang), where the cluster has one that does.
- apiGroups: [scheduling.k8s.io, scheduling.x-k8s.io, scheduling.volcano.sh, scheduling.run.ai]
  resources: [podgroups]
  verbs: [get, create]
{{- if .Values.rbac.readWorkloads }}
# Kueue's own words on a trial that waits in its queue (trial.queue).
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [list]
{{- end }}
# Checkpoints of a Study that asks for a volume of its own.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, create]
{{- $claims := list }}
{{- range .Values.gpuProfiles }}
{{- if .put.claim }}
{{- $claims = append $claims (ternary "resourceclaims" "resourceclaimtemplates" (.put.sharedClaim | default false)) }}
{{- end }}
{{- end }}
{{- with $claims | uniq | sortAlpha }}
# GPUs that are claimed (gpuProfiles with put.claim).
- apiGroups: [resource.k8s.io]
  resources: {{ . | toJson }}
  verbs: [get, create]
{{- end }}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* A part of a pod template, as JSON; null takes a field away (runtime/kubernetes/pod/pod_patch.h). */}}
{{- define "fettle.trainerPod" -}}
{{- $trainer := .Values.trainer -}}
{{- $container := dict "name" "trainer" "imagePullPolicy" $trainer.image.pullPolicy -}}
{{- range $field := list "resources" "env" "volumeMounts" -}}
{{- with get $trainer $field }}{{ $_ := set $container $field . }}{{ end -}}
{{- end -}}
{{- /* Helm removes values that are null. */ -}}
{{- $user := ternary $trainer.runAsUser nil (hasKey $trainer "runAsUser") -}}
{{- $security := dict "runAsUser" $user "runAsGroup" $user "fsGroup" $user -}}
{{- $spec := dict "containers" (list $container) "securityContext" $security -}}
{{- range $field := list "volumes" "nodeSelector" "tolerations" "priorityClassName" -}}
{{- with get $trainer $field }}{{ $_ := set $spec $field . }}{{ end -}}
{{- end -}}
{{- $metadata := dict -}}
{{- range $field := list "labels" "annotations" -}}
{{- with get $trainer $field }}{{ $_ := set $metadata $field . }}{{ end -}}
{{- end -}}
{{- dict "metadata" $metadata "spec" $spec | toJson -}}
{{- end -}}

{{/* The operator's command line; `helm test` has the same. */}}
{{- define "fettle.operatorArgs" -}}
{{- if eq .Values.rbac.scope "Namespaced" }}
{{- range include "fettle.studyNamespaces" . | fromJsonArray }}
- --namespace={{ . }}
{{- end }}
{{- end }}
- --trainer-image={{ include "fettle.image" (dict "image" .Values.trainer.image "root" .) }}
- --trainer-pod=/etc/fettle/trainer-pod.json
- --gpu-profiles=/etc/fettle-gpus/gpu-profiles.json
- --leader-elect={{ .Values.operator.leaderElection }}
{{- if .Values.operator.leaderElection }}
- --lease-namespace={{ .Release.Namespace }}
- --lease-name={{ include "fettle.operator" . }}
- --lease-duration={{ .Values.operator.lease.durationSeconds }}
- --lease-renew={{ .Values.operator.lease.renewSeconds }}
- --lease-retry={{ .Values.operator.lease.retrySeconds }}
{{- end }}
- --metrics-port={{ .Values.operator.metricsPort }}
- --health-port={{ .Values.operator.healthPort }}
- --workers={{ .Values.operator.workers }}
- --calls-per-second={{ .Values.operator.callsPerSecond }}
- --gang-timeout={{ .Values.operator.gangTimeoutSeconds }}
- --start-timeout={{ .Values.operator.startTimeoutSeconds }}
- --reconcile-timeout={{ .Values.operator.reconcileTimeoutSeconds }}
- --log-level={{ .Values.operator.logLevel }}
- --log-format={{ .Values.operator.logFormat }}
{{- with .Values.operator.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What all pods of the operator's image have in common. */}}
{{- define "fettle.operatorPod" -}}
serviceAccountName: {{ include "fettle.operator" . }}
automountServiceAccountToken: true
enableServiceLinks: false
{{- with .Values.operator.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.operator.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.operator.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.operator.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
- name: trainer-pod
  configMap: {name: {{ include "fettle.operator" . }}-trainer-pod}
- name: gpu-profiles
  configMap: {name: {{ include "fettle.operator" . }}-gpu-profiles}
{{- end -}}

{{/* And their container. */}}
{{- define "fettle.operatorContainer" -}}
image: {{ include "fettle.image" (dict "image" .Values.operator.image "root" .) | quote }}
imagePullPolicy: {{ .Values.operator.image.pullPolicy }}
volumeMounts:
- {name: trainer-pod, mountPath: /etc/fettle, readOnly: true}
- {name: gpu-profiles, mountPath: /etc/fettle-gpus, readOnly: true}
{{- with .Values.operator.containerSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
