package pcie_test

import (
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/pcie"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// file is a device file as stat(2) shows it.
type file struct {
	name string
	gid  uint32
	mode fs.FileMode
}

func (f file) Name() string       { return f.name }
func (f file) Size() int64        { return 0 }
func (f file) Mode() fs.FileMode  { return f.mode }
func (f file) ModTime() time.Time { return time.Time{} }
func (f file) IsDir() bool        { return false }
func (f file) Sys() any           { return &syscall.Stat_t{Gid: f.gid} }

const charDevice = fs.ModeDevice | fs.ModeCharDevice

// hidden is the mode of a file that may not be looked at.
const hidden = fs.ModeIrregular

// statOf is stat in a folder with files.
func statOf(files ...file) func(string) (fs.FileInfo, error) {
	return func(path string) (fs.FileInfo, error) {
		for _, f := range files {
			if path != filepath.Join("/dev", f.name) {
				continue
			}
			if f.mode == hidden {
				return nil, &fs.PathError{Op: "stat", Path: path, Err: syscall.EACCES}
			}
			return f, nil
		}
		return nil, &fs.PathError{Op: "stat", Path: path, Err: syscall.ENOENT}
	}
}

// wantFiles fails where the device files of a GPU have other reasons than want, by
// file. A look is not waited for longer than a moment, so the round after may be
// the first that has it.
func wantFiles(t *testing.T, s *pcie.Source, id string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for round := range 60 {
		for _, r := range device(sample(t, s), id).Readings {
			if r.Metric == collector.DeviceFileUsable {
				got[r.Labels[0]] = r.Labels[1]
				if (r.Value == 1) != (r.Labels[1] == "") {
					t.Errorf("%v %v", r.Labels, r.Value)
				}
			}
		}
		if len(got) > 0 || round > 0 && len(want) == 0 {
			break
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestDeviceFiles(t *testing.T) {
	// As configured in testdata/trees/bus.txt: group 44, mode 0660.
	own := file{"nvidia0", 44, charDevice | 0o660}
	control := file{"nvidiactl", 44, charDevice | 0o660}
	uvm := file{"nvidia-uvm", 44, charDevice | 0o660}
	for name, c := range map[string]struct {
		files []file
		edit  func(*faketree.Tree)
		want  map[string]string // reason by file
	}{
		"all well": {
			files: []file{own, control, uvm},
			want:  map[string]string{"nvidia0": "", "nvidiactl": "", "nvidia-uvm": ""},
		},
		"none": {
			want: map[string]string{"nvidia0": "missing", "nvidiactl": "missing", "nvidia-uvm": "missing"},
		},
		"no device": {
			files: []file{own, {"nvidiactl", 44, 0o660}, {"nvidia-uvm", 44, fs.ModeDir | 0o755}},
			want:  map[string]string{"nvidia0": "", "nvidiactl": "wrong_device", "nvidia-uvm": "wrong_device"},
		},
		"one not checked": {
			files: []file{own, control, {name: "nvidia-uvm", mode: hidden}},
			want:  map[string]string{"nvidia0": "", "nvidiactl": ""},
		},
		"closed": {
			files: []file{{"nvidia0", 44, charDevice | 0o600}, {"nvidiactl", 0, charDevice | 0o660}, uvm},
			want:  map[string]string{"nvidia0": "permissions", "nvidiactl": "permissions", "nvidia-uvm": ""},
		},
		"another program sets them": {
			files: []file{{"nvidia0", 0, charDevice | 0o600}, control, uvm},
			edit: func(tree *faketree.Tree) {
				tree.Set("/proc/driver/nvidia/params", "ModifyDeviceFiles: 0\nDeviceFileUID: 0\nDeviceFileGID: 44\nDeviceFileMode: 432\n")
			},
			want: map[string]string{"nvidia0": "", "nvidiactl": "", "nvidia-uvm": ""},
		},
		"no unified memory": {
			files: []file{own, control},
			edit: func(tree *faketree.Tree) {
				tree.Set("/proc/devices", "Character devices:\n195 nvidia\n\nBlock devices:\n507 nvidia-uvm\n")
			},
			want: map[string]string{"nvidia0": "", "nvidiactl": ""},
		},
		"many": {
			files: []file{{"nvidia300", 44, charDevice | 0o660}, control, uvm},
			edit: func(tree *faketree.Tree) {
				tree.Set("/proc/driver/nvidia/gpus/"+gpu+"/information", "Device Minor: \t 300\n")
			},
			want: map[string]string{"nvidia300": "", "nvidiactl": "", "nvidia-uvm": ""},
		},
		"another driver": {
			files: []file{control, uvm},
			edit:  func(tree *faketree.Tree) { tree.Remove("/proc/driver/nvidia/gpus/" + gpu) },
		},
		"hidden": {
			files: []file{own, control, uvm},
			edit:  func(tree *faketree.Tree) { tree.Remove("/proc/driver") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := load(t, "bus")
			if c.edit != nil {
				c.edit(tree)
			}
			s := open(t, write(t, tree), pcie.Options{Dev: "/dev", Stat: statOf(c.files...)})
			wantFiles(t, s, gpu, c.want)
		})
	}
}

// TestAMDDeviceFiles: programs need the render node of a GPU of AMD's driver, and
// the file for ROCm where the driver has registered it.
func TestAMDDeviceFiles(t *testing.T) {
	const at = "0000:c1:00.0"
	render, kfd := file{"dri/renderD128", 44, charDevice | 0o660}, file{"kfd", 44, charDevice | 0o660}
	for name, c := range map[string]struct {
		files []file
		edit  func(*faketree.Tree)
		want  map[string]string
	}{
		"all well":  {files: []file{render, kfd}, want: map[string]string{"dri/renderD128": "", "kfd": ""}},
		"none":      {want: map[string]string{"dri/renderD128": "missing", "kfd": "missing"}},
		"no ROCm":   {files: []file{render}, edit: func(tree *faketree.Tree) { tree.Remove("/proc/devices") }, want: map[string]string{"dri/renderD128": ""}},
		"no driver": {files: []file{kfd}, edit: func(tree *faketree.Tree) { tree.Remove("/sys/bus/pci/devices/" + at + "/driver") }},
	} {
		t.Run(name, func(t *testing.T) {
			tree := load(t, "mi210")
			tree.Set("/proc/devices", "Character devices:\n226 drm\n238 kfd\n\nBlock devices:\n")
			if c.edit != nil {
				c.edit(tree)
			}
			s := open(t, write(t, tree), pcie.Options{Dev: "/dev", Stat: statOf(c.files...)})
			wantFiles(t, s, at, c.want)
		})
	}
}

// TestDeviceFilesUnasked: without a directory they are not checked.
func TestDeviceFilesUnasked(t *testing.T) {
	tree := load(t, "bus")
	tree.Forbid("/proc/driver/nvidia/params", "/proc/devices")
	s := open(t, mount(t, tree), pcie.Options{})
	for _, d := range sample(t, s).Devices {
		want(t, &d, -1, collector.DeviceFileUsable)
	}
	if v := tree.Violations(); len(v) > 0 {
		t.Error(v)
	}
}

// TestNameOfTheDriver: a GPU has the UUID, the model and the minor number that
// NVIDIA's driver shows of it, in the form of each release, while the driver
// has the GPU.
func TestNameOfTheDriver(t *testing.T) {
	const uuid = "GPU-11114707-9d28-0ab5-175a-3cf7e5e24303"
	for name, c := range map[string]struct {
		text, id, model string
		kube            []string
	}{
		"lost, R580": {
			"Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 120\nGPU UUID: \t " + uuid + "\nVideo BIOS: \t ??.??.??.??.??\nBus Location: \t " + gpu + "\nDevice Minor: \t 3\nGPU Firmware: \t N/A\n",
			uuid, "NVIDIA H100 80GB HBM3",
			[]string{uuid, "nvidia3", "gpu-3"},
		},
		"never initialized, R580": {
			"Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-????????-????-????-????-????????????\nDevice Minor: \t 3\n",
			gpu, "NVIDIA H100 80GB HBM3",
			[]string{"nvidia3", "gpu-3"},
		},
		"never initialized, R595": {"Model: \t\t Unknown\nDevice Minor: \t 3\n", gpu, "", []string{"nvidia3", "gpu-3"}},
		"cannot be woken":         {"", gpu, "", nil},
		"garbage":                 {"Model: \t\t a\x01\nGPU UUID: \t GPU-1\nDevice Minor: \t -1\n", gpu, "", nil},
		"not of the driver":       {"none", gpu, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			tree := load(t, "bus")
			dir := "/proc/driver/nvidia/gpus/" + gpu
			if tree.Set(dir+"/information", c.text); c.text == "none" {
				tree.Remove(dir)
			}
			root := write(t, tree)
			s := open(t, root, pcie.Options{})
			d := appears(t, s, c.id)
			if d == nil || d.PCI != gpu || d.Model != c.model || !slices.Equal(d.KubeIDs, c.kube) {
				t.Fatalf("%+v", d)
			}
			want(t, d, 1, collector.DeviceInfo, "gpu", "nvidia", c.model, "", "", gpu)
			before := tree.Clone()
			tree.Remove(dir)
			if err := tree.Sync(root, before); err != nil {
				t.Fatal(err)
			}
			if d = appears(t, s, gpu); d == nil || d.Model != "" || d.KubeIDs != nil {
				t.Errorf("without the driver: %+v", d)
			}
		})
	}
}

// appears returns the device once the Source has it. A look at the driver is not
// waited for longer than a moment.
func appears(t *testing.T, s *pcie.Source, id string) (d *collector.Device) {
	for range 60 {
		if d = device(sample(t, s), id); d != nil {
			break
		}
	}
	return d
}
