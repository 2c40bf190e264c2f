package exporter

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
)

// process gathers the families of client_golang's process collector for this
// process, at a fraction of its cost: that one parses /proc/stat for the time
// of boot, the table of limits and every protocol's counters at each scrape,
// which is several times what a page costs.
type process struct {
	cpu, fds, maxFDs, vsize, maxVsize, rss, start, in, out *prometheus.Desc

	boot func() (float64, bool)

	mu            sync.Mutex
	stat, netstat procFile
}

// NewProcessCollector returns a collector of the process_ families.
func NewProcessCollector() prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &process{
		cpu:      desc("process_cpu_seconds_total", "Total user and system CPU time spent in seconds."),
		fds:      desc("process_open_fds", "Number of open file descriptors."),
		maxFDs:   desc("process_max_fds", "Maximum number of open file descriptors."),
		vsize:    desc("process_virtual_memory_bytes", "Virtual memory size in bytes."),
		maxVsize: desc("process_virtual_memory_max_bytes", "Maximum amount of virtual memory available in bytes."),
		rss:      desc("process_resident_memory_bytes", "Resident memory size in bytes."),
		start:    desc("process_start_time_seconds", "Start time of the process since unix epoch in seconds."),
		in:       desc("process_network_receive_bytes_total", "Number of bytes received by the process over the network."),
		out:      desc("process_network_transmit_bytes_total", "Number of bytes sent by the process over the network."),
		// Read once, the start of a process does not move with the clock.
		boot:    sync.OnceValues(bootTime),
		stat:    procFile{name: "/proc/self/stat"},
		netstat: procFile{name: "/proc/self/net/netstat"},
	}
}

func (p *process) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.cpu, p.fds, p.maxFDs, p.vsize, p.maxVsize, p.rss, p.start, p.in, p.out} {
		ch <- d
	}
}

// Collect leaves out what cannot be read, as client_golang does.
func (p *process) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	p.mu.Lock()
	s, measured := parseStat(p.stat.read())
	in, out, counted := parseNetstat(p.netstat.read())
	p.mu.Unlock()
	if measured {
		counter(p.cpu, (s[utime]+s[stime])/ticks)
		gauge(p.vsize, s[vsize])
		gauge(p.rss, s[rss]*float64(os.Getpagesize()))
		if boot, ok := p.boot(); ok {
			gauge(p.start, boot+s[starttime]/ticks)
		}
	}
	if n, ok := openFDs(); ok {
		gauge(p.fds, float64(n))
	}
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) == nil {
		gauge(p.maxFDs, float64(l.Cur))
	}
	if syscall.Getrlimit(syscall.RLIMIT_AS, &l) == nil {
		gauge(p.maxVsize, float64(l.Cur))
	}
	if counted {
		counter(p.in, in)
		counter(p.out, out)
	}
}

// ticks per second, in which Linux gives times to programs whatever its clock.
const ticks = 100

// Fields of /proc/self/stat after the name, which may hold anything.
const (
	utime     = 14 - 3
	stime     = 15 - 3
	starttime = 22 - 3
	vsize     = 23 - 3
	rss       = 24 - 3
)

func parseStat(b []byte) (fields [rss + 1]float64, ok bool) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return fields, false
	}
	n := 0
	for f := range bytes.FieldsSeq(b[end+1:]) {
		if n == len(fields) {
			break
		}
		if n >= utime {
			v, err := strconv.ParseFloat(string(f), 64)
			if err != nil {
				return fields, false
			}
			fields[n] = v
		}
		n++
	}
	return fields, n == len(fields)
}

func bootTime() (float64, bool) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	_, b, found := bytes.Cut(b, []byte("\nbtime "))
	b, _, _ = bytes.Cut(b, []byte("\n"))
	v, err := strconv.ParseFloat(string(b), 64)
	return v, found && err == nil
}

// openFDs takes the size of the directory, which is the number from Linux 6.2
// on and 0 before.
func openFDs() (int, bool) {
	const name = "/proc/self/fd"
	if i, err := os.Stat(name); err == nil && i.Size() > 0 {
		return int(i.Size()), true
	}
	d, err := os.Open(name)
	if err != nil {
		return 0, false
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	return len(names), err == nil
}

// parseNetstat returns the bytes that the network namespace has received and
// sent: a line of names and one of numbers say so.
func parseNetstat(b []byte) (in, out float64, ok bool) {
	if b == nil {
		return 0, 0, false
	}
	const prefix = "IpExt:"
	_, b, _ = bytes.Cut(b, []byte("\n"+prefix))
	names, b, _ := bytes.Cut(b, []byte("\n"+prefix))
	numbers, _, _ := bytes.Cut(b, []byte("\n"))
	fields := bytes.Fields(numbers)
	i := 0
	for name := range bytes.FieldsSeq(names) {
		if i == len(fields) {
			break
		}
		switch string(name) {
		case "InOctets":
			in, _ = strconv.ParseFloat(string(fields[i]), 64)
		case "OutOctets":
			out, _ = strconv.ParseFloat(string(fields[i]), 64)
		}
		i++
	}
	return in, out, true
}
