{{/* The beginning of all names. */}}
{{- define "dunlin.name" -}}
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
{{- end }}

{{/* Labels by which pods are selected. */}}
{{- define "dunlin.selector" -}}
app.kubernetes.io/name: dunlin
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "dunlin.labels" -}}
{{ include "dunlin.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "dunlin.image" -}}
{{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}
{{- end }}

{{/* The Secret with the password. */}}
{{- define "dunlin.secret" -}}
{{- if not (or .Values.auth.existingSecret .Values.auth.password) -}}
{{- fail "Say auth.password, or name a Secret with the password in auth.existingSecret." -}}
{{- end -}}
{{- default (printf "%s-auth" (include "dunlin.name" .)) .Values.auth.existingSecret -}}
{{- end }}

{{/* What each pod is, and may. */}}
{{- define "dunlin.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.scheduling.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.scheduling.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.scheduling.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Where pods of a component go: a dictionary of `root` and `component`. */}}
{{- define "dunlin.spread" -}}
{{- $labels := include "dunlin.selector" .root -}}
{{- $scheduling := .root.Values.scheduling -}}
{{- if ne $scheduling.antiAffinity "none" }}
affinity:
  podAntiAffinity:
    {{- if eq $scheduling.antiAffinity "hard" }}
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- $labels | nindent 12 }}
            app.kubernetes.io/component: {{ .component }}
    {{- else }}
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- $labels | nindent 14 }}
              app.kubernetes.io/component: {{ .component }}
    {{- end }}
{{- end }}
{{- with $scheduling.topologyKeys }}
topologySpreadConstraints:
  {{- range . }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- $labels | nindent 8 }}
        app.kubernetes.io/component: {{ $.component }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The rights of a container: none. */}}
{{- define "dunlin.rights" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* Each directive of `config` as an option. */}}
{{- define "dunlin.options" -}}
{{- range $name, $value := .Values.config }}
- --{{ $name }}
- {{ $value | toString | quote }}
{{- end }}
{{- end }}

{{/* Settings that are in files or in the environment. */}}
{{- define "dunlin.environment" -}}
- {name: DUNLIN_PASSWORD_FILE, value: /secrets/auth/password}
- {name: DUNLIN_MASTER_PASSWORD_FILE, value: /secrets/auth/password}
{{- if .Values.tls.enabled }}
- {name: DUNLIN_TLS_ENABLED, value: "yes"}
- {name: DUNLIN_HTTP_PORT, value: "0"}
- {name: DUNLIN_TLS_CERT_FILE, value: /secrets/tls/tls.crt}
- {name: DUNLIN_TLS_KEY_FILE, value: /secrets/tls/tls.key}
- {name: DUNLIN_TLS_CA_FILE, value: /secrets/tls/ca.crt}
- {name: DUNLIN_TLS_AUTH_CLIENTS, value: {{ .Values.tls.authClients | quote }}}
{{- end }}
{{- end }}

{{/* Where etcd is, and the name of the cluster there. */}}
{{- define "dunlin.clusterEnvironment" -}}
{{- $etcd := .Values.cluster.etcd -}}
{{- $secret := required "mode cluster takes a Secret with the addresses of etcd: cluster.etcd.secret" $etcd.secret -}}
- {name: DUNLIN_CLUSTER_NAME, value: {{ default (include "dunlin.name" .) .Values.cluster.name | quote }}}
- name: DUNLIN_CLUSTER_ETCD
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ $etcd.endpointsKey }}}}
- name: DUNLIN_CLUSTER_ETCD_USER
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ $etcd.userKey }}, optional: true}}
- name: DUNLIN_CLUSTER_ETCD_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ $etcd.passwordKey }}, optional: true}}
{{- if $etcd.tls.enabled }}
- {name: DUNLIN_CLUSTER_ETCD_CA_FILE, value: /secrets/etcd-tls/ca.crt}
{{- if $etcd.tls.clientCertificate }}
- {name: DUNLIN_CLUSTER_ETCD_CERT_FILE, value: /secrets/etcd-tls/tls.crt}
- {name: DUNLIN_CLUSTER_ETCD_KEY_FILE, value: /secrets/etcd-tls/tls.key}
{{- end }}
{{- end }}
{{- end }}

{{/* How many nodes a cluster has. */}}
{{- define "dunlin.nodes" -}}
{{- mul .Values.cluster.shards (add .Values.cluster.replicas 1) -}}
{{- end }}

{{/* The name of a pod, under which others reach it. */}}
{{- define "dunlin.podEnvironment" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: DOMAIN
  value: {{ include "dunlin.name" . }}-headless.$(POD_NAMESPACE).svc.{{ .Values.clusterDomain }}
{{- end }}

{{- define "dunlin.etcdMounts" -}}
{{- if and (eq .Values.mode "cluster") .Values.cluster.etcd.tls.enabled }}
- {name: etcd-tls, mountPath: /secrets/etcd-tls, readOnly: true}
{{- end }}
{{- end }}

{{- define "dunlin.etcdVolumes" -}}
{{- if and (eq .Values.mode "cluster") .Values.cluster.etcd.tls.enabled }}
- name: etcd-tls
  secret:
    secretName: {{ required "cluster.etcd.tls.enabled takes a Secret: cluster.etcd.tls.secret" .Values.cluster.etcd.tls.secret }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{- define "dunlin.secretMounts" -}}
- {name: auth, mountPath: /secrets/auth, readOnly: true}
{{- if .Values.tls.enabled }}
- {name: tls, mountPath: /secrets/tls, readOnly: true}
{{- end }}
{{- end }}

{{- define "dunlin.secretVolumes" -}}
- name: auth
  secret:
    secretName: {{ include "dunlin.secret" . }}
    defaultMode: 0440
    items:
      - {key: {{ .Values.auth.passwordKey }}, path: password}
{{- if .Values.tls.enabled }}
- name: tls
  secret:
    secretName: {{ required "tls.enabled takes a Secret: tls.secret" .Values.tls.secret }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{- define "dunlin.ports" -}}
- {name: resp, containerPort: 6379}
- {name: http, containerPort: 8379}
{{- end }}

{{/* What the kubelet asks. A client that shows no certificate may be refused: then the program of the
image asks, with the server's own. */}}
{{- define "dunlin.probe" -}}
{{- if and .root.Values.tls.enabled (eq .root.Values.tls.authClients "yes") }}
exec:
  command: {{ if .live }}[/usr/bin/dunlin, health, --live, -q]{{ else }}[/usr/bin/dunlin, health, -q]{{ end }}
{{- else }}
httpGet:
  path: {{ if .live }}/healthz{{ else }}/readyz{{ end }}
  port: http
  scheme: {{ if .root.Values.tls.enabled }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}
{{- end }}

{{- define "dunlin.probes" -}}
# The server listens a second after its start at the latest, also while it loads its data.
startupProbe:
  {{- include "dunlin.probe" (dict "root" . "live" true) | trim | nindent 2 }}
  periodSeconds: 1
  timeoutSeconds: 2
  failureThreshold: 60
livenessProbe:
  {{- include "dunlin.probe" (dict "root" . "live" true) | trim | nindent 2 }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  {{- include "dunlin.probe" (dict "root" . "live" false) | trim | nindent 2 }}
  periodSeconds: 1
  timeoutSeconds: 2
  failureThreshold: 2
{{- end }}
