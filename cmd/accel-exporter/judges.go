package main

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/judge/attention"
	"github.com/accel-exporter/accel-exporter/internal/judge/baseline"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// judgeFlags is the command line of the judges.
type judgeFlags struct {
	baseline  string
	catalogue string
	labels    map[string]string
}

func (f *judgeFlags) add(app *kingpin.Application) {
	f.labels = map[string]string{}
	app.Flag("baseline.file", "Approved configurations by hardware class (YAML); differences are accel_drift. Reloaded like the configuration file.").PlaceHolder("FILE").StringVar(&f.baseline)
	app.Flag("node.label", "Label of this node that entries of the baseline select by; repeatable.").PlaceHolder("NAME=VALUE").SetValue(labels(f.labels))
	app.Flag("health.catalogue", "Changes to the built-in catalogue of Xids and conditions (YAML). Reloaded like the configuration file.").PlaceHolder("FILE").StringVar(&f.catalogue)
}

// judges draw conclusions from every Snapshot, in this order.
type judges struct {
	health     healthJudge
	allocation *allocation.Judge
	baseline   *baseline.Judge
	inputs     []*input
}

// healthJudge returns the judge of health. Its catalogue is decoded for the first Snapshot,
// which takes longer than all else before the first page: the workers start meanwhile.
type healthJudge func() *health.Judge

// Judge implements collector.Judge.
func (j healthJudge) Judge(s *collector.Snapshot) { j().Judge(s) }

// openJudges loads their files. The caller prints the error.
func openJudges(f *judgeFlags, procfs string, names *identities, alloc *allocation.Judge) (*judges, error) {
	j := &judges{
		health: sync.OnceValue(func() *health.Judge {
			o := health.Options{Boot: bootTime(procfs)}
			names.remember(&o)
			return health.New(health.Builtin(), o)
		}),
		allocation: alloc,
		baseline:   baseline.New(nil, baseline.Options{Labels: f.labels, Resources: alloc.Resources}),
	}
	if f.catalogue != "" {
		j.inputs = append(j.inputs, fileInput(f.catalogue, health.Parse, j.health().Apply))
	}
	if f.baseline != "" {
		j.inputs = append(j.inputs, fileInput(f.baseline, baseline.Parse, j.baseline.Apply))
	}
	for _, in := range j.inputs {
		apply, err := in.load()
		if err != nil {
			return nil, err
		}
		apply()
	}
	return j, nil
}

// add adds them to a Sampler.
func (j *judges) add(s *collector.Sampler) {
	s.AddJudge(j.health)
	s.AddJudge(j.allocation)    // repeats the verdict of health
	s.AddJudge(j.baseline)      // reads the allocations
	s.AddJudge(attention.New()) // reads the verdict and the allocations
}

// fileInput is a file with its own format as an input.
func fileInput[T any](path string, parse func(name string, data []byte) (T, error), apply func(T)) *input {
	file := strict.NewFile(path)
	return &input{path: path, changed: file.Changed, load: func() (func(), error) {
		data, err := file.Read()
		if err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		v, err := parse(path, data)
		if err != nil {
			return nil, err
		}
		return func() { apply(v) }, nil
	}}
}

// bootTime is the boot time of the node (btime of /proc/stat), or zero.
func bootTime(procfs string) time.Time {
	b, err := sysfs.New(procfs).ReadBytes("stat", 1<<20)
	if err != nil {
		return time.Time{}
	}
	for line := range strings.Lines(string(b)) {
		if s, ok := strings.CutPrefix(line, "btime "); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64); err == nil && n > 0 {
				// With a monotonic reading, so that setting the clock does not matter.
				now := time.Now()
				return now.Add(time.Unix(n, 0).Sub(now))
			}
		}
	}
	return time.Time{}
}
