{{/* The parts of a pod that all roles share. The context is (dict "root" $ "component" … "values" …). */}}

{{- define "tarsy.podMetadata" -}}
labels: {{- include "tarsy.podLabels" . | nindent 2 }}
{{- $annotations := mergeOverwrite (dict) (deepCopy (.values.podAnnotations | default dict)) (include "tarsy.checksums" . | fromYaml | default dict) }}
{{- with $annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "tarsy.podSettings" -}}
{{- $root := .root -}}
serviceAccountName: {{ include "tarsy.serviceAccountName" . }}
automountServiceAccountToken: {{ .values.serviceAccount.automountToken }}
enableServiceLinks: false
securityContext: {{- toYaml $root.Values.podSecurityContext | nindent 2 }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $root.Values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with $root.Values.hostAliases }}
hostAliases: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.dnsConfig }}
dnsConfig: {{- toYaml . | nindent 2 }}
{{- end }}
{{- $selector := include "tarsy.selectorLabels" . }}
{{- if .values.topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml .values.topologySpreadConstraints | nindent 2 }}
{{- else }}
{{- with .values.topologySpreadKeys }}
topologySpreadConstraints:
  {{- range . }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- $selector | nindent 8 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "tarsy.containerSettings" -}}
image: {{ include "tarsy.image" . | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext: {{- toYaml .root.Values.securityContext | nindent 2 }}
resources: {{- toYaml .values.resources | nindent 2 }}
{{- end -}}

{{/* Variables of every role: where the servers are, and the files with secrets. */}}
{{- define "tarsy.variables" -}}
{{- if and (ne .component "llm-service") (not .root.Values.nats.urlSecret.name) }}
- name: NATS_URL
  value: {{ include "tarsy.natsUrl" .root | quote }}
{{- end }}
{{- if and (ne .component "llm-service") (eq .root.Values.nats.login.kind "password") }}
- name: NATS_USER
  value: {{ get .root.Values.nats.login.users .component | quote }}
{{- end }}
{{- if eq .component "worker" }}
- name: TARSY_LLM_ADDR
  value: {{ include "tarsy.llmAddress" .root | quote }}
- name: TARSY_WORKER_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- end }}
{{- if include "tarsy.keepsPodState" . }}
- name: TARSY_POD_UID
  valueFrom: {fieldRef: {fieldPath: metadata.uid}}
- name: TARSY_POD_STATE
  value: /var/lib/tarsy
{{- end }}
{{- include "tarsy.secretVariables" . }}
{{- include "tarsy.tracingVariables" . }}
{{- if .values.logLevel }}
- name: TARSY_LOG
  value: {{ .values.logLevel }}
{{- end }}
{{- if include "tarsy.readsConfig" . }}
- name: TARSY_CONFIG
  value: /etc/tarsy/tarsy.yaml
{{- end }}
{{- with .values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "tarsy.tracingVariables" -}}
{{- $tracing := .root.Values.tracing -}}
{{- if and $tracing.endpoint (has .component (list "worker" "llm-service" "receiver" "slack")) }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ $tracing.endpoint | quote }}
- name: OTEL_RESOURCE_ATTRIBUTES
  value: {{ printf "k8s.namespace.name=%s" .root.Release.Namespace | quote }}
- name: OTEL_TRACES_SAMPLER
  value: parentbased_traceidratio
- name: OTEL_TRACES_SAMPLER_ARG
  value: {{ $tracing.ratio | toString | quote }}
{{- if $tracing.content }}
- name: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT
  value: "true"
{{- end }}
{{- end }}
{{- end -}}

{{/* Whether a worker has a directory that lives as long as its pod. The init container that migrates has no such variable. */}}
{{- define "tarsy.keepsPodState" -}}
{{- if and (eq .component "worker") (get .values "takeOverAfterRestart") -}}true{{- end -}}
{{- end -}}

{{- define "tarsy.readsConfig" -}}
{{- if and (ne .component "test") (include "tarsy.hasConfig" .root) -}}true{{- end -}}
{{- end -}}

{{/* The ConfigMap with the skills; only workers read it, and the init container that migrates has the mounts of a worker. */}}
{{- define "tarsy.readsSkills" -}}
{{- if and (eq .component "worker") .root.Values.skills.existingConfigMap -}}true{{- end -}}
{{- end -}}

{{- define "tarsy.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if include "tarsy.keepsPodState" . }}
- {name: pod-state, mountPath: /var/lib/tarsy}
{{- end }}
{{- if include "tarsy.readsConfig" . }}
- {name: config, mountPath: /etc/tarsy, readOnly: true}
{{- end }}
{{- if include "tarsy.readsSkills" . }}
- {name: skills, mountPath: /etc/tarsy-skills, readOnly: true}
{{- end }}
{{- if include "tarsy.files" . | fromYamlArray }}
- {name: secrets, mountPath: /var/run/secrets/tarsy, readOnly: true}
{{- end }}
{{- with .values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "tarsy.volumes" -}}
- name: tmp
  emptyDir: {sizeLimit: {{ .root.Values.tmpSize }}}
{{- if include "tarsy.keepsPodState" . }}
- name: pod-state
  emptyDir: {sizeLimit: 1Mi}
{{- end }}
{{- if include "tarsy.readsConfig" . }}
- name: config
  configMap:
    name: {{ include "tarsy.configMapName" . }}
    defaultMode: 0444
    items:
      - {key: {{ include "tarsy.configKey" . | quote }}, path: tarsy.yaml}
{{- end }}
{{- if include "tarsy.readsSkills" . }}
- name: skills
  configMap: {name: {{ .root.Values.skills.existingConfigMap | quote }}, defaultMode: 0444}
{{- end }}
{{- include "tarsy.secretVolume" . }}
{{- with .values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Liveness asks this process only. A neighbour that is unavailable is no reason for a restart. */}}
{{- define "tarsy.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 3
{{- end -}}
