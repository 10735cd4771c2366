{{/* The Service of a role, with an Ingress and an HTTPRoute if its values have them: (dict "root" $ "component" "web" "values" .Values.web) */}}
{{- define "tarsy.exposed" }}
{{- $name := include "tarsy.name" . }}
{{- $ingress := .values.ingress }}
{{- $route := .values.httpRoute }}
{{- $root := .root }}
{{- $labels := include "tarsy.labels" . }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- $labels | nindent 4 }}
  {{- with .values.service.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: ClusterIP
  selector: {{- include "tarsy.selectorLabels" . | nindent 4 }}
  ports:
    - {name: http, port: {{ .values.service.port | int }}, targetPort: http, appProtocol: http}
{{- if $ingress.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- $labels | nindent 4 }}
  {{- with $ingress.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with $ingress.className }}
  ingressClassName: {{ . }}
  {{- end }}
  {{- with $ingress.tlsSecretName }}
  tls:
    - {hosts: [{{ $ingress.host | quote }}], secretName: {{ . }}}
  {{- end }}
  rules:
    - host: {{ $ingress.host | quote }}
      http:
        paths:
          - path: /
            pathType: Prefix
            backend: {service: {name: {{ $name }}, port: {name: http}}}
{{- end }}
{{- if $route.enabled }}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- $labels | nindent 4 }}
  {{- with $route.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  parentRefs: {{- toYaml $route.parentRefs | nindent 4 }}
  hostnames: {{- toYaml $route.hostnames | nindent 4 }}
  rules:
    - matches: [{path: {type: PathPrefix, value: /}}]
      backendRefs: [{name: {{ $name }}, port: {{ .values.service.port | int }}}]
      {{- with $route.requestTimeout }}
      timeouts: {request: {{ . }}}
      {{- end }}
{{- end }}
{{- end }}
