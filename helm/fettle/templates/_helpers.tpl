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

{{/* Where Studies run, as a JSON list: {{ include ... | fromJsonArray }}. */}}
{{- define "fettle.studyNamespaces" -}}
{{- .Values.studyNamespaces | default (list .Release.Namespace) | toJson -}}
{{- end -}}

{{/* An image: {{ include "fettle.image" (dict "image" .Values.operator.image "chart" .Chart) }}. */}}
{{- define "fettle.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* What the operator may do where Studies run. Golden files in helm/tests show it rendered. */}}
{{- define "fettle.operatorRules" -}}
# Studies are the user's; the operator writes their status, and deletes those whose
# ttlAfterFinished has passed. Trials go with their Study, by the hand of the garbage collector.
- apiGroups: [fettle.dev]
  resources: [studies]
  verbs: [get, list, watch, delete]
- apiGroups: [fettle.dev]
  resources: [trials]
  verbs: [get, list, watch, create, patch]
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
# Metrics of images that print them.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
# A Study's pod is created once with dryRun=All, so that a forbidden template is known at once. RBAC
# has no verb for dry runs; the admission policy refuses the operator every other pod. (Whoever may
# create Jobs can have any pod made, so this lends nothing new even without the policy.)
- apiGroups: [""]
  resources: [pods]
  verbs: [create]
# Multi-worker trials meet through a headless Service.
- apiGroups: [""]
  resources: [services]
  verbs: [create]
# Checkpoints of a Study that asks for a volume of its own.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [create]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}
