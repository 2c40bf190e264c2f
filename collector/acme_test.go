package collector_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// Acme is the vendor of the worked example in CONTRIBUTING.md, which quotes
// this file. Its imaginary driver has one folder per card in /sys/class/acme.

var acme = collector.Vendor{
	Name: "acme", Source: "acme", PCI: []uint32{0xacee}, Domains: []string{"acme"},
	Accelerators: []collector.PCIRule{{Class: collector.GPU, Vendor: 0xacee, Classes: []uint32{0x1200}}},
}

// acmeSource reads Acme's cards from /sys/class/acme.
type acmeSource struct{ sys sysfs.FS }

func (s *acmeSource) Name() string { return "acme" }

func (s *acmeSource) Close() error { return nil }

func (s *acmeSource) Sample(context.Context) (round collector.Round, err error) {
	cards, err := s.sys.Names("class/acme")
	if errors.Is(err, fs.ErrNotExist) {
		return round, collector.ErrAbsent
	}
	for _, card := range cards {
		d, failed := s.card(card)
		round.Devices = append(round.Devices, d)
		err = errors.Join(err, failed)
	}
	return round, err
}

func (s *acmeSource) card(name string) (collector.Device, error) {
	dir := "class/acme/" + name
	d := collector.Device{ID: name, Class: collector.GPU, Vendor: "acme", KubeIDs: []string{name}}
	serial, err := s.sys.Read(dir + "/serial")
	if err != nil {
		d.Down = collector.ReasonError
		return d, fmt.Errorf("read %s/serial: %w", dir, err)
	}
	d.ID = serial
	text, err := s.sys.Read(dir + "/temperature") // m°C
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil // older boards have no sensor
	}
	if err != nil {
		return d, fmt.Errorf("read %s/temperature: %w", dir, err)
	}
	if milli, err := strconv.ParseFloat(text, 64); err != nil {
		d.Reject(collector.TemperatureCelsius, collector.RejectType)
	} else {
		d.Set(collector.TemperatureCelsius, milli/1000, "board")
	}
	return d, nil
}

// acmeTree is the fixture: a card, a card without a sensor and a card that
// fails.
const acmeTree = `/sys/class/acme/npu0/serial	AC0001\n
/sys/class/acme/npu0/temperature	41500\n
/sys/class/acme/npu1/serial	AC0002\n
#err	EIO	/sys/class/acme/npu2/serial
`

func TestAcme(t *testing.T) {
	if class := acme.PCIClass(collector.PCIFunction{Vendor: 0xacee, Class: 0x120000}); class != collector.GPU {
		t.Errorf("class on the bus: %q", class)
	}
	tree, err := faketree.Parse("acme.txt", []byte(acmeTree))
	if err != nil {
		t.Fatal(err)
	}
	var source collector.Source = &acmeSource{sysfs.New(simtest.MountTree(t, tree))}
	round, err := source.Sample(t.Context())
	if err == nil || len(round.Devices) != 3 {
		t.Fatalf("%d devices, error %v; want 3 and the error of npu2", len(round.Devices), err)
	}
	if r := round.Devices[0].Readings; len(r) != 1 || r[0].Value != 41.5 {
		t.Errorf("npu0: %v, want 41.5 °C", r)
	}
	if d := round.Devices[1]; len(d.Readings) != 0 || d.Down != "" {
		t.Errorf("npu1: %+v, want no reading", d)
	}
	if d := round.Devices[2]; d.Down != collector.ReasonError {
		t.Errorf("npu2: %+v, want it down", d)
	}
}
