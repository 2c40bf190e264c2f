package ruleapp

import (
	"encoding/json"
	"fmt"
	"io"

	rules "github.com/accel-exporter/accel-exporter/rules/engine"
)

// maxReport bounds the report that is read, in bytes.
const maxReport = 64 << 20

// printReport writes a report of /debug/rules for a person.
func printReport(in io.Reader, out io.Writer) error {
	var report rules.Report
	if err := json.NewDecoder(io.LimitReader(in, maxReport)).Decode(&report); err != nil {
		return fmt.Errorf("the exporter did not answer as one does: %w", err)
	}
	return report.Print(out)
}
