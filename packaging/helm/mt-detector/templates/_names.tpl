{{- define "mt-detector.labels" -}}
app.kubernetes.io/name: mt-detector
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
