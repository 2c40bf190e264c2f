package main

import (
	"strings"
	"testing"
)

// TestStatusPage: the page shows the devices of a running exporter, and a
// flag turns it off.
func TestStatusPage(t *testing.T) {
	t.Parallel()
	n := start(t, "t4", nil)
	n.until(`^accel_device_up\{device="GPU-.*\} 1`)
	code, page := n.get("/")
	for _, want := range []string{"Tesla T4", "2 devices: "} {
		if code != 200 || !strings.Contains(page, want) {
			t.Errorf("%d: %q is not on the page", code, want)
		}
	}
	off := startExporter(t, "--no-web.status-page")
	if _, page := off.get("/"); !strings.Contains(page, "/debug/state") || strings.Contains(page, "status.js") {
		t.Errorf("turned off, / is %s", page)
	}
	if code, _ := off.get("/device?id=x"); code != 404 {
		t.Errorf("turned off, the page of a device has status %d", code)
	}
}
