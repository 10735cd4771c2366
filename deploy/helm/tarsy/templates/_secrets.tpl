{{/* Secrets as files: which ones a component gets, and the variables that name them. */}}

{{/*
A list of files of a component: the variable that names the file, the Secret with its key, and the path below
/var/run/secrets/tarsy. The kubelet writes a changed Secret into the file.
*/}}
{{- define "tarsy.files" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $inline := include "tarsy.inlineSecretName" . -}}
{{- $files := list -}}
{{- if and (ne .component "llm-service") $values.nats.urlSecret.name -}}
{{- $files = append $files (dict "variable" "NATS_URL_FILE" "secret" $values.nats.urlSecret.name "key" $values.nats.urlSecret.key "path" "nats/url") -}}
{{- end -}}
{{- if ne .component "llm-service" -}}
{{- $files = concat $files (include "tarsy.natsFiles" . | fromYamlArray) -}}
{{- end -}}
{{- if has .component (list "worker" "web" "migrate") -}}
{{- $own := get (dict "migrate" $values.migrations.urlSecret "web" $values.web.databaseUrlSecret) .component | default dict -}}
{{- $shared := $values.database.urlSecret -}}
{{- $used := ternary $own $shared (not (empty $own.name)) -}}
{{- if $used.name -}}
{{- $files = append $files (dict "variable" "DATABASE_URL_FILE" "secret" $used.name "key" $used.key "path" "database/url") -}}
{{- else if include "tarsy.databaseUrl" $root -}}
{{- $files = append $files (dict "variable" "DATABASE_URL_FILE" "secret" $inline "key" "database-url" "path" "database/url") -}}
{{- end -}}
{{- end -}}
{{- if has .component (list "worker" "web" "migrate") -}}
{{- $own := get (dict "migrate" $values.migrations.passwordSecret "web" $values.web.databasePasswordSecret) .component | default dict -}}
{{- /* An address of a role's own has its own login: the workers' password is another role's, and would replace it. */ -}}
{{- $ownAddress := get (dict "migrate" $values.migrations.urlSecret "web" $values.web.databaseUrlSecret) .component | default dict -}}
{{- $shared := ternary $values.database.passwordSecret dict (empty $ownAddress.name) -}}
{{- $password := ternary $own $shared (not (empty $own.name)) -}}
{{- if $password.name -}}
{{- $files = append $files (dict "variable" "DATABASE_PASSWORD_FILE" "secret" $password.name "key" $password.key "path" "database/password") -}}
{{- end -}}
{{- with $values.database.caSecret -}}
{{- if .name -}}{{- $files = append $files (dict "variable" "DATABASE_CA_FILE" "secret" .name "key" .key "path" "database/ca.crt") -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $llm := $values.llmService -}}
{{- if has .component (list "worker" "llm-service") -}}
{{- if $llm.token.secret.name -}}
{{- $files = append $files (dict "variable" "TARSY_LLM_TOKEN_FILE" "secret" $llm.token.secret.name "key" $llm.token.secret.key "path" "llm/token") -}}
{{- else if $llm.token.value -}}
{{- $files = append $files (dict "variable" "TARSY_LLM_TOKEN_FILE" "secret" $inline "key" "llm-token" "path" "llm/token") -}}
{{- end -}}
{{- end -}}
{{- if eq .component "worker" -}}
{{- range $values.notifications.secrets -}}
{{- $files = append $files (dict "secret" .secret.name "key" .secret.key "path" (printf "notifications/%s" .file)) -}}
{{- end -}}
{{- /* The key of the channel, which the file names for all roles, and not the signing secret. */ -}}
{{- $keys := (($values.config | default dict).approvals | default dict).keys | default dict -}}
{{- $key := ($keys.slack | default dict).secret_file | default "" | toString -}}
{{- range $values.slackReceiver.secrets -}}
{{- if eq $key (printf "/var/run/secrets/tarsy/slack/%s" .file) -}}
{{- $files = append $files (dict "secret" .secret.name "key" .secret.key "path" (printf "slack/%s" .file)) -}}
{{- end -}}
{{- end -}}
{{- with $llm.tls.caSecret -}}
{{- if .name -}}{{- $files = append $files (dict "variable" "TARSY_LLM_CA_FILE" "secret" .name "key" .key "path" "llm/ca.crt") -}}{{- end -}}
{{- end -}}
{{- with $llm.tls.clientSecretName -}}
{{- $files = append $files (dict "variable" "TARSY_LLM_CERT_FILE" "secret" . "key" "tls.crt" "path" "llm/tls.crt") -}}
{{- $files = append $files (dict "variable" "TARSY_LLM_KEY_FILE" "secret" . "key" "tls.key" "path" "llm/tls.key") -}}
{{- end -}}
{{- end -}}
{{- if eq .component "llm-service" -}}
{{- with $llm.tls.secretName -}}
{{- $files = append $files (dict "secret" . "key" "tls.crt" "path" "tls/tls.crt") -}}
{{- $files = append $files (dict "secret" . "key" "tls.key" "path" "tls/tls.key") -}}
{{- end -}}
{{- with $llm.tls.clientCaSecret -}}
{{- if .name -}}{{- $files = append $files (dict "secret" .name "key" .key "path" "client-ca/ca.crt") -}}{{- end -}}
{{- end -}}
{{- range $llm.keys -}}
{{- $files = append $files (dict "variable" (printf "%s_FILE" .variable) "secret" .secret.name "key" .secret.key "path" (printf "keys/%s" .variable)) -}}
{{- end -}}
{{- end -}}
{{- if eq .component "receiver" -}}
{{- if $values.receiver.token.secret.name -}}
{{- $files = append $files (dict "variable" "TARSY_RECEIVE_TOKEN_FILE" "secret" $values.receiver.token.secret.name "key" $values.receiver.token.secret.key "path" "receive/token") -}}
{{- else if $values.receiver.token.value -}}
{{- $files = append $files (dict "variable" "TARSY_RECEIVE_TOKEN_FILE" "secret" $inline "key" "receive-token" "path" "receive/token") -}}
{{- end -}}
{{- end -}}
{{- if eq .component "slack" -}}
{{- range $values.slackReceiver.secrets -}}
{{- $files = append $files (dict "secret" .secret.name "key" .secret.key "path" (printf "slack/%s" .file)) -}}
{{- end -}}
{{- end -}}
{{- if eq .component "web" -}}
{{- if $values.web.token.secret.name -}}
{{- $files = append $files (dict "variable" "TARSY_WEB_TOKEN_FILE" "secret" $values.web.token.secret.name "key" $values.web.token.secret.key "path" "web/token") -}}
{{- else if $values.web.token.value -}}
{{- $files = append $files (dict "variable" "TARSY_WEB_TOKEN_FILE" "secret" $inline "key" "web-token" "path" "web/token") -}}
{{- end -}}
{{- with $values.web.proxySecret -}}
{{- if .name -}}{{- $files = append $files (dict "variable" "TARSY_WEB_PROXY_SECRET_FILE" "secret" .name "key" .key "path" "web/proxy") -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $tracing := $values.tracing -}}
{{- if and $tracing.endpoint (has .component (list "worker" "llm-service" "receiver" "slack")) -}}
{{- with $tracing.headersSecret -}}
{{- if .name -}}{{- $files = append $files (dict "variable" "OTEL_EXPORTER_OTLP_HEADERS_FILE" "secret" .name "key" .key "path" "tracing/headers") -}}{{- end -}}
{{- end -}}
{{- with $tracing.caSecret -}}
{{- if .name -}}{{- $files = append $files (dict "variable" "OTEL_EXPORTER_OTLP_CERTIFICATE" "secret" .name "key" .key "path" "tracing/ca.crt") -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if $files -}}{{- toYaml $files -}}{{- end -}}
{{- end -}}

