{{/* Names, labels, images: what every object needs. */}}

{{- define "tarsy.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* (dict "root" $ "component" "worker") */}}
{{- define "tarsy.name" -}}
{{- printf "%s-%s" (include "tarsy.fullname" .root) .component -}}
{{- end -}}

{{- define "tarsy.selectorLabels" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | trunc 63 }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* The labels of selectors come last, so that no other label replaces them. */}}
{{- define "tarsy.labels" -}}
{{- $own := dict
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name (.root.Chart.Version | replace "+" "_"))
  "app.kubernetes.io/version" (.root.Chart.AppVersion | toString)
  "app.kubernetes.io/managed-by" .root.Release.Service
  "app.kubernetes.io/part-of" "tarsy" -}}
{{- $selector := include "tarsy.selectorLabels" . | fromYaml -}}
{{- mergeOverwrite (dict) (deepCopy .root.Values.commonLabels) $own $selector | toYaml -}}
{{- end -}}

{{- define "tarsy.podLabels" -}}
{{- $values := index .root.Values (include "tarsy.valuesKey" .component) | default dict -}}
{{- $further := $values.podLabels | default dict -}}
{{- /* The version of the chart is no label of pods: a new chart with the same pods would roll them. */}}
{{- mergeOverwrite (dict) (deepCopy $further) (omit (include "tarsy.labels" . | fromYaml) "helm.sh/chart") | toYaml -}}
{{- end -}}

{{/* The key of values.yaml that belongs to a component. */}}
{{- define "tarsy.valuesKey" -}}
{{- get (dict "worker" "worker" "llm-service" "llmService" "receiver" "receiver" "slack" "slackReceiver" "web" "web" "migrate" "migrations" "test" "test") . -}}
{{- end -}}

{{- define "tarsy.image" -}}
{{- $own := .values.image | default dict -}}
{{- $image := .root.Values.image -}}
{{- $repository := $own.repository | default $image.repository -}}
{{- $digest := $own.digest | default (ternary "" $image.digest (or (not (empty $own.tag)) (not (empty $own.repository)))) -}}
{{- if $digest -}}
{{- printf "%s@%s" $repository $digest -}}
{{- else -}}
{{- printf "%s:%s" $repository ($own.tag | default $image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "tarsy.serviceAccountName" -}}
{{- $account := .values.serviceAccount -}}
{{- if $account.create -}}
{{- $account.name | default (include "tarsy.name" .) -}}
{{- else -}}
{{- $account.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* Seconds of a duration of tarsy.yaml, or -1 for another text: `tarsy config check` says what is wrong with that. */}}
{{- define "tarsy.seconds" -}}
{{- $text := . | toString | trim -}}
{{- if regexMatch "^[0-9]+(ms|s|m|h|d)$" $text -}}
{{- $number := regexFind "^[0-9]+" $text | int64 -}}
{{- $unit := regexFind "(ms|s|m|h|d)$" $text -}}
{{- if eq $unit "ms" -}}{{ div (add $number 999) 1000 }}
{{- else -}}{{ mul $number (get (dict "s" 1 "m" 60 "h" 3600 "d" 86400) $unit) }}{{- end -}}
{{- else if eq $text "0" -}}0
{{- else -}}-1{{- end -}}
{{- end -}}

{{/* A setting of tarsy.yaml: (dict "root" $ "section" "worker" "key" "slots" "default" 4) */}}
{{- define "tarsy.setting" -}}
{{- $section := get .root.Values.config .section | default dict -}}
{{- if hasKey $section .key -}}{{ get $section .key }}{{- else -}}{{ .default }}{{- end -}}
{{- end -}}

{{/* The most workers that this release starts. */}}
{{- define "tarsy.maxWorkers" -}}
{{- if eq .Values.autoscaling.mode "none" -}}{{ .Values.worker.replicas | int }}{{- else -}}{{ .Values.autoscaling.maxReplicas | int }}{{- end -}}
{{- end -}}

{{- define "tarsy.minWorkers" -}}
{{- if eq .Values.autoscaling.mode "none" -}}{{ .Values.worker.replicas | int }}{{- else -}}{{ .Values.autoscaling.minReplicas | int }}{{- end -}}
{{- end -}}

{{/* The most pods of the LLM service or the receiver: (dict "values" .Values.receiver) */}}
{{- define "tarsy.maxPods" -}}
{{- if not .values.enabled -}}0{{- else if .values.autoscaling.enabled -}}{{ .values.autoscaling.maxReplicas | int }}{{- else -}}{{ .values.replicas | int }}{{- end -}}
{{- end -}}

{{- define "tarsy.natsUrl" -}}
{{- if .Values.trial.enabled -}}
nats://{{ include "tarsy.name" (dict "root" . "component" "trial-nats") }}:4222
{{- else -}}
{{- .Values.nats.url -}}
{{- end -}}
{{- end -}}

{{/* The address that the chart stores in a Secret of its own, if values have one. */}}
{{- define "tarsy.databaseUrl" -}}
{{- if .Values.trial.enabled -}}
postgres://tarsy:{{ .Values.trial.password | urlquery }}@{{ include "tarsy.name" (dict "root" . "component" "trial-postgres") }}:5432/tarsy
{{- else -}}
{{- .Values.database.url -}}
{{- end -}}
{{- end -}}

{{- define "tarsy.llmAddress" -}}
{{- if .Values.llmService.enabled -}}
{{- $scheme := ternary "https://" "" (not (empty .Values.llmService.tls.secretName)) -}}
{{ $scheme }}{{ include "tarsy.name" (dict "root" . "component" "llm-service") }}.{{ .Release.Namespace }}.svc:{{ .Values.llmService.service.port | int }}
{{- else -}}
{{- .Values.llmService.address -}}
{{- end -}}
{{- end -}}

{{/* The ports of notifications: those of the values, and those of the mail servers. A port with a variable is not known here. */}}
{{- define "tarsy.notificationPorts" -}}
{{- $ports := list -}}
{{- range .Values.networkPolicy.notificationPorts -}}
{{- $ports = append $ports (. | int) -}}
{{- end -}}
{{- range $name, $route := .Values.config.notifications | default dict -}}
{{- with ($route | default dict).smtp -}}
{{- $usual := get (dict "required" 465 "none" 25) (.tls | default "starttls") | default 587 -}}
{{- $port := .port | default $usual | int -}}
{{- if $port -}}
{{- $ports = append $ports $port -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $ports | uniq | toYaml -}}
{{- end -}}
