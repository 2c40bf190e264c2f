package compat

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a job directory.
const (
	maxJobFiles = 1024
	maxJobFile  = 16 << 10 // bytes
	maxJobs     = 16       // per GPU or instance
	maxJobID    = 256      // bytes
)

// Jobs are the jobs that a scheduler such as Slurm runs on the node's GPUs. The
// zero value has no jobs.
type Jobs struct {
	of map[string][]string // job ids by GPU index, or index.instance
	// Refused are up to ten reasons why a part of the directory is not used.
	Refused []string
}

// jobFile matches the name of a file with the jobs of a GPU or of a MIG instance.
var jobFile = regexp.MustCompile(`^(0|[1-9][0-9]{0,4})([.](0|[1-9][0-9]{0,4}))?$`)

// ReadJobs reads a job directory, which has a file for each GPU. The file is
// named after the GPU's index, or index.instance for a MIG instance, and each of
// its lines is the id of a job. dcgm-exporter reads the same format for
// --hpc-job-mapping-dir.
func ReadJobs(folder fs.FS) *Jobs {
	j := &Jobs{of: map[string][]string{}}
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		j.refuse("%v", err)
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.IsDir() || strings.HasPrefix(name, "."):
		case !jobFile.MatchString(name):
			j.refuse("%s: INDEX or INDEX.INSTANCE is accepted as a name", name)
		case len(j.of) >= maxJobFiles:
			j.refuse("%s: up to %d files are accepted", name, maxJobFiles)
			return j
		default:
			text, err := readJobFile(folder, name)
			if err != nil {
				j.refuse("%s: %v", name, err)
			}
			j.add(name, text)
		}
	}
	return j
}

func (j *Jobs) refuse(format string, args ...any) {
	if len(j.Refused) < 10 {
		j.Refused = append(j.Refused, fmt.Sprintf(format, args...))
	}
}

// readJobFile reads the first lines of a regular file, up to maxJobFile.
func readJobFile(folder fs.FS, name string) (string, error) {
	info, err := fs.Stat(folder, name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("not a regular file") // opening a pipe would wait
	}
	f, err := folder.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxJobFile+1))
	if err != nil || len(b) <= maxJobFile {
		return string(b), err
	}
	return string(b[:strings.LastIndexByte(string(b), '\n')+1]), fmt.Errorf("up to %d bytes are accepted", maxJobFile)
}

// add adds the job ids of a file in their order, without duplicates.
func (j *Jobs) add(name, text string) {
	for line := range strings.Lines(text) {
		id := strings.TrimSpace(line)
		switch {
		case id == "" || slices.Contains(j.of[name], id):
		case len(id) > maxJobID || !utf8.ValidString(id) || strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f || r == ',' }):
			j.refuse("%s: job %.40q is refused; up to %d bytes without commas and control characters are accepted", name, id, maxJobID)
		case len(j.of[name]) >= maxJobs:
			j.refuse("%s: up to %d jobs are accepted", name, maxJobs)
			return
		default:
			j.of[name] = append(j.of[name], id)
		}
	}
}

// Equal reports whether j and o have the same jobs and refused the same.
func (j *Jobs) Equal(o *Jobs) bool {
	return maps.EqualFunc(j.of, o.of, slices.Equal) && slices.Equal(j.Refused, o.Refused)
}

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
