package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJobs checks that the series of a GPU follow the files of the job directory,
// that the directory can appear later, and that an invalid file is rejected
// alone.
func TestJobs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "jobs")
	write := func(name, text string) {
		t.Helper()
		writeFile(t, filepath.Join(dir, name), text)
	}
	n := start(t, scenario, nil, "--compat.dcgm-exporter", "--hpc-job-mapping-dir", dir)
	n.until(`^DCGM_FI_DEV_GPU_TEMP\{`, `!hpc_job="`)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write("0", "4711\n")
	write("4.2", "4712\n")
	write("gpu", "")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(secret, []byte("secret\n"), 0o600), os.Symlink(secret, filepath.Join(dir, "1"))); err != nil {
		t.Fatal(err)
	}
	n.until(`^DCGM_FI_DEV_GPU_TEMP\{.*gpu="0",.*hpc_job="4711",`, `^DCGM_FI_DEV_FB_USED\{.*GPU_I_ID="2",.*gpu="4",.*hpc_job="4712",`,
		`!^DCGM_FI_DEV_GPU_TEMP\{.*gpu="1",.*hpc_job`)
	write("0", "4711\n4713\n")
	n.until(`^DCGM_FI_DEV_GPU_TEMP\{.*gpu="0",.*hpc_job="4711,4713",`)
	if err := os.Remove(filepath.Join(dir, "0")); err != nil {
		t.Fatal(err)
	}
	n.until(`!hpc_job="4711`, `hpc_job="4712"`)
	if log := n.log.String(); !strings.Contains(log, "job directory is not used") || strings.Count(log, "is accepted as a name") == 0 || !strings.Contains(log, "1: statat 1: path escapes") {
		t.Errorf("log: %s", log)
	}
}
