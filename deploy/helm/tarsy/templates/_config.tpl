{{/* tarsy.yaml, and its parts for the roles that need no variables of MCP servers. */}}

{{- define "tarsy.hasConfig" -}}
{{- if or .Values.existingConfigMap.name .Values.web.enabled (include "tarsy.config" . | fromYaml) -}}true{{- end -}}
{{- end -}}

{{/* The file of the values, with the files of TLS that the chart mounts. */}}
{{- define "tarsy.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $tls := .Values.llmService.tls -}}
{{- if and .Values.llmService.enabled $tls.secretName -}}
{{- $files := dict "certificate" "/var/run/secrets/tarsy/tls/tls.crt" "key" "/var/run/secrets/tarsy/tls/tls.key" -}}
{{- if $tls.clientCaSecret.name -}}{{- $_ := set $files "client_ca" "/var/run/secrets/tarsy/client-ca/ca.crt" -}}{{- end -}}
{{- $section := get $config "llm_service" | default dict -}}
{{- $_ := set $section "tls" $files -}}
{{- $_ := set $config "llm_service" $section -}}
{{- end -}}
{{- if $config -}}{{- toYaml $config -}}{{- end -}}
{{- end -}}

{{/* The sections that the receiver, the web server and the migration read. Within the cluster the web server is asked by
the names of its service. */}}
{{- define "tarsy.queueConfig" -}}
{{- $parts := deepCopy (pick .Values.config "worker" "streams" "receive" "web" "approvals") -}}
{{- if .Values.web.enabled -}}
{{- $name := include "tarsy.name" (dict "root" . "component" "web") -}}
{{- $namespace := .Release.Namespace -}}
{{- $names := list $name (printf "%s.%s" $name $namespace) (printf "%s.%s.svc" $name $namespace) (printf "%s.%s.svc.cluster.local" $name $namespace) -}}
{{- $section := get $parts "web" | default dict -}}
{{- $_ := set $section "hosts" (concat (get $section "hosts" | default list) $names) -}}
{{- $_ := set $parts "web" $section -}}
{{- end -}}
{{- if $parts -}}{{- toYaml $parts -}}{{- else -}}{}{{- end -}}
{{- end -}}

{{/* The sections that the receiver of Slack reads. Of the routes it needs the address of a bot's API only; their chains and
templates are of sections that it has not. */}}
{{- define "tarsy.slackConfig" -}}
{{- $parts := pick .Values.config "receive" "approvals" -}}
{{- $routes := dict -}}
{{- range $name, $route := .Values.config.notifications | default dict -}}
{{- $bot := pick ($route | default dict) "kind" "token_file" "token_env" "channel" "api_url" -}}
{{- if and (eq ($bot.kind | default "" | toString) "slack") (or $bot.token_file $bot.token_env) -}}
{{- $_ := set $routes $name $bot -}}
{{- end -}}
{{- end -}}
{{- if $routes -}}{{- $_ := set $parts "notifications" $routes -}}{{- end -}}
{{- if $parts -}}{{- toYaml $parts -}}{{- else -}}{}{{- end -}}
{{- end -}}

{{/* The file of a component, as it rolls its pods. */}}
{{- define "tarsy.configOf" -}}
{{- if eq .component "slack" -}}{{- include "tarsy.slackConfig" .root -}}
{{- else if has .component (list "receiver" "web" "migrate") -}}{{- include "tarsy.queueConfig" .root -}}
{{- else -}}{{- include "tarsy.config" .root -}}{{- end -}}
{{- end -}}

{{/* The name of the ConfigMap of a component. The hook runs before the objects of the release exist. */}}
{{- define "tarsy.configMapName" -}}
{{- if .root.Values.existingConfigMap.name -}}
{{- .root.Values.existingConfigMap.name -}}
{{- else if and (eq .component "migrate") (include "tarsy.earlyAnnotations" .root) -}}
{{- include "tarsy.name" . -}}
{{- else -}}
{{- include "tarsy.fullname" .root -}}
{{- end -}}
{{- end -}}

{{- define "tarsy.configKey" -}}
{{- $existing := .root.Values.existingConfigMap -}}
{{- $isQueue := has .component (list "receiver" "web" "migrate") -}}
{{- if and $existing.name (eq .component "slack") -}}
{{- $existing.slackKey | default $existing.key -}}
{{- else if eq .component "slack" -}}
slack.yaml
{{- else if $existing.name -}}
{{- if $isQueue -}}{{ $existing.queueKey | default $existing.key }}{{- else -}}{{ $existing.key }}{{- end -}}
{{- else -}}
{{- if $isQueue -}}queue.yaml{{- else -}}tarsy.yaml{{- end -}}
{{- end -}}
{{- end -}}

{{/* What rolls the pods of a component: its file, and the Secret that the chart made. */}}
{{- define "tarsy.checksums" -}}
{{- if .root.Values.existingConfigMap.name -}}
{{- with .root.Values.configChecksum }}
checksum/config: {{ . | quote }}
{{- end }}
{{- else if include "tarsy.hasConfig" .root }}
checksum/config: {{ include "tarsy.configOf" . | sha256sum }}
{{- end }}
{{- with include "tarsy.inlineSecrets" .root | fromYaml }}
checksum/secret: {{ . | toYaml | sha256sum }}
{{- end }}
{{- end -}}

{{/* The secrets that values contain. The chart stores them in a Secret of its own. */}}
{{- define "tarsy.inlineSecrets" -}}
{{- $secrets := dict -}}
{{- with include "tarsy.databaseUrl" . }}{{- $_ := set $secrets "database-url" . -}}{{- end -}}
{{- if and .Values.trial.enabled .Values.trial.password }}{{- $_ := set $secrets "trial-password" .Values.trial.password -}}{{- end -}}
{{- with .Values.llmService.token.value }}{{- $_ := set $secrets "llm-token" . -}}{{- end -}}
{{- with .Values.web.token.value }}{{- $_ := set $secrets "web-token" . -}}{{- end -}}
{{- with .Values.receiver.token.value }}{{- $_ := set $secrets "receive-token" . -}}{{- end -}}
{{- if $secrets -}}{{- toYaml $secrets -}}{{- end -}}
{{- end -}}

{{- define "tarsy.inlineSecretName" -}}
{{- if and (eq .component "migrate") (include "tarsy.earlyAnnotations" .root) -}}
{{- include "tarsy.name" . -}}
{{- else -}}
{{- include "tarsy.fullname" .root -}}
{{- end -}}
{{- end -}}
