package compat

import (
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// addJobs adds the jobs of a GPU or an instance. Several jobs share one label: a
// series for each job would count the value of the GPU several times in a sum.
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
	Help:   "Entries of the job directory that the last read rejected, by reason. Only with --compat.hpc-jobs.",
	Kind:   collector.Gauge,
	Scope:  collector.PerNode,
	Labels: []string{"reason"},
	Range:  collector.Range{Min: 0, Max: 1 << 32},
	From:   []string{"exporter"},
	Values: []string{"reason: folder (the directory cannot be read), name (the file name is neither the index of a GPU nor index.instance), unreadable (the file cannot be read), id (a job id is longer than 256 bytes, or has a comma or a control character), overflow (over 1024 files, 16 KiB per file or 16 jobs per GPU)"},
}

// appendJobs adds the number of rejected entries of the job directory.
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
