{{/* Values that name other values which are not there, as a YAML list of sentences. Only `config` can be read: a ConfigMap
     that exists already is checked by tarsy itself. */}}

{{- define "tarsy.faultsOfReferences" -}}
{{- $root := . -}}
{{- $config := .Values.config | default dict -}}
{{- $faults := list -}}
{{- if $config -}}
{{- $providers := $config.llm_providers | default (dict "scripted" dict) -}}
{{- $agents := $config.agents | default (dict "sre" dict) -}}
{{- $chains := $config.agent_chains | default (dict "default" dict) -}}
{{- $names := dict "providers" (keys $providers | sortAlpha) "servers" (keys ($config.mcp_servers | default dict) | sortAlpha) "agents" (keys $agents | sortAlpha) "chains" (keys $chains | sortAlpha) -}}
{{- $faults = concat
  (include "tarsy.faultsOfProviders" . | fromYamlArray)
  (include "tarsy.faultsOfServers" . | fromYamlArray)
  (include "tarsy.faultsOfRoutes" (dict "root" . "names" $names) | fromYamlArray)
  (include "tarsy.faultsOfLayer" (dict "path" "config.defaults" "layer" ($config.defaults | default dict) "names" $names) | fromYamlArray)
  (include "tarsy.faultsOfSynthesis" (dict "path" "config.defaults.synthesis" "layer" (($config.defaults | default dict).synthesis | default dict) "names" $names) | fromYamlArray) -}}
{{- with ($config.defaults | default dict).chain -}}
{{- $faults = concat $faults (include "tarsy.absent" (dict "path" "config.defaults.chain" "name" . "known" $names.chains "section" "agent_chains") | fromYamlArray) -}}
{{- end -}}
{{- range $name, $agent := $agents -}}
{{- $faults = concat $faults (include "tarsy.faultsOfLayer" (dict "path" (printf "config.agents.%s" $name) "layer" ($agent | default dict) "names" $names) | fromYamlArray) -}}
{{- end -}}
{{- range $name, $chain := $chains -}}
{{- $path := printf "config.agent_chains.%s" $name -}}
{{- $chain = $chain | default dict -}}
{{- $faults = concat $faults (include "tarsy.faultsOfLayer" (dict "path" $path "layer" $chain "names" $names) | fromYamlArray) -}}
{{- $faults = concat $faults (include "tarsy.faultsOfSynthesis" (dict "path" (printf "%s.synthesis" $path) "layer" ($chain.synthesis | default dict) "names" $names) | fromYamlArray) -}}
{{- range $number, $stage := $chain.stages | default list -}}
{{- $path := printf "%s.stages[%d]" $path $number -}}
{{- $faults = concat $faults (include "tarsy.faultsOfLayer" (dict "path" $path "layer" $stage "names" $names) | fromYamlArray) -}}
{{- $faults = concat $faults (include "tarsy.faultsOfSynthesis" (dict "path" (printf "%s.synthesis" $path) "layer" ($stage.synthesis | default dict) "names" $names) | fromYamlArray) -}}
{{- range $number, $agent := $stage.agents | default list -}}
{{- $path := printf "%s.agents[%d]" $path $number -}}
{{- $faults = concat $faults (include "tarsy.faultsOfLayer" (dict "path" $path "layer" $agent "names" $names) | fromYamlArray) -}}
{{- with $agent.name -}}
{{- $faults = concat $faults (include "tarsy.absent" (dict "path" (printf "%s.name" $path) "name" . "known" $names.agents "section" "agents") | fromYamlArray) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{/* A name that a section does not define. */}}
{{- define "tarsy.absent" -}}
{{- $faults := list -}}
{{- if not (has (.name | toString) .known) -}}
{{- $faults = append $faults (printf "%s is %q, which config.%s does not define: it has %s" .path (.name | toString) .section (join ", " .known | default "nothing")) -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{/* The names in a layer of settings: of the defaults, an agent, a chain, a stage, or an agent of a stage. */}}
{{- define "tarsy.faultsOfLayer" -}}
{{- $layer := .layer -}}
{{- $faults := list -}}
{{- $path := .path -}}
{{- $names := .names -}}
{{- range $key := list "llm_provider" "summarize_with" -}}
{{- with get $layer $key -}}
{{- $faults = concat $faults (include "tarsy.absent" (dict "path" (printf "%s.%s" $path $key) "name" . "known" $names.providers "section" "llm_providers") | fromYamlArray) -}}
{{- end -}}
{{- end -}}
{{- range $layer.fallback_providers | default list -}}
{{- $faults = concat $faults (include "tarsy.absent" (dict "path" (printf "%s.fallback_providers" $path) "name" . "known" $names.providers "section" "llm_providers") | fromYamlArray) -}}
{{- end -}}
{{- range $layer.mcp_servers | default list -}}
{{- $faults = concat $faults (include "tarsy.absent" (dict "path" (printf "%s.mcp_servers" $path) "name" . "known" $names.servers "section" "mcp_servers") | fromYamlArray) -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{- define "tarsy.faultsOfSynthesis" -}}
{{- $faults := list -}}
{{- with .layer.agent -}}
{{- $faults = concat $faults (include "tarsy.absent" (dict "path" (printf "%s.agent" $.path) "name" . "known" $.names.agents "section" "agents") | fromYamlArray) -}}
{{- end -}}
{{- with .layer.llm_provider -}}
{{- $faults = concat $faults (include "tarsy.absent" (dict "path" (printf "%s.llm_provider" $.path) "name" . "known" $.names.providers "section" "llm_providers") | fromYamlArray) -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{- define "tarsy.faultsOfProviders" -}}
{{- $faults := list -}}
{{- $variables := list -}}
{{- range .Values.llmService.keys -}}
{{- $variables = append $variables .variable -}}
{{- end -}}
{{- range .Values.llmService.extraEnv -}}
{{- $variables = append $variables .name -}}
{{- end -}}
{{- range $name, $provider := .Values.config.llm_providers | default dict -}}
{{- $path := printf "config.llm_providers.%s" $name -}}
{{- $provider = $provider | default dict -}}
{{- if and $provider.api_key_env $.Values.llmService.enabled (not (has ($provider.api_key_env | toString) $variables)) -}}
{{- $faults = append $faults (printf "%s.api_key_env is %q, which llmService.keys does not have: the service would have no key" $path ($provider.api_key_env | toString)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{- define "tarsy.faultsOfServers" -}}
{{- $faults := list -}}
{{- $ports := list -}}
{{- range .Values.worker.sidecars -}}
{{- $ports = append $ports (.port | int) -}}
{{- end -}}
{{- $variables := list -}}
{{- range .Values.worker.extraEnv -}}
{{- $variables = append $variables .name -}}
{{- end -}}
{{- range $name, $server := .Values.config.mcp_servers | default dict -}}
{{- $path := printf "config.mcp_servers.%s" $name -}}
{{- $server = $server | default dict -}}
{{- if and $server.command (not $.Values.worker.image.repository) -}}
{{- $faults = append $faults (printf "%s.command is a program, and the image of tarsy has none: set worker.image to an image that has it, or run it in worker.sidecars with a url" $path) -}}
{{- end -}}
{{- $own := regexFind "^https?://(localhost|127\\.[0-9.]+|\\[::1\\])(:[0-9]+)?" ($server.url | default "" | toString) -}}
{{- if $own -}}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+$" $own) | default (ternary "443" "80" (hasPrefix "https:" $own)) | int -}}
{{- if not (has $port $ports) -}}
{{- $faults = append $faults (printf "%s.url leads to the port %d of the worker's own pod, which no container of worker.sidecars has" $path $port) -}}
{{- end -}}
{{- end -}}
{{- if and $server.token_env (not (has ($server.token_env | toString) $variables)) -}}
{{- $faults = append $faults (printf "%s.token_env is %q, which worker.extraEnv does not have" $path ($server.token_env | toString)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{/* The files of routes below the folder of notifications.secrets, and the chains that a route lists. */}}
{{- define "tarsy.faultsOfRoutes" -}}
{{- $faults := list -}}
{{- $values := .root.Values -}}
{{- $names := .names -}}
{{- $files := list -}}
{{- range $values.notifications.secrets -}}
{{- $files = append $files .file -}}
{{- end -}}
{{- range $name, $route := $values.config.notifications | default dict -}}
{{- $path := printf "config.notifications.%s" $name -}}
{{- $folder := "/var/run/secrets/tarsy/notifications/" -}}
{{- $smtp := ($route | default dict).smtp | default dict -}}
{{- range $key := list "url_file" "token_file" "secret_file" "smtp.password_file" "smtp.ca_file" -}}
{{- $of := ternary $smtp ($route | default dict) (hasPrefix "smtp." $key) -}}
{{- $file := get $of (trimPrefix "smtp." $key) | default "" | toString -}}
{{- if and (hasPrefix $folder $file) (not (has (trimPrefix $folder $file) $files)) -}}
{{- $faults = append $faults (printf "%s.%s is %q, which notifications.secrets does not have" $path $key $file) -}}
{{- end -}}
{{- end -}}
{{- range ($route | default dict).chains | default list -}}
{{- $faults = concat $faults (include "tarsy.absent" (dict "path" (printf "%s.chains" $path) "name" . "known" $names.chains "section" "agent_chains") | fromYamlArray) -}}
{{- end -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}
