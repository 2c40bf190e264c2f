package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/amd"
	"github.com/accel-exporter/accel-exporter/collector/dcgm"
	"github.com/accel-exporter/accel-exporter/collector/fpga"
	"github.com/accel-exporter/accel-exporter/collector/kernellog"
	"github.com/accel-exporter/accel-exporter/collector/nvidia"
	"github.com/accel-exporter/accel-exporter/collector/pcie"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/config"
)

// hostSysfs is the path of the kernel's sysfs.
const hostSysfs = "/sys"

// sourceFlags are the flags of the sources.
type sourceFlags struct {
	enabled     map[string]*bool
	nvmlLibrary string
	nvmlEvents  bool // GPU Operational Events
	nvmlRecords bool // Common Platform Error Records, for bundles
	sysfs       string
	procfs      string
	devfs       string
	deviceTree  string
	kernelLog   string
	dcgm        dcgmFlags
}

// sourceSpec registers one source. A new source needs an entry of specs.
type sourceSpec struct {
	name string
	help string
	// covers are the devices that the source should find.
	covers []collector.Cover
	// patience is the default limit of a round, defaultPatience if it is 0, and
	// timeout the configured one, or 0.
	patience time.Duration
	timeout  func(*config.Config) time.Duration
	// wanted reports whether the source is enabled; nil for a source that
	// always is.
	wanted func(*sourceFlags) bool
	// args are the arguments of the worker that reads the source, and work
	// returns the source inside it. They are nil for a source without a worker.
	args func(*sourceFlags, *config.Config) []string
	work func(args []string, emit func(collector.Event)) (collector.Source, error)
	// budget is the memory of a worker in bytes above which it is replaced: some
	// five times what it uses on the largest nodes.
	budget uint64
	// leave: the worker closes its source before it ends, within leavePatience.
	leave bool
	// open returns a source that is read in this process: it reads files of the
	// kernel and links no native library.
	open func(f *sourceFlags, emit func(collector.Event)) collector.Source
}

const defaultPatience = 5 * time.Second

// pciNames are where distributions install pci.ids (packages hwdata and pci.ids).
var pciNames = &collector.PCINames{Files: []string{"/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids"}}

var specs = []sourceSpec{
	{
		name:    nvidia.Name,
		help:    "NVIDIA GPUs through NVML",
		covers:  []collector.Cover{{Class: collector.GPU, Vendor: "nvidia"}},
		timeout: func(c *config.Config) time.Duration { return c.Sources.NVIDIA.Timeout },
		args: func(f *sourceFlags, c *config.Config) []string {
			args := []string{"--slow-interval=" + c.Sources.NVIDIA.SlowInterval.String(), "--path.sysfs=" + f.sysfs, "--path.procfs=" + f.procfs}
			if f.nvmlLibrary != "" {
				args = append(args, "--nvml.library="+f.nvmlLibrary)
			}
			if f.nvmlEvents {
				args = append(args, "--nvml.operational-events")
			}
			if f.nvmlRecords {
				args = append(args, "--nvml.error-records")
			}
			return args
		},
		work:   workNVIDIA,
		budget: 160 << 20,
	},
	{
		name:    dcgm.Name,
		help:    "NVIDIA DCGM, for values that NVML does not have. Requires --dcgm.address or --dcgm.embedded",
		timeout: func(c *config.Config) time.Duration { return c.Sources.DCGM.Timeout },
		wanted:  func(f *sourceFlags) bool { return f.dcgm.on() },
		// The library waits 5 s for a host engine that does not answer.
		patience: 10 * time.Second,
		args:     dcgmArgs,
		work:     workDCGM,
		budget:   1 << 30, // an embedded host engine keeps samples
		leave:    true,
	},
	{
		name:    amd.Name,
		help:    "AMD GPUs through the kernel's driver amdgpu",
		covers:  []collector.Cover{{Class: collector.GPU, Vendor: "amd"}},
		timeout: func(c *config.Config) time.Duration { return c.Sources.AMD.Timeout },
		open: func(f *sourceFlags, _ func(collector.Event)) collector.Source {
			return amd.New(sysfs.New(f.sysfs), sysfs.New(f.procfs), pciNames)
		},
	},
	{
		name:    fpga.Name,
		help:    "FPGAs through the kernel's drivers",
		covers:  []collector.Cover{{Class: collector.FPGA}},
		timeout: func(c *config.Config) time.Duration { return c.Sources.FPGA.Timeout },
		open: func(f *sourceFlags, emit func(collector.Event)) collector.Source {
			return fpga.New(sysfs.New(f.sysfs), fpga.Options{Emit: emit, Firmware: f.deviceTree})
		},
	},
	{
		name:    pcie.Name,
		help:    "the PCI core, for every accelerator on the bus",
		covers:  []collector.Cover{{Class: collector.GPU, Bus: true}, {Class: collector.FPGA, Bus: true}, {Class: collector.Switch, Bus: true}},
		timeout: func(c *config.Config) time.Duration { return c.Sources.PCIe.Timeout },
		open: func(f *sourceFlags, _ func(collector.Event)) collector.Source {
			return pcie.New(sysfs.New(f.sysfs), sysfs.New(f.procfs), pcie.Options{Dev: f.devfs, Names: pciNames})
		},
	},
	{
		name:    kernellog.Name,
		help:    "the kernel log: Xid and SXid errors, lost devices, PCIe errors",
		timeout: func(c *config.Config) time.Duration { return c.Sources.KernelLog.Timeout },
		open: func(f *sourceFlags, emit func(collector.Event)) collector.Source {
			return kernellog.New(kernellog.Options{Path: f.kernelLog, Sysfs: f.sysfs, Emit: emit})
		},
	},
}

