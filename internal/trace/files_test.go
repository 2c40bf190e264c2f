package trace

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEndpoint(t *testing.T) {
	for in, want := range map[string]Endpoint{
		"http://collector":            {Host: "collector:4318", Path: "/v1/traces"},
		"http://collector:80/":        {Host: "collector:80", Path: "/v1/traces"},
		"https://o.example/otlp/v1/x": {TLS: true, Host: "o.example:4318", Path: "/otlp/v1/x"},
		"grpc://[::1]":                {GRPC: true, Host: "[::1]:4317"},
		"grpcs://o.example:443":       {GRPC: true, TLS: true, Host: "o.example:443"},
	} {
		if got, err := ParseEndpoint(in); err != nil || got != want {
			t.Errorf("%s: %+v %v", in, got, err)
		}
	}
	for in, want := range map[string]string{
		"collector:4318": "accepted is http://", "ftp://h": `"ftp"`, "": "accepted is", "grpc://h/x": "gRPC has none",
		"http://user:hunter2@h": "password", "http://h?x=1": "query", "http://": "host", "http://h:port": "accepted is",
	} {
		_, err := ParseEndpoint(in)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestHeaders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "headers.yml")
	for text, want := range map[string]string{
		"Authorization: Bearer hunter2\nX-Tenant: \"5\"\n": "",
		"":                                       "",
		"Authorization: {a: hunter2}":            "headers.yml:1: is no header",
		"Bearer hunter2":                         "headers.yml:1: is no header",
		"x: 1\ny: *hunter2":                      "is no header",
		"content-type: hunter2":                  "set by the protocol",
		"grpc-timeout: hunter2":                  "set by the protocol",
		"a b: hunter2":                           "accepted are letters",
		"x: \"hunter2\\n\"":                      "accepted is one line",
		"x-bin: hunter2":                         "do not end in -bin",
		"X: hunter2\nx: hunter2":                 "twice",
		"x: hunter2" + strings.Repeat("2", 9000): "8192",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadHeaders(file)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%.40q: %v", text, err)
		case strings.HasPrefix(text, "Auth") && err == nil && !maps.Equal(got, map[string]string{"authorization": "Bearer hunter2", "x-tenant": "5"}):
			t.Errorf("%v", got)
		}
	}
	if _, err := ReadHeaders(file + ".none"); err == nil {
		t.Error("no error for a missing file")
	}
	if _, err := ReadCAs(file); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("%v", err)
	}
}
