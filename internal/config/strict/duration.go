package strict

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Durations is the accepted form of a duration.
const Durations = "a duration such as 500ms, 10s, 24h or 7d"

// ParseDuration is time.ParseDuration with days, which come first: 7d, 1d12h.
func ParseDuration(s string) (time.Duration, error) {
	days, rest, found := strings.Cut(s, "d")
	if !found {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	d := time.Duration(n) * 24 * time.Hour
	if err != nil || rest == "" {
		return d, err
	}
	more, err := time.ParseDuration(rest)
	if err == nil && (rest[0] == '-' || rest[0] == '+' || d+more < d) {
		err = errors.New("not " + Durations)
	}
	return d + more, err
}
