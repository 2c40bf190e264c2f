package dcgm

import (
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]string{
		"localhost:5555":               "tcp://localhost:5555",
		"localhost":                    "tcp://localhost:5555",
		"tcp://10.0.0.1:6000":          "tcp://10.0.0.1:6000",
		"TCP://[::1]:5555":             "tcp://[::1]:5555",
		"unix:///run/nv-hostengine":    "unix:///run/nv-hostengine",
		"/run/nvidia/nv-hostengine":    "unix:///run/nvidia/nv-hostengine",
		"":                             "port",
		"localhost:0":                  "port is not 1 to 65535",
		"localhost:70000":              "port is not 1 to 65535",
		"unix://run/x":                 "not the absolute path of a socket",
		"unix:///run/../x":             "not the absolute path of a socket",
		"/":                            "not the absolute path of a socket",
		"vsock://2:5555":               "unknown scheme",
		"http://localhost:5555":        "unknown scheme",
		"local host:1":                 "blanks",
		"a:b:c":                        "no host and port",
		"user@host:5555":               "no host and port",
		"/" + strings.Repeat("x", 107): "not the absolute path of a socket",
		strings.Repeat("x", 301):       "too long",
	} {
		a, err := ParseAddress(text)
		if err == nil {
			if a.String() != want {
				t.Errorf("%q is %s, want %s", text, a, want)
			}
			if again, err := ParseAddress(a.String()); err != nil || again != a {
				t.Errorf("%q: %s is read as %s, %v", text, a, again, err)
			}
			continue
		}
		if text != "" && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), addressForms)) {
			t.Errorf("%q: %v, want %s and what is accepted", text, err, want)
		}
	}
	if _, err := ParseAddress(""); err == nil {
		t.Error("an empty address is accepted")
	}
}
