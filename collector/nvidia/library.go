//go:build linux && cgo

package nvidia

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

const soname = "libnvidia-ml.so.1"

// folders are where drivers, container runtimes and operators install the
// library outside the loader's search path.
var folders = []string{
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu/nvidia", // Jetson
	"/usr/lib64",
	"/usr/local/nvidia/lib64",
	"/usr/local/nvidia",      // the library's folder as driverRoot of the chart
	"/usr/local/glibc/lib",   // Talos
	"/run/opengl-driver/lib", // NixOS
	"/home/kubernetes/bin/nvidia/lib64",
	"/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
	"/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
	"/run/nvidia/driver/usr/lib64",
	"/opt/nvidia/lib64",
	"/usr/lib/wsl/lib",
}

// kernelVersionFile is below procfs.
const kernelVersionFile = "driver/nvidia/version"

var (
	callInit          = function("nvmlInit_v2", "nvmlInit")
	callInitWithFlags = function("nvmlInitWithFlags")
	callShutdown      = function("nvmlShutdown")
	callNVMLVersion   = function("nvmlSystemGetNVMLVersion")
)

// library is a loaded NVML.
type library struct {
	api nvml.Interface
	has []bool
	// sysfs and procfs are where they are mounted, empty where they are not read.
	// foreign: this process is outside the host's PID namespace.
	sysfs, procfs string
	foreign       bool
	// fieldIDs is that of the driver, which is the same until the worker ends.
	fieldIDs numbering
}

// load opens the named library, or the first of the usual places. The absence
// of a named library is an error. load never unloads: glibc keeps a library
// mapped once the program has bound to it.
func load(name, procfs string) (*library, error) {
	candidates := []string{name}
	if name == "" {
		candidates = []string{soname}
		for _, dir := range folders {
			candidates = append(candidates, dir+"/"+soname)
		}
	}
	for _, path := range candidates {
		handle := dl.New(path, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
		err := handle.Open()
		if err == nil {
			return bind(path, handle), nil
		}
		if name != "" || present(path, err) {
			return nil, fmt.Errorf("%w: open %s: %w", collector.ErrLibrary, path, err)
		}
	}
	if _, err := os.Stat(filepath.Join(procfs, kernelVersionFile)); err == nil {
		return nil, fmt.Errorf("%w: the kernel module is loaded, but no NVML library at %s", collector.ErrLibrary, strings.Join(candidates, ", "))
	}
	return nil, fmt.Errorf("%w: no NVML library at %s", collector.ErrAbsent, strings.Join(candidates, ", "))
}

// present distinguishes a library that exists but cannot be opened from an
// absent one.
func present(path string, err error) bool {
	if strings.Contains(path, "/") {
		_, stat := os.Stat(path)
		return !errors.Is(stat, os.ErrNotExist)
	}
	return !strings.Contains(err.Error(), "No such file or directory")
}

func bind(path string, handle *dl.DynamicLibrary) *library {
	l := &library{api: nvml.New(nvml.WithLibraryPath(path)), has: make([]bool, len(calls))}
	for i, c := range calls {
		l.has[i] = handle.Lookup(c.name) == nil
		for _, v := range c.versions {
			l.has[i] = l.has[i] || handle.Lookup(v) == nil
		}
	}
	return l
}

// init initializes NVML. A machine without a GPU is no error.
func (l *library) init(a *asker) error {
	a.forget()
	if l.has[callInitWithFlags.index] {
		do(a, callInitWithFlags, func() nvml.Return { return l.api.InitWithFlags(nvml.INIT_FLAG_NO_GPUS) })
	} else {
		do(a, callInit, l.api.Init)
	}
	ret, failed := a.failedRet, a.failed
	// The return code belongs to this call, not to the next one.
	a.fatal, a.stale, a.failed, a.failedRet = nvml.SUCCESS, nvml.SUCCESS, "", nvml.SUCCESS
	if failed == "" {
		if !l.has[callInit.index] && !l.has[callInitWithFlags.index] {
			return fmt.Errorf("%w: the library has no nvmlInit", collector.ErrDriver)
		}
		return nil
	}
	switch ret {
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return fmt.Errorf("%w: kernel module %s, library %s", collector.ErrMismatch, l.kernelVersion(), l.version(a))
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return fmt.Errorf("%w: %s: the kernel module is not loaded", collector.ErrDriver, failed)
	default:
		return fmt.Errorf("%w: %s: %s", collector.ErrDriver, failed, code(ret))
	}
}

func (l *library) version(a *asker) string {
	if v, ok := ask(a, callNVMLVersion, l.api.SystemGetNVMLVersion); ok && v != "" {
		return v
	}
	a.fatal, a.stale, a.failed = nvml.SUCCESS, nvml.SUCCESS, ""
	return "unknown"
}

func (l *library) shutdown(a *asker) { do(a, callShutdown, l.api.Shutdown) }

// kernelVersion returns the version of the loaded kernel module.
func (l *library) kernelVersion() string {
	b, err := os.ReadFile(filepath.Join(l.procfs, kernelVersionFile))
	if err != nil {
		return "unknown"
	}
	return parseKernelVersion(b)
}

// parseKernelVersion returns the version in a line such as "NVRM version:
// NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024".
func parseKernelVersion(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	for f := range bytes.FieldsSeq(line) {
		if f[0] >= '0' && f[0] <= '9' && bytes.IndexByte(f, '.') > 0 {
			return string(f)
		}
	}
	return "unknown"
}
