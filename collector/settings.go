package collector

import "time"

// Settings are what may change while a Sampler runs.
type Settings struct {
	// Interval is the time from one round of a source to its next; 1 s where
	// it is not positive.
	Interval time.Duration
	// Timeout is how long a round may take, by the source's name; 5 s for a
	// source without a positive one.
	Timeout map[string]time.Duration
	// ForgetAfter is how long a device that vanished keeps its counters and
	// its accel_device_up of 0; one that is not positive forgets it with the
	// round that misses it.
	ForgetAfter time.Duration
	// XidBaseline are the numbers of Xids that stand at 0 beside the built-in
	// ones.
	XidBaseline []int
}

// DefaultSettings returns the settings that apply where nothing else is said.
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
