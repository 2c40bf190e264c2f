package collector

import "time"

// Settings can change while a Sampler runs.
type Settings struct {
	// Interval is the time between two rounds of a source; 1 s if it is not
	// positive.
	Interval time.Duration
	// Timeout is the time limit of a round, by source name; 5 s where it is
	// not positive.
	Timeout map[string]time.Duration
	// ForgetAfter is how long a missing device keeps its counters and its
	// accel_device_up of 0. If it is not positive, the device is forgotten
	// with the first round that lacks it.
	ForgetAfter time.Duration
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings {
	return Settings{Interval: time.Second, ForgetAfter: 24 * time.Hour}
}

const defaultTimeout = 5 * time.Second

func (s *Settings) interval() time.Duration {
	if s.Interval > 0 {
		return s.Interval
	}
	return DefaultSettings().Interval
}

func (s *Settings) timeout(source string) time.Duration {
	if t, ok := s.Timeout[source]; ok && t > 0 {
		return t
	}
	return defaultTimeout
}
