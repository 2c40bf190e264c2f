package exposition_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// TestWriteText: who reads the page on the node gets what a scrape gets, also
// where a part of it cannot be gathered.
func TestWriteText(t *testing.T) {
	e := exposition.New(fixed(node(2, 0, 30)), ownRegistry(), exposition.Options{})
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var page bytes.Buffer
	if err := e.WriteText(&page); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.Body.String(), page.String()); diff != "" {
		t.Errorf("page (-scraped +written):\n%s", diff)
	}

	broken := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, errors.New("no such thing") })
	page.Reset()
	err := exposition.New(fixed(node(1, 0, 5)), broken, exposition.Options{}).WriteText(&page)
	if err == nil || !strings.Contains(err.Error(), "no such thing") || !strings.Contains(page.String(), "accel_source_up{") {
		t.Errorf("with half of it: %v\n%s", err, &page)
	}
}
