//go:build cgo

package sim

import (
	"reflect"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// sweep calls every getter of go-nvml with plain numbers as arguments, on every
// device: in no scenario may one crash or return an invalid code.
func sweep(lib nvml.Interface) (map[string]any, error) {
	out := map[string]any{}
	if ret := lib.Init(); ret != nvml.SUCCESS {
		out["init"] = ret
		return out, nil
	}
	n, _ := lib.DeviceGetCount()
	out["gpus"] = n
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
	out["migs"], out["lost"], out["odd"] = migs, lost, odd
	return out, nil
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
