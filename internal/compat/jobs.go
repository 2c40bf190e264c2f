package compat

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
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

// Reasons for rejecting an entry of a job directory.
const (
	rejectFolder   = "folder"     // the directory cannot be read
	rejectName     = "name"       // the file name is not INDEX or INDEX.INSTANCE
	rejectFile     = "unreadable" // the file cannot be read or is not regular
	rejectID       = "id"         // the job id is too long or has invalid characters
	rejectOverflow = "overflow"   // more files, bytes or jobs than the limits
)

// Jobs are the jobs that a scheduler such as Slurm runs on the node's GPUs. The
// zero value has no jobs.
type Jobs struct {
	of       map[string][]string // job ids by GPU index, or index.instance
	rejected map[string]int      // by reason
}

// ReadJobs reads a job directory, which has a file for each GPU. The file is
// named after the GPU's index, or index.instance for a MIG instance, and each of
// its lines is the id of a job. dcgm-exporter reads the same format for
// --hpc-job-mapping-dir. Invalid entries are counted and skipped.
func ReadJobs(folder fs.FS) *Jobs {
	j := &Jobs{of: map[string][]string{}, rejected: map[string]int{}}
	names, err := listJobs(folder)
	if err != nil {
		j.rejected[rejectFolder]++
	}
	if len(names) > maxJobFiles {
		j.rejected[rejectOverflow] += len(names) - maxJobFiles
		names = names[:maxJobFiles]
	}
	for _, name := range names {
		if !isJobFile(name) {
			j.rejected[rejectName]++
			continue
		}
		text, whole, err := readJobFile(folder, name)
		if err != nil {
			j.rejected[rejectFile]++
			continue
		}
		if !whole {
			j.rejected[rejectOverflow]++
		}
		if ids := j.parse(text); len(ids) > 0 {
			j.of[name] = ids
		}
	}
	return j
}

// listJobs returns the sorted names of the files of a directory, without hidden
// files. It reads at most 2*maxJobFiles entries.
func listJobs(folder fs.FS) ([]string, error) {
	f, err := folder.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, errors.New("not a directory")
	}
	entries, err := dir.ReadDir(2 * maxJobFiles)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// isJobFile reports whether a file name is N or N.N, without leading zeros.
func isJobFile(name string) bool {
	gpu, instance, parted := strings.Cut(name, ".")
	return isIndex(gpu) && (!parted || isIndex(instance))
}

func isIndex(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == s
}

// readJobFile reads a file up to maxJobFile and truncates it at the end of a
// line. whole reports whether it was read completely. Only regular files are
// read.
func readJobFile(folder fs.FS, name string) (text string, whole bool, err error) {
	info, err := fs.Stat(folder, name)
	if err != nil {
		return "", false, err
	}
	if !info.Mode().IsRegular() {
		return "", false, errors.New("not a regular file")
	}
	f, err := folder.Open(name)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxJobFile+1))
	if err != nil {
		return "", false, err
	}
	if len(b) <= maxJobFile {
		return string(b), true, nil
	}
	text = string(b[:maxJobFile])
	return text[:strings.LastIndexByte(text, '\n')+1], false, nil
}

// parse returns the job ids of a file in their order, without duplicates.
func (j *Jobs) parse(text string) []string {
	var ids []string
	for line := range strings.Lines(text) {
		id := strings.TrimSpace(line)
		switch {
		case id == "" || slices.Contains(ids, id):
		case len(id) > maxJobID || !utf8.ValidString(id) || strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f || r == ',' }):
			j.rejected[rejectID]++
		case len(ids) >= maxJobs:
			j.rejected[rejectOverflow]++
		default:
			ids = append(ids, id)
		}
	}
	return ids
}

// Equal reports whether j and o have the same jobs and rejected entries.
func (j *Jobs) Equal(o *Jobs) bool {
	return maps.EqualFunc(j.of, o.of, slices.Equal) && maps.Equal(j.rejected, o.rejected)
}

// Rejected returns the number of rejected entries by reason.
func (j *Jobs) Rejected() map[string]int { return maps.Clone(j.rejected) }

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
