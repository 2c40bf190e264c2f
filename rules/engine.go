package rules

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
)

// Engine evaluates rules. It is safe for concurrent use and a Collector of its
// own metrics.
type Engine struct {
	o Options
}

// New returns an Engine that has evaluated nothing yet. The error says what is
// wrong with the options.
func New(o Options) (*Engine, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return &Engine{o: o}, nil
}

// Run evaluates at once, at each interval and after Trigger, until ctx is done.
func (e *Engine) Run(ctx context.Context) { <-ctx.Done() }

// Trigger has Run evaluate at once, because something happened that rules may
// be about. It does not block. Triggers that come while an evaluation runs,
// or shortly after one, share the next.
func (e *Engine) Trigger() {}

// Eval gathers the page once and evaluates the groups that are due at the time
// now, or all with every, as Run does. It is for tests and tools; now must not
// go back.
func (e *Engine) Eval(ctx context.Context, now time.Time, every bool) {}

// Apply replaces the rules. Alerts of rules that keep their file, group, name
// and labels go on as they are; those of rules that are gone are forgotten.
func (e *Engine) Apply(s *Set) {}

// Alerts returns all alerts that are pending, firing or lately resolved,
// sorted by labels.
func (e *Engine) Alerts() []Alert { return nil }

// Groups returns the state of every group, in the order of evaluation.
func (e *Engine) Groups() []GroupState { return nil }

// Explain returns the state of the engine, with what raised each alert at the
// last evaluation.
func (e *Engine) Explain(ctx context.Context) Report { return Report{} }

// Query evaluates an expression over what the engine holds at the time at. It
// finds only series that some rule selects and the latest of what rules
// recorded.
func (e *Engine) Query(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	return nil, nil
}

// Describe implements prometheus.Collector.
func (e *Engine) Describe(ch chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (e *Engine) Collect(ch chan<- prometheus.Metric) {}

// Print writes a Report for a person.
func (r *Report) Print(w io.Writer) error { return nil }

// Check reads rule files, given by path or pattern, and writes for each what
// it holds. The error has every mistake in any of them.
func Check(w io.Writer, patterns ...string) error { return nil }

// Test runs unit tests of rules in promtool's format, given by path or
// pattern, and writes for each file how it went. The error names all that
// failed.
func Test(ctx context.Context, w io.Writer, patterns ...string) error { return nil }

// Builtin returns the rules that are built in.
func Builtin() *Set { return nil }

// Load reads rule files, given by path or pattern of path/filepath.Match. The
// error is of type strict.Mistakes where a file can be read but not taken; it
// has every mistake of all files.
func Load(patterns ...string) (*Set, error) { return nil, nil }

// Parse is Load for the content of one file, which name stands for.
func Parse(name string, data []byte) (*Set, error) { return nil, nil }
