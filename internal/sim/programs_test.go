//go:build cgo

package sim_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/internal/sim"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// programs run against the library, each in its own process with an unmodified
// go-nvml. They inject faults into their own state file; the test compares their
// results. A call that must succeed and fails ends the program by a panic. Plain
// readings are compared by the golden pages of cmd/accel-exporter.
var programs = map[string]func(lib nvml.Interface, out map[string]any){
	"init":      func(lib nvml.Interface, out map[string]any) { out["init"] = lib.Init() },
	"name":      name,
	"unguarded": unguarded,
	"sweep":     sweep,
	"faults":    faults,
	"hang":      hang,
	"counters":  counters,
}

func edit(f func(*sim.State) error) {
	if err := sim.Update(os.Getenv(simtest.StateVar), f); err != nil {
		panic(err)
	}
}

func inject(words ...string) { edit(func(s *sim.State) error { return s.Inject(words) }) }

func clearFaults(device string) { edit(func(s *sim.State) error { return s.Clear(device) }) }

func must(ret nvml.Return, what string) {
	if ret != nvml.SUCCESS {
		panic(what + ": " + nvml.ErrorString(ret))
	}
}

// handle initializes the library and returns a GPU.
func handle(lib nvml.Interface, index int) nvml.Device {
	must(lib.Init(), "init")
	reread(lib) // the set must be there before the faults
	d, ret := lib.DeviceGetHandleByIndex(index)
	must(ret, "handle")
	return d
}

// reread makes the library look at its file at once: waiting for an event does.
func reread(lib nvml.Interface) {
	if rereader == nil {
		rereader, _ = lib.EventSetCreate()
	}
	rereader.Wait(0)
}

var rereader nvml.EventSet

func name(lib nvml.Interface, out map[string]any) {
	out["name"], _ = handle(lib, 0).GetName()
}

// unguarded calls functions that the library does not have.
func unguarded(lib nvml.Interface, out map[string]any) {
	_, ret := handle(lib, 0).GetMarginTemperature()
	out["ret"] = ret
}

// faults applies to one GPU the faults that change a result.
func faults(lib nvml.Interface, out map[string]any) {
	d := handle(lib, 0)
	bystander, _ := lib.DeviceGetHandleByIndex(7)
	for _, step := range [][]string{
		{"lost", "0"},
		{"reset-required", "0"},
		{"gone", "0"},
		{"error", "nvmlDeviceGetPowerUsage", "UNKNOWN"},
		{"set", "power", "error:NO_DATA", "0"},
		{"set", "power", "4294967295", "0"},
		{"set", "power", "-1", "0"},
		{"set", "power", "1e30", "0"},
		{"driver-mismatch"},
		{"driver-unload"},
		{"slow", "0", "--delay=1ms"},
	} {
		inject(step...)
		reread(lib)
		v, ret := d.GetPowerUsage()
		_, other := bystander.GetPowerUsage()
		n, _ := lib.DeviceGetCount()
		out[fmt.Sprint(step)] = fmt.Sprintf("%d %d; other %d; count %d", v, ret, other, n)
		clearFaults("all")
	}
	reread(lib)
	v, ret := d.GetPowerUsage()
	out["cleared"] = fmt.Sprint(v, ret)
}

// hang blocks a getter and wakes it by a clear.
func hang(lib nvml.Interface, out map[string]any) {
	d := handle(lib, 0)
	inject("hang", "0")
	reread(lib)
	done := make(chan nvml.Return, 1)
	go func() {
		runtime.LockOSThread()
		_, ret := d.GetPowerUsage()
		done <- ret
	}()
	bystander, _ := lib.DeviceGetHandleByIndex(1)
	_, other := bystander.GetPowerUsage()
	select {
	case <-done:
		out["blocked"] = false
	default:
		out["blocked"] = true
	}
	clearFaults("0")
	out["other"], out["after"] = other, <-done
}

// counters must follow their signals exactly and never go back, whatever is set.
func counters(lib nvml.Interface, out map[string]any) {
	d := handle(lib, 6)
	var before [3]uint64
	read := func(step string) {
		ask := []nvml.FieldValue{{FieldId: 83}, {FieldId: 270}, {FieldId: 197}}
		reread(lib)
		d.GetFieldValues(ask)
		s := ""
		for i, f := range ask {
			v := binary.LittleEndian.Uint64(f.Value[:])
			s += fmt.Sprintf("%+d ", int64(v-before[i]))
			before[i] = v
		}
		out[step] = s
	}
	read("0 start")
	for i, step := range [][]string{
		{"advance", "10"},
		{"throttle", "hw-thermal", "6"},
		{"advance", "10"},
		{"throttle", "hw-thermal", "6", "off"},
		{"advance", "10"},
		{"set", "power", "100000", "6"},
		{"advance", "10"},
		{"set", "power", "1e30", "6"},
		{"advance", "1"},
		{"set", "power", "-5", "6"},
		{"advance", "1"},
		{"set", "load", "1", "6"},
		{"advance", "2"},
	} {
		inject(step...)
		read(fmt.Sprintf("%02d %v", i+1, step))
	}
}

// sweep calls every getter of go-nvml with plain numbers as arguments, on every
// device: in no scenario may one crash or return an invalid code.
func sweep(lib nvml.Interface, out map[string]any) {
	if ret := lib.Init(); ret != nvml.SUCCESS {
		out["init"] = ret
		return
	}
	n, _ := lib.DeviceGetCount()
	migs, lost, odd := 0, 0, 0
	for i := range n {
		d, ret := lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			lost++
			continue
		}
		odd += getters(d)
		most, _ := d.GetMaxMigDeviceCount()
		for m := range most {
			if h, ret := d.GetMigDeviceHandleByIndex(m); ret == nvml.SUCCESS {
				migs++
				odd += getters(h)
			}
		}
	}
	out["gpus"], out["migs"], out["lost"], out["odd"] = n, migs, lost, odd
}

func getters(d nvml.Device) (odd int) {
	v := reflect.ValueOf(d)
	for i := range v.NumMethod() {
		name, m := v.Type().Method(i).Name, v.Method(i)
		if !strings.HasPrefix(name, "Get") || strings.Contains(name, "Vgpu") || name == "GetPcieThroughput" {
			continue
		}
		args, ok := zeroes(m.Type())
		if !ok {
			continue
		}
		results := m.Call(args)
		if ret, ok := reflect.TypeAssert[nvml.Return](results[len(results)-1]); ok && (ret < 0 || ret > 30 && ret != nvml.ERROR_UNKNOWN) {
			odd++
		}
	}
	return odd
}

func zeroes(t reflect.Type) ([]reflect.Value, bool) {
	var args []reflect.Value
	for in := range t.Ins() {
		switch in.Kind() {
		case reflect.Int, reflect.Int32, reflect.Uint32, reflect.Uint64:
			args = append(args, reflect.Zero(in))
		default:
			return nil, false
		}
	}
	return args, t.NumOut() > 0
}
