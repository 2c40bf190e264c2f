package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func (in input) pid() (uint64, error) {
	n, err := strconv.ParseUint(in["pid"], 10, 64)
	if err != nil || n < 1 || n > maxPID {
		return 0, fmt.Errorf("pid: want a number from 1 to %d, found %q", maxPID, in["pid"])
	}
	return n, nil
}

// injectProcess starts a process on each device named. Without a pod it is
// the host's.
func injectProcess(s *State, in input) error {
	pid, err := in.pid()
	if err != nil {
		return err
	}
	ds, err := s.devices(in["device"])
	if err != nil {
		return err
	}
	uid, container := "", ""
	if in["pod"] != "" {
		p, err := s.podNamed(in["pod"])
		if err != nil {
			return err
		}
		if p.finished {
			return fmt.Errorf("the pod %s/%s has finished", p.namespace, p.name)
		}
		uid = p.uid
		container = attr(s.Get(p.key+".container.0"), "name")
	}
	for _, d := range ds {
		if err := s.startProcess(strconv.FormatUint(pid, 10), d, in, uid, container); err != nil {
			return err
		}
	}
	return s.showProcesses()
}

// startProcess lets a process use a device. A process that exists already has
// to belong to the same pod.
func (s *State) startProcess(pid string, d device, in input, uid, container string) error {
	mib, err := in.whole("memory")
	if err != nil || mib > 1<<22 {
		return fmt.Errorf("memory: want a number of MiB, found %q", in["memory"])
	}
	name := in["name"]
	if name == "" {
		name = "/usr/bin/python3"
	}
	if !deviceName.MatchString(name) {
		return fmt.Errorf("name: want a path without blanks, found %q", name)
	}
	if rec := s.Get("proc." + pid); rec == "" {
		s.addProcess(pid, 1000+int64(s.now()*100), name, uid, container)
	} else if attr(rec, "pod") != uid || attr(rec, "container") != container && uid != "" {
		return fmt.Errorf("process %s is there already, and not this pod's", pid)
	}
	if in["load"] != "" {
		if !isLoad(in["load"]) {
			return fmt.Errorf("load: want a load from 0 to 1 (%s), found %q", SignalHelp, in["load"])
		}
		s.work(d, in["load"])
	}
	return s.use(d, pid, mib<<20, name)
}

// use adds a record of a process to a GPU.
func (s *State) use(d device, pid string, memory uint64, name string) error {
	gi, ci := "-1", "-1"
	switch {
	case d.mig >= 0:
		rec := s.migRecord(d)
		gi, ci = attr(rec, "gi"), attr(rec, "ci")
	case s.gpuGet(d.gpu, "mig.mode") == "1":
		return fmt.Errorf("gpu %d is sliced by MIG; name one of its MIG devices, such as %d/0", d.gpu, d.gpu)
	}
	prefix := fmt.Sprintf("gpu.%d.process.", d.gpu)
	s.Set(prefix+strconv.Itoa(s.nextIndex(prefix)), fmt.Sprintf("pid=%s type=compute memory=%d gi=%s ci=%s share=100 name=%s", pid, memory, gi, ci, name))
	return nil
}

// uses are the records of a process on all GPUs.
func (s *State) uses(pid string) []string {
	var out []string
	for i := range s.gpus() {
		for _, key := range s.keys(fmt.Sprintf("gpu.%d.process.", i)) {
			if attr(s.Get(key), "pid") == pid {
				out = append(out, key)
			}
		}
	}
	return out
}

// endOn takes a process off a GPU, and ends it where that was its last.
func (s *State) endOn(key string) {
	pid := attr(s.Get(key), "pid")
	s.Delete(key)
	if len(s.uses(pid)) == 0 {
		s.Delete("proc." + pid)
	}
}

func (s *State) endProcess(pid string) {
	s.leave(s.uses(pid))
	s.Delete("proc." + pid)
}

// leave takes processes off devices by their records. A device without a
// working process is idle.
func (s *State) leave(records []string) {
	for _, key := range records {
		rec := s.Get(key)
		s.Delete(key)
		gpu, _, _ := strings.Cut(strings.TrimPrefix(key, "gpu."), ".")
		same := func(other string) bool {
			return attr(other, "gi") == attr(rec, "gi") && attr(other, "ci") == attr(rec, "ci")
		}
		works := func(k string) bool { return same(s.Get(k)) && attr(s.Get(k), "share") != "0" }
		if slices.ContainsFunc(s.keys("gpu."+gpu+".process."), works) {
			continue
		}
		d := device{mig: -1}
		d.gpu, _ = strconv.Atoi(gpu)
		for m := range s.migs(d.gpu) {
			if same(s.migRecord(device{d.gpu, m})) {
				d.mig = m
			}
		}
		s.work(d, "0")
	}
}

// work gives a device a load that is no fault: it remains when faults are
// cleared.
func (s *State) work(d device, load string) {
	key := d.prefix() + "load"
	touched := s.Has("touched." + key)
	s.setAt(d.gpu, key, "load", load)
	if !touched {
		s.Delete("touched." + key)
	}
	s.Set("life."+key, load)
}

func injectProcessEnd(s *State, in input) error {
	if !s.Has("proc." + in["pid"]) {
		return fmt.Errorf("no process %s; there are %s", in["pid"], strings.Join(s.pids(), ", "))
	}
	s.endProcess(in["pid"])
	return s.showProcesses()
}
