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

// Bounds on what a folder of jobs can make of the page.
const (
	maxJobFiles = 1024
	maxJobFile  = 16 << 10 // bytes
	maxJobs     = 16       // of one GPU or instance
	maxJobID    = 256      // bytes
)

// Why something of a folder of jobs is left out: the values of the label
// reason.
const (
	rejectFolder   = "folder"     // it cannot be read
	rejectName     = "name"       // of a file: no GPU, nor an instance of one
	rejectFile     = "unreadable" // a file
	rejectID       = "id"         // too long, or with what no label should have
	rejectOverflow = "overflow"   // more files, bytes or jobs than are taken
)

var jobRejects = []string{rejectFolder, rejectName, rejectFile, rejectID, rejectOverflow}

// Jobs are those that a scheduler such as Slurm runs on the node's GPUs. The
// zero Jobs are none.
type Jobs struct {
	of       map[string][]string // by GPU index, or index.instance
	rejected map[string]int
}

// ReadJobs reads a folder that holds a file for each GPU: its name is the
// GPU's index, or index.instance for a MIG instance, and each of its lines the
// id of a job. It is the folder that dcgm-exporter reads for
// --hpc-job-mapping-dir. What is wrong with it is counted, and the rest is
// taken.
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

// listJobs returns the names of the files of a folder, and one more than are
// taken where there are. Folders and hidden files are none.
func listJobs(folder fs.FS) ([]string, error) {
	f, err := folder.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, errors.New("not a folder")
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

// isJobFile reports whether a name is a GPU's or an instance's: N or N.N,
// without a zero before it.
func isJobFile(name string) bool {
	gpu, instance, parted := strings.Cut(name, ".")
	return isIndex(gpu) && (!parted || isIndex(instance))
}

func isIndex(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == s
}

// readJobFile reads a file up to the limit, cut at the end of a line; whole
// says that there is no more. A pipe or a device is none.
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

// parse returns the ids of a file, each once, in their order.
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

// Equal reports whether both say the same.
func (j *Jobs) Equal(o *Jobs) bool {
	return maps.EqualFunc(j.of, o.of, slices.Equal) && maps.Equal(j.rejected, o.rejected)
}

// Rejected counts what was left out, by the reason.
func (j *Jobs) Rejected() map[string]int { return maps.Clone(j.rejected) }
