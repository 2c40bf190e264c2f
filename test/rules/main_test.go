package differential

import (
	"flag"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"
)

var (
	seed  = flag.Uint64("seed", 1, "of the first case of TestSeries; case N has the seed plus N")
	cases = flag.Int("cases", 8, "how many cases of TestSeries to play")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// oneOf returns one of the choices.
func oneOf[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

// chance is true in so many of a hundred cases.
func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }
