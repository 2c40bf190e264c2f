package alertmanager_test

import (
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/rules/alertmanager"
)

// file is a configuration file with the section alertmanager.
type file struct {
	Alertmanager alertmanager.Settings `yaml:"alertmanager"`
}

func TestSettingsMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"endpoints: [{url: 'http://u:hunter2@h'}]":                                 "x:1: alertmanager.endpoints[0].url: found a user or a password",
		"endpoints: [{url: 'http://u:hun ter2@h'}]":                                "found an address of another form",
		"endpoints: [{url: 'http://h?token=hunter2'}]":                             "found an address of another form",
		"endpoints: [{url: 'http://h#hunter2'}]":                                   "found an address of another form",
		"endpoints: [{url: 'h:9093'}]":                                             "found an address of another form",
		"endpoints: [{url: 'http:///x'}]":                                          "found an address of another form",
		"endpoints: [{url: 'http://h/a%2fb'}]":                                     "found an address of another form",
		"endpoints: [{url: 'http://h/api/v2'}]":                                    "the path of the API",
		"endpoints: [{}]":                                                          "found an address of another form",
		"endpoints: [{url: 'http://h'}, {url: 'http://H/'}]":                       "alertmanager.endpoints[1].url: found the same address",
		"endpoints: [{url: 'http://h', http: {timeout: 1ms}}]":                     "100ms to 5m",
		"http: {credentials_file: a, basic_auth: {username: b, password_file: c}}": "alertmanager.http: found basic_auth and credentials_file",
		"http: {basic_auth: {username: b}}":                                        "only one of username and password_file",
		"http: {basic_auth: {username: b, password: hunter2}}":                     "accepted here: password_file, username",
		"http: {tls: {cert_file: a}}":                                              "only one of cert_file",
		"http: {tls: {ca_file: a, insecure_skip_verify: true}}":                    "found ca_file with insecure_skip_verify",
		"external_labels: {0a: b}":                                                 `the label "0a"`,
		"external_labels: {a: ''}":                                                 "a value of 0 bytes",
		"endpoints: [{url: 'http://" + strings.Repeat("h", 5000) + "'}]":           "found an address of another form",
	} {
		f := file{}
		err := strict.Decode("x", []byte("alertmanager: {"+text+"}"), &f)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}

// FuzzCheckURL: CheckURL refuses addresses that may contain a password. Its errors
// do not show the address.
func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"http://h", "https://u:p@h:1/x?y#z", "http://[::1%25lo]:9093/", "//h", "http://h/%40", "http://h:0", "http://h#", "http://h?"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		err := alertmanager.CheckURL(s)
		if err == nil && strings.ContainsAny(s, "@?# \n") {
			t.Errorf("%q is accepted", s)
		}
		const secret = "hunter2"
		if err := alertmanager.CheckURL(s + secret); err != nil && strings.Contains(err.Error(), secret) {
			t.Error(err)
		}
		if err != nil {
			return
		}
		if _, err := alertmanager.New(alertmanager.Options{Settings: settings(s)}); err != nil {
			t.Errorf("%q is accepted, but: %v", s, err)
		}
	})
}
