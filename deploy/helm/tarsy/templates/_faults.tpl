{{/* Combinations of values that cannot work, as a YAML list of sentences. */}}

{{- define "tarsy.faults" -}}
{{- $faults := concat
  (include "tarsy.faultsOfConnections" . | fromYamlArray)
  (include "tarsy.faultsOfLlmService" . | fromYamlArray)
  (include "tarsy.faultsOfWeb" . | fromYamlArray)
  (include "tarsy.faultsOfScale" . | fromYamlArray)
  (include "tarsy.faultsOfDrain" . | fromYamlArray)
  (include "tarsy.faultsOfTracing" . | fromYamlArray)
  (include "tarsy.faultsOfPods" . | fromYamlArray)
  (include "tarsy.faultsOfReferences" . | fromYamlArray) -}}
{{- toYaml $faults -}}
{{- end -}}

{{- define "tarsy.faultsOfConnections" -}}
{{- $faults := list -}}
{{- $values := .Values -}}
{{- if not $values.image.repository -}}
{{- $faults = append $faults "image.repository is empty: set it to the image of tarsy in your registry" -}}
{{- end -}}
{{- if and $values.config $values.existingConfigMap.name -}}
{{- $faults = append $faults "config and existingConfigMap.name are both set: keep one of them" -}}
{{- end -}}
{{- if $values.trial.enabled -}}
{{- if or $values.nats.url $values.nats.urlSecret.name $values.nats.login.secret.name $values.database.url $values.database.urlSecret.name -}}
{{- $faults = append $faults "trial.enabled brings NATS and Postgres of its own: remove nats and database, or trial" -}}
{{- end -}}
{{- if not $values.trial.password -}}
{{- $faults = append $faults "trial.password is empty: choose the password of the database" -}}
{{- end -}}
{{- if eq $values.migrations.mode "hook" -}}
{{- $faults = append $faults "migrations.mode is hook, which runs before the servers of trial exist: set it to job or onStart" -}}
{{- end -}}
{{- else -}}
{{- if not (or $values.nats.url $values.nats.urlSecret.name) -}}
{{- $faults = append $faults "no NATS: set nats.url or nats.urlSecret.name" -}}
{{- end -}}
{{- if and $values.nats.url $values.nats.urlSecret.name -}}
{{- $faults = append $faults "nats.url and nats.urlSecret.name are both set: keep one of them" -}}
{{- end -}}
{{- if contains "@" $values.nats.url -}}
{{- $faults = append $faults "nats.url has a login, which every reader of the pod would see: put the address into a Secret, nats.urlSecret" -}}
{{- end -}}
{{- if not (or $values.database.url $values.database.urlSecret.name) -}}
{{- $faults = append $faults "no database: set database.urlSecret.name, or database.url for a first try" -}}
{{- end -}}
{{- if and $values.database.url $values.database.urlSecret.name -}}
{{- $faults = append $faults "database.url and database.urlSecret.name are both set: keep one of them" -}}
{{- end -}}
{{- end -}}
{{- $login := $values.nats.login -}}
{{- if and (ne $login.kind "none") (not $login.secret.name) -}}
{{- $faults = append $faults (printf "nats.login.kind is %s: set nats.login.secret.name" $login.kind) -}}
{{- end -}}
{{- if and (eq $login.kind "none") $login.secret.name -}}
{{- $faults = append $faults "nats.login.secret is set: say with nats.login.kind what it has" -}}
{{- end -}}
{{- if and $values.migrations.passwordSecret.name (not (has $values.migrations.mode (list "hook" "job"))) -}}
{{- $faults = append $faults (printf "migrations.passwordSecret is for a Job, and migrations.mode is %s" $values.migrations.mode) -}}
{{- end -}}
{{- if and $values.migrations.urlSecret.name (not (has $values.migrations.mode (list "hook" "job"))) -}}
{{- $faults = append $faults (printf "migrations.urlSecret is for a Job, and migrations.mode is %s" $values.migrations.mode) -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{- define "tarsy.faultsOfLlmService" -}}
{{- $faults := list -}}
{{- $llm := .Values.llmService -}}
{{- $receiver := .Values.receiver -}}
{{- if and $llm.token.secret.name $llm.token.value -}}
{{- $faults = append $faults "llmService.token.secret and llmService.token.value are both set: keep one of them" -}}
{{- end -}}
{{- if $llm.enabled -}}
{{- if $llm.address -}}
{{- $faults = append $faults "llmService.address is for a service outside this release: set llmService.enabled to false, or remove it" -}}
{{- end -}}
{{- $section := get .Values.config "llm_service" | default dict -}}
{{- $isGuarded := or $llm.token.secret.name $llm.token.value $llm.tls.clientCaSecret.name $section.token_file .Values.existingConfigMap.name -}}
{{- if not (or $isGuarded $llm.allowUnauthenticated) -}}
{{- $faults = append $faults "every pod could spend the keys of the LLM service: set llmService.token.secret.name, or llmService.tls with clientCaSecret, or llmService.allowUnauthenticated" -}}
{{- end -}}
{{- if and $llm.tls.clientCaSecret.name (not $llm.tls.secretName) -}}
{{- $faults = append $faults "llmService.tls.clientCaSecret needs llmService.tls.secretName: certificates are shown over TLS only" -}}
{{- end -}}
{{- if and $llm.tls.clientCaSecret.name (not $llm.tls.clientSecretName) -}}
{{- $faults = append $faults "llmService.tls.clientCaSecret asks workers for a certificate: set llmService.tls.clientSecretName" -}}
{{- end -}}
{{- if and $llm.tls.secretName $section.tls -}}
{{- $faults = append $faults "llmService.tls and config.llm_service.tls are both set: keep the first one" -}}
{{- end -}}
{{- else if not $llm.address -}}
{{- $faults = append $faults "llmService.enabled is false: set llmService.address to the service that workers ask" -}}
{{- end -}}
{{- $variables := list -}}
{{- range $llm.keys -}}
{{- if has .variable $variables -}}
{{- $faults = append $faults (printf "llmService.keys has %s twice" .variable) -}}
{{- end -}}
{{- $variables = append $variables .variable -}}
{{- end -}}
{{- if $receiver.enabled -}}
{{- if not (or $receiver.token.secret.name $receiver.token.value) -}}
{{- $faults = append $faults "every pod could post alerts: set receiver.token.secret.name" -}}
{{- end -}}
{{- if and $receiver.token.secret.name $receiver.token.value -}}
{{- $faults = append $faults "receiver.token.secret and receiver.token.value are both set: keep one of them" -}}
{{- end -}}
{{- $faults = concat $faults (include "tarsy.faultsOfExposure" (dict "key" "receiver" "values" $receiver) | fromYamlArray) -}}
{{- end -}}
{{- $slack := .Values.slackReceiver -}}
{{- if $slack.enabled -}}
{{- $receive := get .Values.config "receive" | default dict -}}
{{- if not (or .Values.existingConfigMap.name (get $receive "slack")) -}}
{{- $faults = append $faults "slackReceiver.enabled needs config.receive.slack: the app, the workspace and the file with the signing secret" -}}
{{- end -}}
{{- $faults = concat $faults (include "tarsy.faultsOfExposure" (dict "key" "slackReceiver" "values" $slack) | fromYamlArray) -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{/* What an Ingress or an HTTPRoute lacks: (dict "key" "web" "values" .Values.web) */}}
{{- define "tarsy.faultsOfExposure" -}}
{{- $faults := list -}}
{{- if and .values.ingress.enabled (not .values.ingress.host) -}}
{{- $faults = append $faults (printf "%s.ingress.enabled needs %s.ingress.host" .key .key) -}}
{{- end -}}
{{- if .values.httpRoute.enabled -}}
{{- if not .values.httpRoute.parentRefs -}}
{{- $faults = append $faults (printf "%s.httpRoute.enabled needs %s.httpRoute.parentRefs: the Gateway that takes its requests" .key .key) -}}
{{- end -}}
{{- if not .values.httpRoute.hostnames -}}
{{- $faults = append $faults (printf "%s.httpRoute.enabled needs %s.httpRoute.hostnames" .key .key) -}}
{{- end -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{- define "tarsy.faultsOfWeb" -}}
{{- $faults := list -}}
{{- $web := .Values.web -}}
{{- if $web.enabled -}}
{{- $section := get .Values.config "web" | default dict -}}
{{- $hasToken := or $web.token.secret.name $web.token.value -}}
{{- if not (or $hasToken $web.proxySecret.name) -}}
{{- $faults = append $faults "every pod could read all investigations: set web.token.secret.name, or web.proxySecret.name and config.web.auth: proxy" -}}
{{- end -}}
{{- if and $web.token.secret.name $web.token.value -}}
{{- $faults = append $faults "web.token.secret and web.token.value are both set: keep one of them" -}}
{{- end -}}
{{- if not .Values.existingConfigMap.name -}}
{{- if and $web.proxySecret.name (ne ($section.auth | default "") "proxy") -}}
{{- $faults = append $faults "web.proxySecret is for config.web.auth: proxy, which is not set" -}}
{{- end -}}
{{- $hosts := dict -}}
{{- if and $web.ingress.enabled $web.ingress.host -}}
{{- $_ := set $hosts $web.ingress.host "web.ingress.host" -}}
{{- end -}}
{{- range ternary $web.httpRoute.hostnames list $web.httpRoute.enabled -}}
{{- $_ := set $hosts . "web.httpRoute.hostnames" -}}
{{- end -}}
{{- range $key := list "ingress" "httpRoute" -}}
{{- if and (get (get $web $key) "enabled") (not $section.public_url) -}}
{{- $faults = append $faults (printf "web.%s.enabled needs config.web.public_url: requests that name another host are refused" $key) -}}
{{- end -}}
{{- end -}}
{{- range $host, $key := $hosts -}}
{{- if $section.public_url -}}
{{- $public := regexReplaceAll ":[0-9]+$" (get (urlParse $section.public_url) "host") "" -}}
{{- if not (has $host (append ($section.hosts | default list) $public)) -}}
{{- $faults = append $faults (printf "%s %s is neither the host of config.web.public_url, %s, nor in config.web.hosts: its requests are refused" $key $host $public) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $faults = concat $faults (include "tarsy.faultsOfExposure" (dict "key" "web" "values" $web) | fromYamlArray) -}}
{{- if eq ($web.service.port | int) (.Values.metrics.port | int) -}}
{{- $faults = append $faults (printf "web.service.port and metrics.port are both %d" (.Values.metrics.port | int)) -}}
{{- end -}}
{{- $needs := add ($web.preStopSeconds | int) 25 | int -}}
{{- if lt ($web.terminationGracePeriodSeconds | int) $needs -}}
{{- $faults = append $faults (printf "web.terminationGracePeriodSeconds %d is too short: preStopSeconds %d and 25 s for open requests need %d" ($web.terminationGracePeriodSeconds | int) ($web.preStopSeconds | int) $needs) -}}
{{- end -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{- define "tarsy.faultsOfScale" -}}
{{- $faults := list -}}
{{- $scaling := .Values.autoscaling -}}
{{- $workers := include "tarsy.maxWorkers" . | int -}}
{{- $minimum := include "tarsy.minWorkers" . | int -}}
{{- if ne $scaling.mode "none" -}}
{{- if gt $minimum $workers -}}
{{- $faults = append $faults (printf "autoscaling.minReplicas %d is more than autoscaling.maxReplicas %d" $minimum $workers) -}}
{{- end -}}
{{- end -}}
{{- if and (eq $scaling.mode "hpa") (lt $minimum 1) -}}
{{- $faults = append $faults "autoscaling.minReplicas is 0, and only keda can start the first worker: set it to 1 or more" -}}
{{- end -}}
{{- if and (eq $scaling.mode "keda") (eq .Values.nats.login.kind "creds") (eq $scaling.keda.account "$G") -}}
{{- $faults = append $faults "autoscaling.keda.account is $G, and nats.login.kind is creds, which log in to an account of an operator: set it to the public key (A…) of the account of the streams" -}}
{{- end -}}
{{- if and (eq $scaling.mode "keda") (not $scaling.keda.monitoringEndpoint) -}}
{{- $faults = append $faults "autoscaling.mode is keda: set autoscaling.keda.monitoringEndpoint to host:port of the monitoring of NATS" -}}
{{- end -}}
{{- range $key := list "llmService" "receiver" -}}
{{- $role := index $.Values $key -}}
{{- $own := $role.autoscaling -}}
{{- if $own.enabled -}}
{{- if not $role.enabled -}}
{{- $faults = append $faults (printf "%s.autoscaling.enabled needs %s.enabled: there is nothing to scale" $key $key) -}}
{{- end -}}
{{- if gt ($own.minReplicas | int) ($own.maxReplicas | int) -}}
{{- $faults = append $faults (printf "%s.autoscaling.minReplicas %d is more than %s.autoscaling.maxReplicas %d" $key ($own.minReplicas | int) $key ($own.maxReplicas | int)) -}}
{{- end -}}
{{- if and $own.metric.name (not $own.metric.target) -}}
{{- $faults = append $faults (printf "%s.autoscaling.metric.name needs %s.autoscaling.metric.target" $key $key) -}}
{{- end -}}
{{- $requests := $role.resources.requests | default dict -}}
{{- if and (not $own.metric.name) (not $requests.cpu) -}}
{{- $faults = append $faults (printf "%s.autoscaling compares the CPU with %s.resources.requests.cpu, which is not set" $key $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.migrations.mode "onStart") (gt $workers 3) -}}
{{- $faults = append $faults (printf "migrations.mode is onStart, for development, and up to %d workers may start: use hook or job" $workers) -}}
{{- end -}}
{{- $server := .Values.database.maxConnections | int -}}
{{- $pool := include "tarsy.setting" (dict "root" . "section" "database" "key" "pool_size" "default" 8) | int -}}
{{- /* One more connection renews leases; five are for the migration and commands; a rollout adds one worker. */}}
{{- $needed := add (mul (add $workers 1) (add $pool 1)) 5 -}}
{{- if and $server (gt $needed $server) -}}
{{- $faults = append $faults (printf "%d workers with %d connections each need %d, and database.maxConnections is %d: lower the number of workers or database.pool_size of tarsy.yaml" $workers (add $pool 1) $needed $server) -}}
{{- end -}}
{{- if and (eq $scaling.mode "keda") (gt ($scaling.keda.fallback.replicas | int) ($scaling.maxReplicas | int)) -}}
{{- $faults = append $faults (printf "autoscaling.keda.fallback.replicas %d is more than autoscaling.maxReplicas %d" ($scaling.keda.fallback.replicas | int) ($scaling.maxReplicas | int)) -}}
{{- end -}}
{{- if and .Values.metrics.podMonitor.enabled .Values.metrics.serviceMonitor.enabled -}}
{{- $faults = append $faults "metrics.podMonitor and metrics.serviceMonitor are both enabled: each series would be scraped twice" -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{- define "tarsy.faultsOfTracing" -}}
{{- $faults := list -}}
{{- $tracing := .Values.tracing -}}
{{- if and (not $tracing.endpoint) (or $tracing.headersSecret.name $tracing.caSecret.name $tracing.content) -}}
{{- $faults = append $faults "tracing is set without tracing.endpoint: name the collector, http://host:4317" -}}
{{- end -}}
{{- if and $tracing.caSecret.name (hasPrefix "http://" $tracing.endpoint) -}}
{{- $faults = append $faults "tracing.caSecret is for TLS: tracing.endpoint has to begin with https://" -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{- define "tarsy.faultsOfDrain" -}}
{{- $faults := list -}}
{{- /* The last spans are exported behind the drain. */}}
{{- $flush := ternary 2 0 (not (empty .Values.tracing.endpoint)) -}}
{{- $drain := include "tarsy.setting" (dict "root" . "section" "worker" "key" "drain_timeout" "default" "45s") -}}
{{- $seconds := include "tarsy.seconds" $drain | int -}}
{{- $grace := .Values.worker.terminationGracePeriodSeconds | int -}}
{{- if and (ge $seconds 0) (lt $grace (add $seconds 15 $flush | int)) -}}
{{- $faults = append $faults (printf "worker.terminationGracePeriodSeconds %d is too short: config.worker.drain_timeout %s and %d s for the last writes need %d" $grace $drain (add 15 $flush) (add $seconds 15 $flush)) -}}
{{- end -}}
{{- $llmDrain := include "tarsy.setting" (dict "root" . "section" "llm_service" "key" "drain_timeout" "default" "30s") -}}
{{- $llmSeconds := include "tarsy.seconds" $llmDrain | int -}}
{{- $llm := .Values.llmService -}}
{{- $needed := add $llmSeconds ($llm.preStopSeconds | int) 5 $flush | int -}}
{{- if and $llm.enabled (ge $llmSeconds 0) (lt ($llm.terminationGracePeriodSeconds | int) $needed) -}}
{{- $faults = append $faults (printf "llmService.terminationGracePeriodSeconds %d is too short: preStopSeconds %d, config.llm_service.drain_timeout %s and %d s need %d" ($llm.terminationGracePeriodSeconds | int) ($llm.preStopSeconds | int) $llmDrain (add 5 $flush) $needed) -}}
{{- end -}}
{{- range $key := list "receiver" "slackReceiver" -}}
{{- $receiver := index $.Values $key -}}
{{- $receiverNeeds := add ($receiver.preStopSeconds | int) 20 $flush | int -}}
{{- if and $receiver.enabled (lt ($receiver.terminationGracePeriodSeconds | int) $receiverNeeds) -}}
{{- $faults = append $faults (printf "%s.terminationGracePeriodSeconds %d is too short: preStopSeconds %d and %d s for open requests need %d" $key ($receiver.terminationGracePeriodSeconds | int) ($receiver.preStopSeconds | int) (add 20 $flush) $receiverNeeds) -}}
{{- end -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{- define "tarsy.faultsOfPods" -}}
{{- $faults := list -}}
{{- $account := .Values.worker.serviceAccount -}}
{{- if and $account.clusterRoles (not $account.automountToken) -}}
{{- $faults = append $faults "worker.serviceAccount.clusterRoles need worker.serviceAccount.automountToken: without its token no container can use the account" -}}
{{- end -}}
{{- if and $account.clusterRoles (not $account.create) -}}
{{- $faults = append $faults "worker.serviceAccount.clusterRoles would be given to an account of others: set worker.serviceAccount.create" -}}
{{- end -}}
{{- $policy := .Values.networkPolicy -}}
{{- if and $policy.enabled $account.automountToken (not $policy.apiServer.cidrs) (not $policy.workerEgress) -}}
{{- $faults = append $faults "worker.serviceAccount.automountToken is for tools that read this cluster, and networkPolicy lets the pod reach no API server: set networkPolicy.apiServer.cidrs" -}}
{{- end -}}
{{- $ports := list (.Values.metrics.port | int) -}}
{{- $names := list "worker" "migrate" -}}
{{- range .Values.worker.sidecars -}}
{{- if has (.port | int) $ports -}}
{{- $faults = append $faults (printf "worker.sidecars %s has the port %d, which another container of the pod has" .name (.port | int)) -}}
{{- end -}}
{{- if has .name $names -}}
{{- $faults = append $faults (printf "worker.sidecars has the name %s, which another container of the pod has" .name) -}}
{{- end -}}
{{- $ports = append $ports (.port | int) -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- if and .Values.llmService.enabled (eq (.Values.llmService.service.port | int) (.Values.metrics.port | int)) -}}
{{- $faults = append $faults (printf "llmService.service.port and metrics.port are both %d" (.Values.metrics.port | int)) -}}
{{- end -}}
{{- range $key := list "receiver" "slackReceiver" -}}
{{- $receiver := index $.Values $key -}}
{{- if and $receiver.enabled (eq ($receiver.service.port | int) ($.Values.metrics.port | int)) -}}
{{- $faults = append $faults (printf "%s.service.port and metrics.port are both %d" $key ($.Values.metrics.port | int)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}
