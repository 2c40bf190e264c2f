package traceapp_test

import _ "go.opentelemetry.io/proto/otlp/trace/v1"
