"""Reads export requests, one a line of standard input, as the published messages of OpenTelemetry, and prints the
spans: one JSON object a line. Fails if a request has a member that its message does not know."""

import base64
import json
import os
import sys

sys.path.insert(0, os.path.expanduser("~/.cache/catamaran/python"))
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.trace.v1 import trace_pb2


def in_base64(value):
    """OTLP writes ids as hexadecimal digits (section "JSON Protobuf Encoding"), protobuf's JSON bytes as base64."""
    if isinstance(value, list):
        return [in_base64(item) for item in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {
        key: base64.b64encode(bytes.fromhex(item)).decode() if key in ids else in_base64(item)
        for key, item in value.items()
    }


for line in sys.stdin:
    request = trace_service_pb2.ExportTraceServiceRequest()
    json_format.ParseDict(in_base64(json.loads(line)), request)
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                attributes = {it.key: it.value for it in span.attributes}
                assert len(span.trace_id) == 16 and len(span.span_id) == 8, span
                assert len(span.parent_span_id) in (0, 8), span
                assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano, span
                assert all(it.WhichOneof("value") for it in attributes.values()), span
                print(json.dumps({
                    "service": resource.resource.attributes[0].value.string_value,
                    "scope": scope.scope.name,
                    "trace": span.trace_id.hex(),
                    "span": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": trace_pb2.Span.SpanKind.Name(span.kind),
                    "error": span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
                    "status": attributes["http.response.status_code"].int_value,
                    "method": attributes["http.request.method"].string_value,
                }))
