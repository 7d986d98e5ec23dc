{{/* The name of everything, which is the release's. */}}
{{- define "gateway.name" -}}
{{- .Release.Name | trunc 49 | trimSuffix "-" -}}
{{- end -}}

{{/* The labels by which Services find the pods. */}}
{{- define "gateway.selector" -}}
app.kubernetes.io/name: fcm-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gateway.labels" -}}
{{ include "gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* The jobs on the store: not the gateway's name, or its Services would send requests to them. */}}
{{- define "store.selector" -}}
app.kubernetes.io/name: fcm-gateway-store
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gateway.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* The parts of every pod. */}}
{{- define "pod.common" -}}
automountServiceAccountToken: false
# The variables that Kubernetes makes of Services could begin with GATEWAY_, and unknown ones of those are refused.
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  # Makes the volume and the secrets readable for the gateway.
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "container.common" -}}
# An image that was imported from files has no entry point.
command: [/usr/bin/fcm-gateway]
image: {{ include "gateway.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/* The pods of the gateway, one or several. */}}
{{- define "gateway.pod" -}}
metadata:
  labels: {{ include "gateway.selector" . | nindent 4 }}
  annotations:
    # A pod reads its configuration when it starts.
    checksum/configuration: {{ .Values.configuration | toYaml | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  {{- include "pod.common" . | nindent 2 }}
  serviceAccountName: {{ include "gateway.name" . }}
  # More than http.drainGraceMs + http.shutdownTimeoutMs + 15 s.
  terminationGracePeriodSeconds: 50
  {{- if .Values.replicated }}
  # Replicas are spread over nodes and zones, as far as there are any. Those of one version are counted, or a rollout would
  # leave the new ones together.
  topologySpreadConstraints:
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{ include "gateway.selector" $ | nindent 10 }}
      matchLabelKeys: [controller-revision-hash]
    {{- end }}
  {{- end }}
  containers:
    - name: gateway
      {{- include "container.common" . | nindent 6 }}
      args: [serve, --config, /etc/fcm-gateway/gateway.yaml]
      env:
        - name: GATEWAY_MASTER_KEY_FILE
          value: /run/secrets/fcm-gateway/master.key
        {{- if .Values.adminToken }}
        - name: GATEWAY_ADMIN_TOKEN_FILE
          value: /run/secrets/fcm-gateway/admin.token
        {{- end }}
        {{- if .Values.replicated }}
        - name: GATEWAY_STORE_URL
          valueFrom:
            secretKeyRef: {name: {{ .Values.secrets.store }}, key: url}
        - name: GATEWAY_STORE_PASSWORD_FILE
          value: /run/secrets/fcm-gateway-store/password
        - name: GATEWAY_LIMITS_REDIS_URL
          valueFrom:
            secretKeyRef: {name: {{ .Values.secrets.limits }}, key: url}
        - name: GATEWAY_LIMITS_REDIS_PASSWORD_FILE
          value: /run/secrets/fcm-gateway-limits/password
        {{- end }}
        {{- with .Values.extraEnv }}{{ toYaml . | nindent 8 }}{{ end }}
      ports:
        - name: http
          containerPort: 8080
        - name: admin
          containerPort: 8081
      # One gateway brings an older store up to date before it listens, for which it has half an hour. Replicas find the
      # schema there.
      startupProbe:
        httpGet: {path: /readyz, port: admin, scheme: {{ .Values.adminScheme }}}
        periodSeconds: 1
        failureThreshold: {{ ternary 90 1800 .Values.replicated }}
      readinessProbe:
        httpGet: {path: /readyz, port: admin, scheme: {{ .Values.adminScheme }}}
        periodSeconds: 5
        timeoutSeconds: 2
        failureThreshold: 2
      # Restarts a process that hangs. It does not ask for FCM, whose failure a new pod would not end.
      livenessProbe:
        httpGet: {path: /livez, port: admin, scheme: {{ .Values.adminScheme }}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      resources: {{ toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - name: data
          mountPath: /var/lib/fcm-gateway
        - name: configuration
          mountPath: /etc/fcm-gateway
          readOnly: true
        - name: secrets
          mountPath: /run/secrets/fcm-gateway
          readOnly: true
        {{- if .Values.replicated }}
        - name: store
          mountPath: /run/secrets/fcm-gateway-store
          readOnly: true
        - name: limits
          mountPath: /run/secrets/fcm-gateway-limits
          readOnly: true
        {{- end }}
        {{- with .Values.extraVolumeMounts }}{{ toYaml . | nindent 8 }}{{ end }}
  volumes:
    {{- if not .Values.replicated }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ include "gateway.name" . }}
    {{- end }}
    - name: configuration
      configMap:
        name: {{ include "gateway.name" . }}
    - name: secrets
      secret:
        secretName: {{ .Values.secrets.gateway }}
        defaultMode: 0440
        items:
          - {key: master.key, path: master.key}
          {{- if .Values.adminToken }}
          - {key: admin.token, path: admin.token}
          {{- end }}
    {{- if .Values.replicated }}
    - name: store
      secret:
        secretName: {{ .Values.secrets.store }}
        defaultMode: 0440
        items:
          - {key: password, path: password}
          - {key: ca.crt, path: ca.crt}
    - name: limits
      secret:
        secretName: {{ .Values.secrets.limits }}
        defaultMode: 0440
        items:
          - {key: password, path: password}
    {{- end }}
    {{- with .Values.extraVolumes }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end -}}

{{/* The volume of the store, or of a replica's spool: of one pod at a time. */}}
{{- define "gateway.claim" -}}
accessModes: [ReadWriteOncePod]
{{- with .Values.storage.storageClassName }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ .Values.storage.size | default (ternary "1Gi" "20Gi" .Values.replicated) }}
{{- end -}}

{{/* The egress rule for names. A cache on each node has an address of its own, which belongs into extraEgress. */}}
{{- define "egress.names" -}}
- to:
    - namespaceSelector:
        matchLabels:
          kubernetes.io/metadata.name: kube-system
      podSelector:
        matchLabels:
          k8s-app: kube-dns
  ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
{{- end -}}

{{/* A job that works on the store as the owner of its tables, whose rights no gateway has. */}}
{{- define "store.job" -}}
backoffLimit: 0
ttlSecondsAfterFinished: 86400
template:
  metadata:
    labels: {{ include "store.selector" .root | nindent 6 }}
  spec:
    {{- include "pod.common" .root | nindent 4 }}
    restartPolicy: Never
    containers:
      - name: store
        {{- include "container.common" .root | nindent 8 }}
        args: {{ toYaml .args | nindent 10 }}
        env:
          {{- if .copies }}
          - name: GATEWAY_MASTER_KEY_FILE
            value: /run/secrets/fcm-gateway/master.key
          {{- end }}
          - name: GATEWAY_STORE_URL
            valueFrom:
              secretKeyRef: {name: {{ .root.Values.secrets.storeOwner }}, key: url}
          - name: GATEWAY_STORE_PASSWORD_FILE
            value: /run/secrets/fcm-gateway-store-owner/password
        resources:
          requests:
            cpu: 500m
            memory: 128Mi
          limits:
            memory: 1Gi
        volumeMounts:
          - name: owner
            mountPath: /run/secrets/fcm-gateway-store-owner
            readOnly: true
          {{- if .copies }}
          - name: data
            mountPath: /var/lib/fcm-gateway
          - name: secrets
            mountPath: /run/secrets/fcm-gateway
            readOnly: true
          {{- end }}
    volumes:
      - name: owner
        secret:
          secretName: {{ .root.Values.secrets.storeOwner }}
          defaultMode: 0440
          items:
            - {key: password, path: password}
            - {key: ca.crt, path: ca.crt}
      {{- if .copies }}
      # SQLite makes files beside its own, to read as well.
      - name: data
        persistentVolumeClaim:
          claimName: {{ include "gateway.name" .root }}
      - name: secrets
        secret:
          secretName: {{ .root.Values.secrets.gateway }}
          defaultMode: 0440
          items:
            - {key: master.key, path: master.key}
      {{- end }}
{{- end -}}
