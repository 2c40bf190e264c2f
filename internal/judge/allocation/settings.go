package allocation

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"time"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// Settings are what may change while a Judge runs: the section allocation of
// the configuration file, as package internal/config/strict decodes it.
type Settings struct {
	// Idle has the thresholds below which a device is idle.
	Idle Idle `yaml:"idle"`
	// Currency is the unit of all prices: three capital letters, ISO 4217.
	Currency string `yaml:"currency"`
	// Prices are searched in order; the first that matches applies.
	Prices []Price `yaml:"prices"`
	// Aliases, Generic and Ignore are the fields of podmap.Resolver.
	Aliases []podmap.Alias   `yaml:"aliases"`
	Generic []podmap.Generic `yaml:"generic_devices"`
	Ignore  []string         `yaml:"ignore_resources"`
	// MaxHolders is how many pairs of a pod and a device have series; further
	// ones are counted.
	MaxHolders int `yaml:"max_holders" accept:"1..16384"`
}

// Idle has the thresholds below which a device is idle.
type Idle struct {
	// Floor is the largest utilization or activity, 0 to 1, that counts as
	// idle.
	Floor float64 `yaml:"floor" accept:"0..0.5"`
	// Traffic is the largest traffic over PCIe or NVLink, in bytes per second
	// and direction, that counts as idle: reading a device's sensors causes
	// some.
	Traffic float64 `yaml:"traffic_bytes_per_second" accept:"0..1e12"`
	// Grace is the shortest pause that counts as idle.
	Grace time.Duration `yaml:"grace" accept:"0s..24h"`
	// Resources are exceptions, the first that fits applies.
	Resources []IdleResource `yaml:"resources"`
}

// IdleResource is Idle for resources. A value of 0 stands for the general one.
type IdleResource struct {
	// Resource is a pattern of path.Match: fpga.intel.com/*.
	Resource string        `yaml:"resource"`
	Floor    float64       `yaml:"floor" accept:"0..0.5"`
	Traffic  float64       `yaml:"traffic_bytes_per_second" accept:"0..1e12"`
	Grace    time.Duration `yaml:"grace" accept:"0s..24h"`
	// Never: such an allocation is never idle.
	Never bool `yaml:"never"`
}

// Price is what an hour of a device costs. What is empty fits every device;
// patterns have the syntax of path.Match.
type Price struct {
	// Resource is the one by which the device is allocated.
	Resource string `yaml:"resource"`
	Class    string `yaml:"class" accept:"gpu|fpga"`
	Model    string `yaml:"model"`
	// Profile is that of a partition. Without a Profile or a Resource the price
	// is that of a whole device, and fits no partition.
	Profile string `yaml:"profile"`
	// PerHour is in Settings.Currency.
	PerHour float64 `yaml:"per_hour" accept:"0..1000000"`
}

// DefaultSettings returns the settings without a configuration file.
func DefaultSettings() Settings {
	return Settings{
		Idle:       Idle{Floor: 0.01, Traffic: 1 << 20, Grace: time.Minute},
		MaxHolders: 1000,
	}
}

// Check implements strict.Checker.
func (s *Settings) Check() error {
	if s.Currency != "" && !regexp.MustCompile(`^[A-Z]{3}$`).MatchString(s.Currency) {
		return fmt.Errorf("found the currency %q; accepted are three capital letters: EUR", s.Currency)
	}
	if len(s.Prices) > 0 && s.Currency == "" {
		return errors.New("found prices without a currency; accepted is both or none")
	}
	for _, p := range s.Ignore {
		if err := checkPattern(p); err != nil {
			return err
		}
	}
	return nil
}

// Check implements strict.Checker.
func (r *IdleResource) Check() error {
	if r.Resource == "" {
		return errors.New("found no resource; accepted is a pattern such as fpga.intel.com/*")
	}
	return checkPattern(r.Resource)
}

// Check implements strict.Checker.
func (p *Price) Check() error {
	return errors.Join(checkPattern(p.Resource), checkPattern(p.Model), checkPattern(p.Profile))
}

func checkPattern(p string) error {
	if _, err := path.Match(p, ""); err != nil {
		return fmt.Errorf("found the pattern %.40q; accepted is a pattern such as nvidia.com/*", p)
	}
	return nil
}

func fits(pattern, s string) bool {
	ok, _ := path.Match(pattern, s)
	return ok || pattern == ""
}

// idleOf returns the thresholds for an allocation of these resources, and
// whether it is exempt.
func (s *Settings) idleOf(resources []string) (Idle, bool) {
	for _, r := range s.Idle.Resources {
		for _, name := range resources {
			if !fits(r.Resource, name) {
				continue
			}
			out := s.Idle
			out.Floor = cmp.Or(r.Floor, out.Floor)
			out.Traffic = cmp.Or(r.Traffic, out.Traffic)
			out.Grace = cmp.Or(r.Grace, out.Grace)
			return out, r.Never
		}
	}
	return s.Idle, false
}

// priceOf returns the price of an hour.
func (s *Settings) priceOf(d kind, resources []string) (float64, bool) {
	for i := range s.Prices {
		p := &s.Prices[i]
		if p.Profile == "" && p.Resource == "" && d.partition {
			continue
		}
		matches := p.Resource == ""
		for _, r := range resources {
			matches = matches || fits(p.Resource, r)
		}
		if matches && (p.Class == "" || p.Class == d.class) && fits(p.Model, d.model) && fits(p.Profile, d.profile) {
			return p.PerHour, true
		}
	}
	return 0, false
}

// kind is what a price depends on.
type kind struct {
	class, model, profile string
	partition             bool
}