func (f *sourceFlags) add(app *kingpin.Application) {
	f.enabled = map[string]*bool{}
	for _, s := range specs {
		f.enabled[s.name] = app.Flag("collector."+s.name, "Collect from "+s.help+".").Default("true").Bool()
	}
	f.dcgm.add(app)
	app.Flag("path.sysfs", "Where sysfs is mounted.").Default(hostSysfs).PlaceHolder("DIR").StringVar(&f.sysfs)
	app.Flag("path.procfs", "Where procfs is mounted.").Default("/proc").PlaceHolder("DIR").StringVar(&f.procfs)
	app.Flag("path.devfs", "Directory with the node's device files, to detect missing ones. By default they are not checked, since a container has its own /dev.").PlaceHolder("DIR").StringVar(&f.devfs)
	app.Flag("path.devicetree", "Directory with the device tree, if it is mounted elsewhere because the container runtime hides /sys/firmware.").PlaceHolder("DIR").StringVar(&f.deviceTree)
	app.Flag("kernel-log.path", "Kernel log: /dev/kmsg, or a file that is followed as it grows: records of /dev/kmsg, or lines of dmesg, syslog or the journal. On many systems any user can write lines to a file of syslog.").Default("/dev/kmsg").PlaceHolder("FILE").StringVar(&f.kernelLog)
	app.Flag("nvml.library", "NVML library to load. By default the directories of drivers and containers are searched.").PlaceHolder("PATH").StringVar(&f.nvmlLibrary)
	app.Flag("nvml.operational-events", "Receive GPU Operational Events, a preview in NVIDIA's driver R615, with their severity.").BoolVar(&f.nvmlEvents)
}

// check rejects values that the configuration file would reject.
func (f *sourceFlags) check() error {
	errs := []error{
		f.dcgm.check(), directory("path.sysfs", f.sysfs), directory("path.procfs", f.procfs), directory("path.devfs", f.devfs),
	}
	if !slices.ContainsFunc(specs, f.on) {
		errs = append(errs, errors.New("no source is enabled: of --collector.NAME at least one is needed"))
	}
	return errors.Join(errs...)
}

// on reports whether a source is read.
func (f *sourceFlags) on(spec sourceSpec) bool {
	return *f.enabled[spec.name] && (spec.wanted == nil || spec.wanted(f))
}

// work is the main function of a worker: it serves one source on its pipes
// until they close, and returns without calling the library, which may hang.
func work(name string, args []string) error {
	for _, s := range specs {
		if s.name != name || s.work == nil {
			continue
		}
		showName()
		events := make(chan collector.Event, 256)
		src, err := s.work(args, func(e collector.Event) { events <- e })
		if err != nil {
			return err
		}
		in, out := collector.WorkerIO()
		err = collector.Serve(in, out, src, events)
		if s.leave {
			leave(src)
		}
		return err
	}
	return fmt.Errorf("no worker named %q", name)
}

// leavePatience is the time for closing a source; the parent kills the worker a
// little later.
const leavePatience = 300 * time.Millisecond

// leave closes a source with state that the kernel does not clean up. The
// process ends whether or not it succeeds.
func leave(src collector.Source) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = src.Close()
	}()
	select {
	case <-closed:
	case <-time.After(leavePatience):
	}
}

// showName sets the command name that tools such as top display, which would be
// "exe" otherwise.
func showName() {
	// Best effort: the name is informational.
	_ = os.WriteFile("/proc/self/comm", []byte("accel-exporter"), 0)
}

func workNVIDIA(args []string, emit func(collector.Event)) (collector.Source, error) {
	var o nvidia.Options
	app := kingpin.New("accel-exporter worker nvidia", "Reads NVML for the exporter that started it.")
	app.Flag("nvml.library", "NVML library to load.").StringVar(&o.Library)
	app.Flag("nvml.operational-events", "Receive GPU Operational Events.").BoolVar(&o.OperationalEvents)
	app.Flag("nvml.error-records", "Read Common Platform Error Records.").BoolVar(&o.ErrorRecords)
	app.Flag("path.sysfs", "Where sysfs is mounted.").StringVar(&o.Sysfs)
	app.Flag("path.procfs", "Where procfs is mounted.").StringVar(&o.Procfs)
	app.Flag("slow-interval", "Time between two reads of slowly changing values.").Default("10s").DurationVar(&o.SlowInterval)
	if _, err := app.Parse(args); err != nil {
		return nil, err
	}
	return nvidia.New(o, emit), nil
}
