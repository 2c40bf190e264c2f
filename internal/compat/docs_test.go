package compat

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmfield"
	"github.com/accel-exporter/accel-exporter/internal/compat/counters"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

const migration = "../../docs/migrating-from-dcgm-exporter.md"

// TestGoldenMigrationPage compares the tables of the migration page with the
// mappings.
func TestGoldenMigrationPage(t *testing.T) {
	data, err := os.ReadFile(migration)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for name, table := range map[string]string{"releases": releaseTable(), "fields": fieldTable(), "labels of fields": factTable()} {
		section := regexp.MustCompile(`(?s)(<!-- ` + name + ` -->\n).*?(<!-- end of ` + name + ` -->)`)
		if !section.MatchString(page) {
			t.Fatalf("the page has no section %q", name)
		}
		page = section.ReplaceAllStringFunc(page, func(old string) string {
			m := section.FindStringSubmatch(old)
			return m[1] + table + m[2]
		})
	}
	golden.Compare(t, migration, page)
}

// releaseTable returns a table with the default fields of both releases.
func releaseTable() string {
	old, now := Default(counters.Release48).Rows, Default(counters.Release49).Rows
	var b strings.Builder
	b.WriteString("| 4.8 | 4.9 |\n|---|---|\n")
	for i, r := range now {
		switch {
		case i >= len(old):
			fmt.Fprintf(&b, "| – | `%s` |\n", r.Name)
		case r.Name == old[i].Name:
			fmt.Fprintf(&b, "| `%s` | the same |\n", r.Name)
		default:
			fmt.Fprintf(&b, "| %s | %s |\n", withUnit(old[i], r), withUnit(r, old[i]))
		}
	}
	return b.String()
}

// withUnit returns the name of a row, with the unit where it differs from the other
// release's.
func withUnit(r, other counters.Row) string {
	if r.Field.Unit == other.Field.Unit {
		return "`" + r.Name + "`"
	}
	return "`" + r.Name + "`, " + unitText(r.Field.Unit)
}

// linkNumber matches the names of fields that describe one numbered link.
var linkNumber = regexp.MustCompile(`_ERROR_L\d+_TOTAL$`)

// fieldTable returns a table with a row for each field that has a mapping.
func fieldTable() string {
	byDefault := map[uint16]bool{}
	for _, r := range slices.Concat(Default(counters.Release48).Rows, Default(counters.Release49).Rows) {
		byDefault[r.Field.ID] = true
	}
	var b strings.Builder
	b.WriteString("| DCGM field | unit | equivalent |\n|---|---|---|\n")
	for _, f := range dcgmfield.All() {
		m := mappings()[f.ID]
		if m == nil || linkNumber.MatchString(f.Name) && !strings.Contains(f.Name, "_L0_") {
			continue
		}
		name := "`" + commonName(f) + "`"
		if f.Name != commonName(f) && !linkNumber.MatchString(f.Name) {
			name += ", `" + f.Name + "`"
		}
		if byDefault[f.ID] {
			name = "**" + name + "**"
		}
		if linkNumber.MatchString(f.Name) {
			name += " to `L17`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, unitText(f.Unit), strings.Join(queries(m), "; else "))
	}
	return b.String()
}

func queries(m *mapping) []string {
	var out []string
	for _, s := range m.sources {
		q := s.query
		if m.label != "" {
			q = s.terms[0].selector()
		}
		if !strings.Contains(q, "`") { // a query with text around it has its own backquotes
			q = "`" + q + "`"
		}
		out = append(out, q)
	}
	return out
}

// factTable returns a table with a row for each field that can become a label.
func factTable() string {
	var rows []string
	for id, f := range facts() {
		field, _ := dcgmfield.ByID(id)
		selector := (&term{metric: f.metric, labels: f.only}).selector()
		rows = append(rows, fmt.Sprintf("| `%s` | label `%s` of `%s` |\n", commonName(field), f.label, selector))
	}
	slices.Sort(rows)
	return "| DCGM field | equivalent |\n|---|---|\n" + strings.Join(rows, "")
}

// commonName returns the most common name of a field: the one before DCGM 4.6.
func commonName(f dcgmfield.Field) string {
	for _, n := range f.Former {
		if strings.HasPrefix(n, "DCGM_FI_") {
			return n
		}
	}
	return f.Name
}

func unitText(unit string) string {
	if unit == "" {
		return "–"
	}
	return strings.ReplaceAll(unit, "_", " ")
}

// TestMappingsFit checks that DCGM counters map to counters and gauges to
// gauges, so that queries with rate() stay correct.
func TestMappingsFit(t *testing.T) {
	for _, m := range mappings() {
		for _, s := range m.sources {
			for _, term := range s.terms {
				counter := term.metric.Kind.Type() == "counter"
				if f := m.field; counter != (f.Kind == dcgmfield.Counter) && !strings.Contains(f.Name, "XID") {
					t.Errorf("%s is a %s and made of %s, a %s", f.Name, f.Kind, term.metric.Name, term.metric.Kind.Type())
				}
				for i := 0; i < len(term.labels); i += 2 {
					if !slices.Contains(term.metric.Labels, term.labels[i]) {
						t.Errorf("%s: %s has no label %s", m.field.Name, term.metric.Name, term.labels[i])
					}
				}
			}
		}
	}
}
