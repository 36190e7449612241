{{- define "catamaran.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "catamaran.selector" -}}
app.kubernetes.io/name: catamaran
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "catamaran.labels" -}}
{{ include "catamaran.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