{{- define "tarsy.natsFiles" -}}
{{- $nats := .root.Values.nats -}}
{{- $files := list -}}
{{- $variable := get (dict "creds" "NATS_CREDS_FILE" "nkey" "NATS_NKEY_FILE" "token" "NATS_TOKEN_FILE" "password" "NATS_PASSWORD_FILE") $nats.login.kind -}}
{{- if $variable -}}
{{- $files = append $files (dict "variable" $variable "secret" $nats.login.secret.name "key" (get $nats.login.secret (printf "%sKey" .component)) "path" (printf "nats/%s" $nats.login.kind)) -}}
{{- end -}}
{{- with $nats.tls.caSecret -}}
{{- if .name -}}{{- $files = append $files (dict "variable" "NATS_CA_FILE" "secret" .name "key" .key "path" "nats/ca.crt") -}}{{- end -}}
{{- end -}}
{{- with $nats.tls.clientSecretName -}}
{{- $files = append $files (dict "variable" "NATS_CERT_FILE" "secret" . "key" "tls.crt" "path" "nats/tls.crt") -}}
{{- $files = append $files (dict "variable" "NATS_KEY_FILE" "secret" . "key" "tls.key" "path" "nats/tls.key") -}}
{{- end -}}
{{- if $files -}}{{- toYaml $files -}}{{- end -}}
{{- end -}}

{{- define "tarsy.secretVariables" -}}
{{- range include "tarsy.files" . | fromYamlArray }}
{{- if .variable }}
- name: {{ .variable }}
  value: /var/run/secrets/tarsy/{{ .path }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "tarsy.secretVolume" -}}
{{- with include "tarsy.files" . | fromYamlArray }}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range . }}
      - secret:
          name: {{ .secret }}
          items:
            - key: {{ .key | quote }}
              path: {{ .path }}
      {{- end }}
{{- end }}
{{- end -}}
