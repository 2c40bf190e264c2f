package counters

import (
	"errors"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmfield"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
)

// FuzzParse checks that any input is either accepted, with DCGM fields of a type
// that can be exported, or rejected with positions in the file.
func FuzzParse(f *testing.F) {
	f.Add([]byte("DCGM_FI_DEV_GPU_TEMP, gauge, \"a, b\"\r\n# c\nDCGM_FI_DRIVER_VERSION, label, d"))
	f.Add([]byte("\ufeffdcgm_gpu_temp,counter,\"\"\"\""))
	f.Add([]byte("DCGM_EXP_XID_ERRORS_COUNT,gauge,x\nDCGM_FI_DEV_FB_USED,summary,"))
	f.Add([]byte("x,y\n\"a\"b,c\n,,,\n\x00\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Unstated.Parse("f", data)
		if err != nil {
			var m strict.Mistakes
			if !errors.As(err, &m) || len(m) == 0 || c != nil {
				t.Fatalf("%v with %v", err, c)
			}
			lines := strings.Count(string(data), "\n") + 1
			for _, x := range m {
				if x.Line < 1 || x.Line > lines || x.Column < 1 || x.Text == "" {
					t.Fatalf("%+v in %d lines", x, lines)
				}
			}
			return
		}
		if len(c.Rows)+len(c.Skipped) == 0 {
			t.Fatal("nothing read, no mistake")
		}
		for _, r := range c.Rows {
			known, ok := dcgmfield.ByName(r.Name)
			if r.Derived == ok || known.ID != r.Field.ID && r.Name != utilRatio {
				t.Fatalf("%+v", r)
			}
			if r.Type == Counter && !r.Derived && r.Field.Kind != dcgmfield.Counter {
				t.Fatalf("%+v is served as a counter", r)
			}
			if r.Field.Kind == dcgmfield.Info && r.Type != Label || r.Field.Kind == dcgmfield.None {
				t.Fatalf("%+v is served as a number", r)
			}
		}
	})
}
