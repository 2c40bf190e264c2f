package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Dev is the directory of the device files of the simulation at a state file,
// where it has them. They have the numbers of NVIDIA's driver and no hardware.
func Dev(state string) string { return state + ".dev" }

// WithDeviceFiles makes Install create device files, which requires CAP_MKNOD.
func (s *State) WithDeviceFiles() { s.Set("dev", "yes") }

var deviceFileStates = []string{"present", "missing", "denied"}

func injectDeviceFile(s *State, in input) error {
	if !s.Has("dev") {
		return errors.New("this simulation has no device files; set one up with --dev")
	}
	n, err := in.one("state", deviceFileStates)
	if err != nil {
		return err
	}
	return s.onGPUs(in, func(d device) error {
		s.Set(fmt.Sprintf("gpu.%d.device_file", d.gpu), deviceFileStates[n])
		return nil
	})
}

// saveDev updates the device files from the state.
func (s *State) saveDev(path string) error {
	if !s.Has("dev") {
		return nil
	}
	if err := os.MkdirAll(Dev(path), 0o755); err != nil {
		return err
	}
	loaded := s.Get("driver.state") != "unloaded" && s.gpus() > 0
	all := []error{deviceFile(path, "nvidiactl", 195, 255, loaded, 0o666), deviceFile(path, "nvidia-uvm", 508, 0, loaded, 0o666)}
	for i := range s.gpus() {
		mode := uint32(0o666)
		is := s.Get(fmt.Sprintf("gpu.%d.device_file", i))
		if is == "denied" {
			mode = 0o600
		}
		all = append(all, deviceFile(path, "nvidia"+strconv.Itoa(i), 195, uint32(i), loaded && is != "missing", mode))
	}
	return errors.Join(all...)
}

func deviceFile(state, name string, major, minor uint32, there bool, mode uint32) error {
	at := filepath.Join(Dev(state), name)
	if !there {
		if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	err := unix.Mknod(at, unix.S_IFCHR|mode, int(unix.Mkdev(major, minor)))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return &fs.PathError{Op: "mknod", Path: at, Err: err}
	}
	return os.Chmod(at, fs.FileMode(mode)) // whatever the umask
}
