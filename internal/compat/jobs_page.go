package compat

import (
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// addJobs adds the jobs of a GPU or an instance. Several stand in one label: a
// series for each would show the whole GPU's value as if each had used all of
// it.
func (p *page) addJobs(s *set, u *unit) {
	jobs := p.view.options.Jobs
	if jobs == nil {
		return
	}
	key := u.index
	if u.board != nil {
		key += "." + u.gi
	}
	s.add("hpc_job", strings.Join(jobs.of[key], ","))
}

var jobRejected = &collector.Metric{
	Name:   "accel_compat_hpc_job_rejected",
	Help:   "What of the folder of jobs was left out when it was last read, by the reason. Only with --compat.hpc-jobs.",
	Kind:   collector.Gauge,
	Scope:  collector.PerNode,
	Labels: []string{"reason"},
	Range:  collector.Range{Min: 0, Max: 1 << 32},
	From:   []string{"exporter"},
	Values: []string{"reason: folder (it cannot be read), name (of a file: neither the index of a GPU nor index.instance), unreadable (a file), id (a job's is over 256 bytes long, or has a comma or a control character), overflow (over 1024 files, 16 KiB or 16 jobs of a GPU)"},
}

// appendJobs adds what was left out of the folder of jobs.
func (p *page) appendJobs(out []exposition.Derived) []exposition.Derived {
	jobs := p.view.options.Jobs
	if jobs == nil {
		return out
	}
	for _, reason := range jobRejects {
		n := float64(jobs.rejected[reason])
		out = append(out, exposition.Derived{
			Metric: jobRejected, Labels: []exposition.Label{{Name: "reason", Value: reason}},
			Value: func([]float64) (float64, bool) { return n, true },
		})
	}
	return out
}
